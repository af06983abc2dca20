//! What deserializes is what the text says, and serializes to a text that says the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use serde::de::{self, Deserialize, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serialize};
use tensorwire::error::{DeserializeErrorKind, EncodeError, ValueErrorKind};
use tensorwire::json::{Object, Value, ValueType};
use tensorwire::message::{NO_TENSORS, ScalarFields, Serialized, encode_to_vec, encoded_len};

use super::naive::{self, Json, Node};

/// [`tensorwire::Limits::MAX_DEPTH`], which `Value::parse` allows.
const MAX_DEPTH: usize = 128;

/// What serde_json reads without its own limit in the way.
const SERDE_JSON_DEPTH: usize = 100;

pub fn run(data: &[u8]) {
    let Ok(value) = Value::parse(data) else {
        return;
    };
    let text = value.raw();
    let node = Node::parse(text, MAX_DEPTH).unwrap();
    // Offsets are those of the document, and tell nothing new here.
    let value = Value::parse(text.as_bytes()).unwrap();

    any_tree(value, &node);
    let common = is_common(&node);
    agree::<BTreeMap<String, f64>>(value, common);
    // It does not read integers off keys with escapes.
    agree::<BTreeMap<i64, Vec<Option<bool>>>>(value, false);
    agree::<Vec<(u8, i128)>>(value, common);
    agree::<Vec<Mode>>(value, common);
    agree::<Option<Request>>(value, common);
    agree::<Strict>(value, common);
    agree::<Flat>(value, common);
    agree::<Tagged>(value, common);
    lazy(value);
    #[cfg(feature = "simd-json")]
    simd(value);
}

// ---- anything ----

