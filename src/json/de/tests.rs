use super::*;
use core::fmt;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DeserializeError> {
    Value::parse(text.as_bytes()).unwrap().deserialize()
}

fn kind<'a, T: Deserialize<'a> + fmt::Debug>(text: &'a str) -> (ValueErrorKind, usize) {
    let error = read::<T>(text).unwrap_err();
    let DeserializeErrorKind::Value(kind) = error.kind() else {
        panic!("{error}");
    };
    (kind, error.offset())
}

#[derive(Debug, Deserialize, PartialEq, serde::Serialize)]
enum Guidance {
    Off,
    Scale(f64),
    Range(i8, u8),
    Schedule { from: u32, to: Option<u32> },
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Sampling {
    steps: u32,
    scale: Option<f32>,
    sizes: Vec<(u16, u16)>,
    guidance: Vec<Guidance>,
    name: String,
    extra: BTreeMap<String, Vec<Option<bool>>>,
}

#[test]
fn structs_ignore_what_they_do_not_know_and_default_what_is_absent() {
    let text = r#"{"name":"a b","unknown":{"deep":[1,{"x":NaN}]},"st\u0065ps":30,
        "guidance":["Off",{"Scale":7.5},{"Range":[-1,255]},
                    {"Schedule":{"from":1,"to":null,"by":2}},{"Off":null}],
        "sizes":[[480,832],[1,2]],"extra":{"a":[true,null,false],"":[]}}"#;
    let sampling: Sampling = read(text).unwrap();
    assert_eq!(
        sampling,
        Sampling {
            steps: 30,
            scale: None,
            sizes: vec![(480, 832), (1, 2)],
            guidance: vec![
                Guidance::Off,
                Guidance::Scale(7.5),
                Guidance::Range(-1, 255),
                Guidance::Schedule { from: 1, to: None },
                Guidance::Off,
            ],
            name: String::from("a b"),
            extra: BTreeMap::from([
                (String::from("a"), vec![Some(true), None, Some(false)]),
                (String::new(), vec![]),
            ]),
        }
    );
}

#[test]
fn plain_documents_read_as_serde_json_reads_them() {
    let documents = [
        "null",
        "[]",
        "{}",
        " [ 1 , -2, 3.5, 1e300, 1E-7, 18446744073709551615, -9223372036854775808 ] ",
        r#"{"a":{"b":[{"c":"d"},[[]],{}]},"e":"","f":"\ud83d\ude00\n\u0000\/"}"#,
        r#"["caf\u00e9","é",true,false,null,0.1,5e-324,1.7976931348623157e308]"#,
    ];
    for text in documents {
        if cfg!(not(feature = "alloc")) && text.len() > 1000 {
            continue;
        }
        let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(read::<serde_json::Value>(text).unwrap(), theirs, "{text}");
    }
    let text = r#"[{"Scale":1.5},{"Range":[1,2]},{"Schedule":{"from":1,"to":2}},"Off"]"#;
    let theirs: Vec<Guidance> = serde_json::from_str(text).unwrap();
    assert_eq!(read::<Vec<Guidance>>(text).unwrap(), theirs);
}

