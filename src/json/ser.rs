//! The caller's own types into JSON, through serde, as Python's `json.dumps` writes them.
//!
//! | Rust | JSON |
//! |---|---|
//! | any integer | its digits |
//! | `f64` | Python's `repr`; `NaN`, `Infinity`, `-Infinity` |
//! | `f32` | as the `f64` of the same value, which is `float(numpy.float32(x))` |
//! | `char`, string | string, escaped down to printable ASCII |
//! | bytes | array of integers |
//! | `None`, `()`, unit struct | `null` |
//! | sequence, tuple, tuple struct | array |
//! | map, struct | object, in the order given |
//! | enum | `"Variant"` or `{"Variant":...}` |
//!
//! A map's key that is an integer, float, bool or `None` becomes a string as it
//! does in Python: `"1"`, `"1.5"`, `"NaN"`, `"true"`, `"null"`.

mod raw;

use core::cell::Cell;
use core::fmt::{self, Write as _};

use serde::ser::{self, Error as _, Serialize};

use super::de::TOKEN;
use super::writer::Writer;
use crate::error::EncodeError;

/// Writes `value` byte for byte as Python writes its equivalent.
///
/// # Errors
///
/// [`EncodeError::KeyType`] for a map's key that Python has no string for, and
/// [`EncodeError::Serialize`] for what `value` itself fails with. What is in
/// the writer then is a part of a text.
pub(crate) fn put_serialize<T: Serialize + ?Sized>(
    writer: &mut Writer<'_>,
    value: &T,
) -> Result<(), EncodeError> {
    value.serialize(Serializer {
        writer,
        place: Place::Value,
    })
}

impl ser::Error for EncodeError {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::Serialize
    }
}

/// Where a text is written to.
enum Place {
    /// A map's key, so that what is no string is put in quotes.
    Key,
    /// The inside of a [`raw::Content`], which asks twice whether it is read by
    /// humans and is told two different things.
    Raw(Cell<bool>),
    Value,
}

struct Serializer<'w, 'b> {
    writer: &'w mut Writer<'b>,
    place: Place,
}

impl<'w, 'b> Serializer<'w, 'b> {
    /// Writes what is no string, and as a key is made one.
    fn put_scalar(self, put: impl FnOnce(&mut Writer<'b>)) {
        let quote: &[u8] = if self.is_key() { b"\"" } else { b"" };
        self.writer.put_raw(quote);
        put(self.writer);
        self.writer.put_raw(quote);
    }

    const fn is_key(&self) -> bool {
        matches!(self.place, Place::Key)
    }

    /// Writes the start of an array or object, which no key can be.
    fn open(self, open: &[u8], close: &'static [u8]) -> Result<Container<'w, 'b>, EncodeError> {
        if self.is_key() {
            return Err(EncodeError::KeyType);
        }
        self.writer.put_raw(open);
        Ok(Container {
            writer: self.writer,
            empty: true,
            close,
        })
    }

    /// Writes the start of an enum's variant that has data, as far as the data.
    fn open_variant(
        self,
        variant: &str,
        open: &[u8],
        close: &'static [u8],
    ) -> Result<Container<'w, 'b>, EncodeError> {
        let container = self.open(b"{", close)?;
        container.writer.put_str(variant.into());
        container.writer.put_raw(b":");
        container.writer.put_raw(open);
        Ok(container)
    }
}

macro_rules! integers {
    ($($serialize:ident $type:ty => $put:ident,)*) => {$(
        fn $serialize(self, value: $type) -> Result<(), EncodeError> {
            self.put_scalar(|writer| writer.$put(value.into()));
            Ok(())
        }
    )*};
}

impl<'w, 'b> ser::Serializer for Serializer<'w, 'b> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Container<'w, 'b>;
    type SerializeTuple = Container<'w, 'b>;
    type SerializeTupleStruct = Container<'w, 'b>;
    type SerializeTupleVariant = Container<'w, 'b>;
    type SerializeMap = Container<'w, 'b>;
    type SerializeStruct = Container<'w, 'b>;
    type SerializeStructVariant = Container<'w, 'b>;

