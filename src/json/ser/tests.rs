use super::*;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

fn try_written<T: Serialize + ?Sized>(value: &T) -> Result<String, EncodeError> {
    let mut counter = Writer::new(&mut []);
    put_value(&mut counter, value)?;
    let mut buffer = vec![0xa5; counter.len()];
    let mut writer = Writer::new(&mut buffer);
    put_value(&mut writer, value)?;
    let text = writer.finish().unwrap();
    assert_eq!(
        text.len(),
        text.iter().filter(|byte| byte.is_ascii()).count()
    );
    Ok(String::from_utf8(text.to_vec()).unwrap())
}

fn written<T: Serialize + ?Sized>(value: &T) -> String {
    try_written(value).unwrap()
}

#[derive(Serialize)]
enum Guidance {
    Off,
    Scale(f64),
    Range(i8, u8),
    Schedule {
        from: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<u32>,
    },
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Newtype(u8);

#[derive(Serialize)]
struct Pair(u8, ());

#[derive(Serialize)]
struct Sampling<'a> {
    request_id: &'a str,
    #[serde(rename = "größe")]
    sizes: [(u16, u16); 2],
    guidance: Vec<Guidance>,
    none: Option<u8>,
    units: (Unit, (), Newtype, Pair),
}

#[test]
fn structs_are_written_as_python_writes_dicts() {
    let sampling = Sampling {
        request_id: "wan/\"1\"\n\u{7f}é😀",
        sizes: [(480, 832), (0, 65535)],
        guidance: vec![
            Guidance::Off,
            Guidance::Scale(7.5),
            Guidance::Range(-128, 255),
            Guidance::Schedule {
                from: 1,
                to: Some(2),
            },
            Guidance::Schedule { from: 1, to: None },
        ],
        none: None,
        units: (Unit, (), Newtype(7), Pair(8, ())),
    };
    let expected = concat!(
        r#"{"request_id":"wan/\"1\"\n\u007f\u00e9\ud83d\ude00","#,
        r#""gr\u00f6\u00dfe":[[480,832],[0,65535]],"#,
        r#""guidance":["Off",{"Scale":7.5},{"Range":[-128,255]},"#,
        r#"{"Schedule":{"from":1,"to":2}},{"Schedule":{"from":1}}],"#,
        r#""none":null,"units":[null,null,7,[8,null]]}"#
    );
    assert_eq!(written(&sampling), expected);
}

#[test]
fn numbers_are_written_as_python_writes_them() {
    let floats = [
        5.0,
        -0.0,
        1e16,
        1e-5,
        0.0001,
        1.0 / 3.0,
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
    ];
    assert_eq!(
        written(&floats),
        "[5.0,-0.0,1e+16,1e-05,0.0001,0.3333333333333333,NaN,Infinity,-Infinity]"
    );
    // json.dumps([float(numpy.float32(x)) for x in (0.1, 7.5, 1e-10, 3.4028235e38)])
    let narrow = [0.1_f32, 7.5, 1e-10, f32::MAX, f32::NAN];
    assert_eq!(
        written(&narrow),
        "[0.10000000149011612,7.5,1.000000013351432e-10,3.4028234663852886e+38,NaN]"
    );
    let integers = (u128::MAX, i128::MIN, u64::MAX, i64::MIN, -1_i8, 0_u16);
    assert_eq!(
        written(&integers),
        "[340282366920938463463374607431768211455,-170141183460469231731687303715884105728,\
         18446744073709551615,-9223372036854775808,-1,0]"
    );
}

/// A map of one key, so that a float can be one.
struct Key<K>(K);

impl<K: Serialize> Serialize for Key<K> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(&self.0, ())])
    }
}