#[test]
fn integers_are_exact_or_refused() {
    assert_eq!(read("[255,-128]"), Ok((255_u8, -128_i8)));
    let max = u128::MAX.to_string();
    assert_eq!(read(&max), Ok(u128::MAX));
    assert_eq!(read(&i128::MIN.to_string()), Ok(i128::MIN));
    assert_eq!(read("-0"), Ok(0_u8));
    let huge = format!("1{}", "0".repeat(40));
    let out_of_range = ValueErrorKind::NumberOutOfRange;
    assert_eq!(kind::<i128>(&huge), (out_of_range, 0));
    assert_eq!(kind::<u128>(&huge), (out_of_range, 0));
    assert_eq!(kind::<Vec<u8>>("[1,256]"), (out_of_range, 3));
    assert_eq!(kind::<(u8,)>("[-1]"), (out_of_range, 1));
    for text in ["4.0", "1e2", "NaN", "-Infinity"] {
        assert_eq!(kind::<i64>(text), (ValueErrorKind::NotAnInteger, 0));
    }
    let (expected, actual) = (ValueType::Number, ValueType::String);
    let wrong_type = ValueErrorKind::WrongType { expected, actual };
    assert_eq!(kind::<i64>(r#""4""#), (wrong_type, 0));
}

#[test]
fn floats_are_the_nearest_and_may_be_no_number() {
    assert_eq!(
        read("[7,-Infinity,1e999,5e-324]"),
        Ok((7.0_f64, f64::NEG_INFINITY, f64::INFINITY, 5e-324))
    );
    let [nan, infinity]: [f32; 2] = read("[NaN,Infinity]").unwrap();
    assert!(nan.is_nan() && infinity == f32::INFINITY);
    let huge = format!("1{}", "0".repeat(40));
    assert_eq!(read(&huge), Ok(1e40_f64));
    assert_eq!(kind::<f32>(&huge).0, ValueErrorKind::NumberOutOfRange);
    assert_eq!(kind::<f32>("1e39").0, ValueErrorKind::NumberOutOfRange);
    assert_eq!(read("1e999"), Ok(f32::INFINITY));
    // Halfway between two floats, and above by less than an f64 can tell.
    assert_eq!(read("1.000000059604644775390626"), Ok(1.000_000_1_f32));
    let huge = "9".repeat(400);
    assert_eq!(kind::<f64>(&huge).0, ValueErrorKind::NumberOutOfRange);
}

#[test]
fn what_takes_anything_gets_the_first_type_that_holds_the_integer() {
    #[derive(Debug, PartialEq)]
    struct Anything(&'static str);

    impl<'de> Deserialize<'de> for Anything {
        fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Self(""))
        }
    }

    impl<'de> Visitor<'de> for Anything {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
            Ok(Self("u64"))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
            Ok(Self("i64"))
        }
        fn visit_u128<E>(self, _: u128) -> Result<Self, E> {
            Ok(Self("u128"))
        }
        fn visit_i128<E>(self, _: i128) -> Result<Self, E> {
            Ok(Self("i128"))
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
            Ok(Self("f64"))
        }
    }

    for (text, expected) in [
        ("-0", "u64"),
        ("18446744073709551615", "u64"),
        ("-1", "i64"),
        ("-9223372036854775808", "i64"),
        ("18446744073709551616", "u128"),
        ("-9223372036854775809", "i128"),
        ("340282366920938463463374607431768211456", "f64"),
        ("1.0", "f64"),
        ("NaN", "f64"),
    ] {
        assert_eq!(read(text), Ok(Anything(expected)), "{text}");
    }
    let message = read::<Anything>(r#""x""#).unwrap_err().to_string();
    assert_eq!(
        message,
        "invalid type: string \"x\", expected a number at byte 0"
    );
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let text = String::from(r#"{"a":"plain"}"#);
    let map: BTreeMap<&str, &str> = read(&text).unwrap();
    let plain = map["a"];
    assert!(text.as_bytes().as_ptr_range().contains(&plain.as_ptr()));
    let error = read::<&str>(r#""caf\u00e9""#).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("invalid type: string \"café\"")
    );
    assert_eq!(read::<&[u8]>(r#""plain""#), Ok(&b"plain"[..]));
}

#[test]
fn escaped_strings_are_copied_if_any_text_can_hold_them() {
    assert_eq!(
        read(r#""caf\u00e9 \ud83d\ude00""#),
        Ok(String::from("café 😀"))
    );
    assert_eq!(read(r#"["\u00e9","x"]"#), Ok(('é', 'x')));
    assert_eq!(
        kind::<(u8, String)>(r#"[1,"\ud800"]"#),
        (ValueErrorKind::LoneSurrogate, 3)
    );
    let long = format!(r#""{}\n""#, "x".repeat(300));
    match read::<String>(&long) {
        Ok(text) => assert!(cfg!(feature = "alloc") && text.len() == 301),
        Err(error) => {
            let (needed, capacity) = (301, 256);
            assert_eq!(
                error.kind(),
                DeserializeErrorKind::Value(ValueErrorKind::BufferTooSmall { needed, capacity })
            );
        }
    }
}

#[test]
fn errors_name_the_byte() {
    #[derive(Debug, Deserialize)]
    struct Request {
        #[expect(dead_code)]
        seed: core::num::NonZero<u8>,
    }
    let cases = [
        (
            r#" [{"seed":1},{"x":1}]"#,
            "missing field `seed` at byte 13",
        ),
        (
            r#"[{"seed":"1"}]"#,
            "expected number, found string at byte 9",
        ),
        (
            r#"[{"seed": 0}]"#,
            "invalid value: integer `0`, expected a nonzero u8 at byte 10",
        ),
        (
            r#"[{"seed":1}, 7]"#,
            "expected object, found number at byte 13",
        ),
        (r#"[[1, 2]]"#, "more elements than the type takes at byte 5"),
    ];
    for (text, message) in cases {
        let error = read::<Vec<Request>>(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
    let cases = [
        (
            "7",
            "enum is neither a string nor an object of one member at byte 0",
        ),
        (
            "{}",
            "enum is neither a string nor an object of one member at byte 0",
        ),
        (
            r#"{"Scale":1,"Scale":2}"#,
            "enum is neither a string nor an object of one member at byte 0",
        ),
        (
            r#""Scale""#,
            "invalid type: unit variant, expected newtype variant at byte 0",
        ),
        (
            r#"{"Range":[1]}"#,
            "invalid length 1, expected tuple variant Guidance::Range with 2 elements at byte 9",
        ),
        (
            r#"{"Rang\u0065\n":1}"#,
            "unknown variant `Range\\n`, expected one of `Off`, `Scale`, `Range`, `Schedule` at byte 1",
        ),
    ];
    for (text, message) in cases {
        let error = read::<Guidance>(text).unwrap_err().to_string();
        let cut = message.len().min(80);
        assert!(error.starts_with(&message[..cut]), "{error}");
    }
}

#[test]
fn null_is_none_and_unit() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Unit;
    #[derive(Debug, Deserialize, PartialEq)]
    struct Newtype(Option<u8>);

    let text = "[null,null,null,5,null]";
    let all: (Option<u8>, (), Unit, Newtype, Newtype) = read(text).unwrap();
    assert_eq!(all, (None, (), Unit, Newtype(Some(5)), Newtype(None)));
    let (expected, actual) = (ValueType::Null, ValueType::Bool);
    let wrong_type = ValueErrorKind::WrongType { expected, actual };
    assert_eq!(kind::<()>("true"), (wrong_type, 0));
}

#[test]
fn types_that_read_nothing_lose_nothing() {
    struct Blank;
    impl<'de> Deserialize<'de> for Blank {
        fn deserialize<D: de::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Ok(Self)
        }
    }
    let (_, number, _): (Blank, u8, Blank) = read(r#"[{"a":[1]},2,"x"]"#).unwrap();
    assert_eq!(number, 2);
}

#[test]
fn an_error_that_a_type_swallows_stays_inside_its_value() {
    #[derive(Debug, PartialEq)]
    struct Lenient<T>(Option<T>);
    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
        fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Self(T::deserialize(deserializer).ok()))
        }
    }
    let text = r#"[[[7,"x"],1],[2,{"a":[]}],[3,4],"x",[5,6,7]]"#;
    let list: Vec<Lenient<(u8, Lenient<u8>)>> = read(text).unwrap();
    let pair = |first, second| Lenient(Some((first, Lenient(second))));
    let none = || Lenient(None);
    let expected = [none(), pair(2, None), pair(3, Some(4)), none(), none()];
    assert_eq!(list, expected);
}

#[test]
fn the_deepest_value_allowed_is_read() {
    #[derive(Debug, Deserialize)]
    struct Nest(Vec<Self>);
    let text = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let mut nest: Nest = read(&text).unwrap();
    for _ in 1..128 {
        nest = nest.0.pop().unwrap();
    }
    assert!(nest.0.is_empty());
}