    fn serialize_bool(self, value: bool) -> Result<(), EncodeError> {
        self.put_scalar(|writer| writer.put_bool(value));
        Ok(())
    }

    integers! {
        serialize_i8 i8 => put_i128,
        serialize_i16 i16 => put_i128,
        serialize_i32 i32 => put_i128,
        serialize_i64 i64 => put_i128,
        serialize_i128 i128 => put_i128,
        serialize_u8 u8 => put_u64,
        serialize_u16 u16 => put_u64,
        serialize_u32 u32 => put_u64,
        serialize_u64 u64 => put_u64,
        serialize_u128 u128 => put_u128,
        serialize_f32 f32 => put_f64,
        serialize_f64 f64 => put_f64,
    }

    fn serialize_char(self, value: char) -> Result<(), EncodeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), EncodeError> {
        match self.place {
            Place::Raw(_) => self.writer.put_raw(value.as_bytes()),
            Place::Key | Place::Value => self.writer.put_str(value.into()),
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        self.put_scalar(Writer::put_null);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        if name == TOKEN && !self.is_key() {
            return value.serialize(Serializer {
                writer: self.writer,
                place: Place::Raw(Cell::new(true)),
            });
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        let container = self.open_variant(variant, b"", b"}")?;
        put_serialize(container.writer, value)?;
        container.close()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple(self, _len: usize) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"[", b"]")
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open_variant(variant, b"[", b"]}")
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"{", b"}")
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open(b"{", b"}")
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'w, 'b>, EncodeError> {
        self.open_variant(variant, b"{", b"}}")
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        self.writer.put_raw(b"\"");
        write!(Escape(self.writer), "{value}").map_err(EncodeError::custom)?;
        self.writer.put_raw(b"\"");
        Ok(())
    }

    fn is_human_readable(&self) -> bool {
        match &self.place {
            Place::Raw(answer) => answer.replace(!answer.get()),
            Place::Key | Place::Value => true,
        }
    }
}

/// An array or object whose end is not written yet.
struct Container<'w, 'b> {
    writer: &'w mut Writer<'b>,
    empty: bool,
    close: &'static [u8],
}

impl Container<'_, '_> {
    fn put_comma(&mut self) {
        if !self.empty {
            self.writer.put_raw(b",");
        }
        self.empty = false;
    }

    fn put_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.put_comma();
        put_serialize(self.writer, value)
    }

    fn put_member<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.put_comma();
        self.writer.put_str(key.into());
        self.writer.put_raw(b":");
        put_serialize(self.writer, value)
    }

    fn close(self) -> Result<(), EncodeError> {
        self.writer.put_raw(self.close);
        Ok(())
    }
}

macro_rules! arrays {
    ($($trait:ident $serialize:ident,)*) => {$(
        impl ser::$trait for Container<'_, '_> {
            type Ok = ();
            type Error = EncodeError;

            fn $serialize<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.put_element(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    )*};
}

arrays! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! structs {
    ($($trait:ident,)*) => {$(
        impl ser::$trait for Container<'_, '_> {
            type Ok = ();
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), EncodeError> {
                self.put_member(key, value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    )*};
}

structs! {
    SerializeStruct,
    SerializeStructVariant,
}

impl ser::SerializeMap for Container<'_, '_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        self.put_comma();
        key.serialize(Serializer {
            writer: self.writer,
            place: Place::Key,
        })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.writer.put_raw(b":");
        put_serialize(self.writer, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.close()
    }
}

/// Escapes a text on its way into a string.
struct Escape<'w, 'b>(&'w mut Writer<'b>);

impl fmt::Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.put_escaped(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;
    use serde::Serialize;
    use std::collections::BTreeMap;
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    fn try_written<T: Serialize + ?Sized>(value: &T) -> Result<String, EncodeError> {
        let mut counter = Writer::new(&mut []);
        put_serialize(&mut counter, value)?;
        let mut buffer = vec![0xa5; counter.len()];
        let mut writer = Writer::new(&mut buffer);
        put_serialize(&mut writer, value)?;
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
        let text =
            r#"{"a":[1,-2,3.5,"x\n\"\\",true,null,{}],"b":{"c":[]},"d":18446744073709551615}"#;
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
}