#[test]
fn keys_become_the_strings_that_python_makes_of_them() {
    assert_eq!(written(&Key(1)), r#"{"1":null}"#);
    assert_eq!(
        written(&Key(i128::MIN)),
        format!(r#"{{"{}":null}}"#, i128::MIN)
    );
    assert_eq!(written(&Key(1.5)), r#"{"1.5":null}"#);
    assert_eq!(
        written(&Key(1e16_f32)),
        r#"{"1.0000000272564224e+16":null}"#
    );
    assert_eq!(written(&Key(f64::NAN)), r#"{"NaN":null}"#);
    assert_eq!(written(&Key(-f64::INFINITY)), r#"{"-Infinity":null}"#);
    assert_eq!(written(&Key(true)), r#"{"true":null}"#);
    assert_eq!(written(&Key(None::<u8>)), r#"{"null":null}"#);
    assert_eq!(written(&Key(Some(3))), r#"{"3":null}"#);
    assert_eq!(written(&Key(Newtype(3))), r#"{"3":null}"#);
    assert_eq!(written(&Key('é')), r#"{"\u00e9":null}"#);
    assert_eq!(written(&Key("a\nb")), r#"{"a\nb":null}"#);
    assert_eq!(written(&Key(Guidance::Off)), r#"{"Off":null}"#);
    let value = Value::parse(br#""\u0041""#).unwrap();
    assert_eq!(written(&Key(value)), r#"{"A":null}"#);
    for result in [
        try_written(&Key([1])),
        try_written(&Key(Guidance::Scale(1.0))),
        try_written(&Key(BTreeMap::<u8, u8>::new())),
        try_written(&Key(Value::parse(b"[]").unwrap())),
    ] {
        assert_eq!(result, Err(EncodeError::KeyType));
    }
}

#[test]
fn maps_keep_their_order() {
    let map = BTreeMap::from([("b", vec![1]), ("a", vec![]), ("c\u{1f}", vec![2, 3])]);
    assert_eq!(written(&map), r#"{"a":[],"b":[1],"c\u001f":[2,3]}"#);
    assert_eq!(written(&BTreeMap::<u8, u8>::new()), "{}");
}

#[test]
fn bytes_are_an_array_and_displayed_things_a_string() {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[0, 255])
        }
    }
    struct Shown(&'static str);
    impl Serialize for Shown {
        fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&format_args!("{}\"{:04}", self.0, 7))
        }
    }
    assert_eq!(written(&(Bytes, Shown("é"))), r#"[[0,255],"\u00e9\"0007"]"#);
    assert_eq!(written(&Key(Shown(""))), r#"{"\"0007":null}"#);
    assert_eq!(try_written(&Key(Bytes)), Err(EncodeError::KeyType));
}

#[test]
fn what_refuses_is_refused() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: ser::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("no"))
        }
    }
    assert_eq!(try_written(&[Refuses]), Err(EncodeError::Serialize));
}

#[test]
fn plain_documents_are_written_as_serde_json_writes_them() {
    let text = r#"{"a":[1,-2,3.5,"x\n\"\\",true,null,{}],"b":{"c":[]},"d":18446744073709551615}"#;
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(written(&value), serde_json::to_string(&value).unwrap());
}

#[test]
fn what_python_wrote_is_written_again() {
    // Random bits, random fractions and powers of ten.
    let floats = concat!(
        "[-1.989032661366619e+244,7.761117632285041e+178,3.980498358697587e-249,",
        "-1.5432835417340557e+88,1.3647584518757569e-192,-1.3701135617873088e-206,",
        "-1.7160537630466207e+197,6.294675241195386e-44,1.0613447212142254e-202,",
        "4.708325160387546e+207,6.387016158513563e-12,-9.973130378568733e-246,",
        "8.779753225680271e-236,-5.795503248498993e-228,-5.988180159386011e+243,",
        "4.6678633181812096e-36,-8.441872792105456e-239,1.9015657400796622e-144,",
        "-711.4898332851249,-764.4155238432633,-383.03635179613127,632.2527182400629,",
        "-638.547240152125,163.20032732493246,1e-07,1e-05,0.0001,1.0,1000000000000000.0,",
        "1e+16,1e+22,1.0000000000000001e+23]"
    );
    let value = Value::parse(floats.as_bytes()).unwrap();
    assert_eq!(written(&value.deserialize::<Vec<f64>>().unwrap()), floats);
}

#[test]
fn what_was_written_reads_back() {
    let map = BTreeMap::from([(u32::MAX, f32::MIN_POSITIVE), (0, 0.1)]);
    let text = written(&map);
    let value = Value::parse(text.as_bytes()).unwrap();
    assert_eq!(value.deserialize(), Ok(map));
}

#[derive(Serialize)]
#[serde(rename = "$tensorwire::json::Value")]
struct Posing<T>(T);

#[test]
fn the_name_of_a_value_lets_no_type_write_what_is_no_value() {
    for text in [
        "", " ", "1,", "1 2", "{} {}", "[", "}", "x", "\"", "\u{e9}", "\n\0",
    ] {
        assert_eq!(
            try_written(&[Posing(text)]),
            Err(EncodeError::Serialize),
            "{text:?}"
        );
    }
    assert_eq!(written(&Posing(r#" {"a" : NaN} "#)), r#"{"a" : NaN}"#);
    assert_eq!(written(&Posing(Some("[1]"))), "[1]");
    assert_eq!(try_written(&Posing(',')), Err(EncodeError::Serialize));
    // What is no string is written as ever.
    assert_eq!(written(&Posing(7)), "7");
    assert_eq!(written(&Posing(("a", 1))), r#"["a",1]"#);
    assert_eq!(written(&Key(Posing("a"))), r#"{"a":null}"#);
}

#[test]
fn a_map_that_breaks_the_turn_of_keys_and_values_is_refused() {
    struct Calls(&'static str);
    impl Serialize for Calls {
        fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            for call in self.0.chars() {
                match call {
                    'k' => map.serialize_key("k")?,
                    _ => map.serialize_value(&1)?,
                }
            }
            map.end()
        }
    }
    assert_eq!(written(&Calls("kvkv")), r#"{"k":1,"k":1}"#);
    for calls in ["k", "v", "kk", "kvv", "kvk"] {
        assert_eq!(
            try_written(&Calls(calls)),
            Err(EncodeError::Serialize),
            "{calls}"
        );
    }
}