/// All that a deserializer can say of itself.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Null,
    Bool(bool),
    Integer(i128),
    Huge(u128),
    /// By its bits, as NaN is not equal to itself.
    Float(u64),
    Str(String),
    List(Vec<Self>),
    Members(Vec<(String, Self)>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        assert!(value < 0);
        Ok(Tree::Integer(value.into()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Tree, E> {
        assert!(value > u128::from(u64::MAX));
        Ok(i128::try_from(value).map_or(Tree::Huge(value), Tree::Integer))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Tree, E> {
        assert!(value < i128::from(i64::MIN));
        Ok(Tree::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Str(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            list.push(element);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Members(members))
    }
}

impl Serialize for Tree {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i128(*value),
            Self::Huge(value) => serializer.serialize_u128(*value),
            Self::Float(bits) => serializer.serialize_f64(f64::from_bits(*bits)),
            Self::Str(text) => serializer.serialize_str(text),
            Self::List(list) => list.serialize(serializer),
            Self::Members(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

impl Tree {
    fn float(value: f64) -> Self {
        let one_nan = if value.is_nan() { f64::NAN } else { value };
        Self::Float(one_nan.to_bits())
    }

    /// What the text says, or `None` if a string or number in it has no such type.
    fn of(node: &Node<'_>) -> Option<Self> {
        Some(match &node.json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::NonFinite => Self::float(node.raw.parse().unwrap()),
            Json::Number => {
                let float: f64 = node.raw.parse().unwrap();
                if let Ok(integer) = node.raw.parse() {
                    Self::Integer(integer)
                } else if let Ok(integer) = node.raw.parse() {
                    Self::Huge(integer)
                } else if float.is_infinite() && !node.raw.contains(['.', 'e', 'E']) {
                    return None;
                } else {
                    Self::float(float)
                }
            }
            Json::Str(points) => Self::Str(naive::text(points)?),
            Json::Array(items) => Self::List(items.iter().map(Self::of).collect::<Option<_>>()?),
            Json::Object(members) => {
                let member =
                    |(key, node): &(Vec<u32>, Node<'_>)| Some((naive::text(key)?, Self::of(node)?));
                Self::Members(members.iter().map(member).collect::<Option<_>>()?)
            }
        })
    }
}

fn any_tree(value: Value<'_>, node: &Node<'_>) {
    let is_object = value.value_type() == ValueType::Object;
    let kept = is_object.then_some(value.raw().to_string());
    let refused = EncodeError::ScalarsNotAnObject;
    assert_eq!(scalars(&Serialized(value)), kept.ok_or(refused));

    let result = value.deserialize::<Tree>();
    assert_eq!(result.as_ref().ok(), Tree::of(node).as_ref());
    match result {
        Ok(tree) => {
            let written = written_again(&tree);
            if is_common(&Node::parse(&written, MAX_DEPTH).unwrap()) {
                assert_eq!(serde_json::from_str::<Tree>(&written).unwrap(), tree);
            }
        }
        Err(error) => {
            assert!(error.offset() < value.raw().len());
            let expected = [
                ValueErrorKind::LoneSurrogate,
                ValueErrorKind::NumberOutOfRange,
            ];
            let expected = expected.map(DeserializeErrorKind::Value);
            assert!(expected.contains(&error.kind()), "{error}");
        }
    }
}

// ---- what serde_json reads as well ----

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
enum Mode {
    Off,
    Scale(f64),
    Range(i8, u8),
    Schedule { from: u32, to: Option<u32> },
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
struct Request {
    a: Option<u64>,
    #[serde(default, alias = "bb")]
    b: Vec<Mode>,
    #[serde(default)]
    c: Option<Box<Self>>,
    #[serde(default)]
    d: (),
    #[serde(default)]
    e: String,
    #[serde(default)]
    f: BTreeMap<String, Option<char>>,
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: Option<i64>,
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
struct Flat {
    a: Option<u64>,
    #[serde(flatten)]
    rest: BTreeMap<String, bool>,
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(tag = "a")]
enum Tagged {
    Off,
    On { b: Vec<u8> },
}

/// Whether serde_json has the same grammar and the same types for all of it.
///
/// It takes `-0` for a float, refuses what rounds to infinity, decodes the
/// strings that nobody asked for, and nests less deep.
fn is_common(node: &Node<'_>) -> bool {
    node.is_text()
        && node.depth() <= SERDE_JSON_DEPTH
        && node.all(&mut |node| match node.json {
            Json::NonFinite => false,
            Json::Number => {
                let float: f64 = node.raw.parse().unwrap();
                let is_integer = !node.raw.contains(['.', 'e', 'E']);
                // Integers past 64 bits are floats to it, where any type will do.
                let fits = node.raw.parse::<i64>().is_ok() || node.raw.parse::<u64>().is_ok();
                float.is_finite() && node.raw != "-0" && (fits || !is_integer)
            }
            _ => true,
        })
}

/// What serde_json reads as a `T` is read the same, written, and read again.
///
/// Unless it is `common`, the text may be one that serde_json refuses alone.
fn agree<T>(value: Value<'_>, common: bool)
where
    T: Debug + PartialEq + Serialize + for<'de> Deserialize<'de>,
{
    let ours = value.deserialize::<T>();
    let theirs = serde_json::from_str::<T>(value.raw());
    if common {
        assert_eq!(
            ours.is_ok(),
            theirs.is_ok(),
            "{ours:?} {theirs:?} {}",
            value.raw()
        );
    }
    match (ours, theirs) {
        (Ok(ours), theirs) => {
            written_again(&ours);
            // As texts, so that NaN is equal to itself, and zero not to its negative.
            if let Ok(theirs) = theirs {
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            }
        }
        // It reads nothing that is refused here.
        (Err(error), Ok(theirs)) => panic!("{error}: {theirs:?}"),
        (Err(error), Err(_)) => {
            assert!(error.offset() <= value.raw().len());
            assert!(error.to_string().len() <= 160);
        }
    }
}

// ---- out and in again ----

/// What is written as scalars.
fn scalars<S: ScalarFields>(scalars: &S) -> Result<String, EncodeError> {
    let length = encoded_len(NO_TENSORS, scalars);
    let frame = encode_to_vec(NO_TENSORS, scalars);
    assert_eq!(frame.as_ref().map(Vec::len), length.as_ref().copied());
    let text = String::from_utf8(frame?).unwrap();
    let text = text.strip_prefix(r#"{"tensor_descriptors":[],"scalar_fields":"#);
    Ok(text.unwrap().strip_suffix('}').unwrap().to_string())
}

/// Writes `thing`, reads it and writes it: twice the same text, which is returned.
fn written_again<T: Serialize + for<'de> Deserialize<'de>>(thing: &T) -> String {
    // Only an object is scalars by itself.
    let first = scalars(&Serialized(BTreeMap::from([("x", thing)]))).unwrap();
    assert!(first.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    let inside = first.strip_prefix(r#"{"x":"#).unwrap();
    let inside = inside.strip_suffix('}').unwrap();
    let alone = inside.starts_with('{').then_some(inside.to_string());
    let refused = EncodeError::ScalarsNotAnObject;
    assert_eq!(scalars(&Serialized(thing)), alone.ok_or(refused));

    let value = Value::parse(inside.as_bytes()).unwrap();
    let again: T = value.deserialize().unwrap();
    let again = scalars(&Serialized(BTreeMap::from([("x", &again)])));
    assert_eq!(again.as_deref(), Ok(&*first));
    inside.to_string()
}

// ---- parts kept as they stand ----

#[derive(Debug, serde::Deserialize, serde::Serialize)]
struct Lazy<'a> {
    #[serde(borrow, default)]
    a: Option<Value<'a>>,
    #[serde(borrow, default)]
    b: Vec<Value<'a>>,
    #[serde(borrow, default)]
    c: Option<Object<'a>>,
    #[serde(borrow, default)]
    d: Cow<'a, str>,
}

fn lazy(value: Value<'_>) {
    let Ok(lazy) = value.deserialize::<Lazy<'_>>() else {
        return;
    };
    if let Ok(object) = value.as_object() {
        let present = |key| object.get(key).filter(|value| !value.is_null());
        let place = |value: Value<'_>| (value.raw().to_string(), value.offset());
        assert_eq!(lazy.a.map(place), present("a").map(place));
        let c = lazy.c.map(|object| object.as_value());
        assert_eq!(c.map(place), present("c").map(place));
        let elements = object.get("b").map(|b| b.as_array().unwrap());
        let elements = elements.into_iter().flatten().map(place);
        assert!(elements.eq(lazy.b.iter().copied().map(place)));
        if let Some(text) = object.get("d") {
            assert!(text.as_str().unwrap() == *lazy.d);
        }
    }
    let written = scalars(&Serialized(&lazy)).unwrap();
    let again = Value::parse(written.as_bytes()).unwrap();
    let again: Lazy<'_> = again.deserialize().unwrap();
    assert_eq!(scalars(&Serialized(&again)).unwrap(), written);
}

// ---- simd_json ----

#[cfg(feature = "simd-json")]
fn simd(value: Value<'_>) {
    use tensorwire::json::simd_json::{Reader, Via};

    let mut reader = Reader::new();
    let (read, via) = reader.read(value);
    simd_value(&read, value);
    drop(read);
    // What has one token that simd_json refuses takes the other way.
    let refused = format!("[{},NaN]", value.raw());
    if let Ok(both) = Value::parse(refused.as_bytes()) {
        let (read, fallback) = reader.read(both);
        assert_eq!(fallback, Via::Fallback);
        simd_value(&read, both);
    }
    let (_, again) = reader.read(value);
    assert_eq!(via, again);
}

/// Holds a value of simd_json against the text.
#[cfg(feature = "simd-json")]
fn simd_value(read: &simd_json::BorrowedValue<'_>, value: Value<'_>) {
    use std::collections::HashMap;

    use simd_json::{BorrowedValue, StaticNode};

    match read {
        BorrowedValue::Static(StaticNode::Null) => assert!(value.is_null()),
        BorrowedValue::Static(StaticNode::Bool(read)) => assert_eq!(value.as_bool(), Ok(*read)),
        BorrowedValue::Static(StaticNode::U64(read)) => {
            assert_eq!(value.as_u64(), Ok(*read));
            assert!(!value.raw().starts_with('-'));
        }
        BorrowedValue::Static(StaticNode::I64(read)) => {
            assert_eq!(value.as_i64(), Ok(*read));
            assert!(value.raw().starts_with('-'));
        }
        BorrowedValue::Static(StaticNode::F64(read)) => {
            let float: f64 = value.raw().parse().unwrap();
            assert!(float.to_bits() == read.to_bits() || float.is_nan() && read.is_nan());
            assert!(value.as_u64().is_err() && value.as_i64().is_err());
        }
        BorrowedValue::String(read) => assert_eq!(*read, value.as_str().unwrap().to_cow_lossy()),
        BorrowedValue::Array(read) => {
            let array = value.as_array().unwrap();
            assert_eq!(array.iter().count(), read.len());
            for (read, value) in read.iter().zip(array) {
                simd_value(read, value);
            }
        }
        BorrowedValue::Object(read) => {
            // The last of each key, as it is once lone surrogates are replaced.
            let members = value.as_object().unwrap().iter();
            let last: HashMap<_, _> = members
                .map(|(key, value)| (key.to_cow_lossy(), value))
                .collect();
            assert_eq!(last.len(), read.len());
            for (key, value) in last {
                simd_value(&read[&*key], value);
            }
        }
    }
}
