//! Scalars as an owned tree: generated, written, and compared with what is read.

use std::cell::OnceCell;

use arbitrary::Arbitrary;
use tensorwire::Scalar;
use tensorwire::json::{Object, Value};

/// A scalar that owns what it is made of.
#[derive(Arbitrary, Clone, Debug)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i128),
    Small(i8),
    UInt(u128),
    Float(f64),
    Str(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Where the borrowed form of trees is kept: one place for each container.
#[derive(Debug, Default)]
pub struct Place<'a> {
    list: OnceCell<Vec<Scalar<'a>>>,
    members: OnceCell<Vec<(&'a str, Scalar<'a>)>>,
}

impl Tree {
    /// How many containers there are in it, itself among them.
    pub fn containers(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::containers).sum::<usize>(),
            Self::Object(members) => 1 + members_containers(members),
            _ => 0,
        }
    }

    /// How deep it nests.
    pub fn depth(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => 1 + members_depth(members),
            _ => 0,
        }
    }

    /// The scalar to write; `places` has as many places as there are containers.
    pub fn scalar<'a>(&'a self, places: &mut &'a [Place<'a>]) -> Scalar<'a> {
        match self {
            Self::Null => Scalar::Null,
            Self::Bool(value) => Scalar::from(*value),
            Self::Int(value) => Scalar::from(*value),
            Self::Small(value) => Scalar::from(*value),
            Self::UInt(value) => Scalar::from(*value),
            Self::Float(value) => Scalar::from(*value),
            Self::Str(value) => Scalar::from(value.as_str()),
            Self::List(items) => {
                let place = take_place(places);
                let items = items.iter().map(|item| item.scalar(places)).collect();
                Scalar::List(place.list.get_or_init(|| items))
            }
            Self::Object(members) => {
                let place = take_place(places);
                let members = scalars(members, places);
                Scalar::Object(place.members.get_or_init(|| members))
            }
        }
    }

    /// Asserts that `value` says the same.
    pub fn assert_read(&self, value: Value<'_>) {
        match self {
            Self::Null => assert!(value.is_null()),
            Self::Bool(expected) => assert_eq!(value.as_bool(), Ok(*expected)),
            Self::Small(expected) => assert_eq!(value.as_i64(), Ok(i64::from(*expected))),
            Self::Int(expected) => {
                assert!(value.is_integer());
                assert_eq!(value.as_i128(), Ok(*expected));
                assert_eq!(value.as_u128().ok(), u128::try_from(*expected).ok());
                assert_eq!(value.as_i64().ok(), i64::try_from(*expected).ok());
                assert_eq!(value.as_u64().ok(), u64::try_from(*expected).ok());
            }
            Self::UInt(expected) => {
                assert_eq!(value.as_u128(), Ok(*expected));
                assert_eq!(value.as_i128().ok(), i128::try_from(*expected).ok());
            }
            Self::Float(expected) => {
                let read = value.as_f64().unwrap();
                assert!(read.to_bits() == expected.to_bits() || read.is_nan() && expected.is_nan());
                assert!(!value.is_integer() && value.as_i64().is_err());
            }
            Self::Str(expected) => {
                let text = value.as_str().unwrap();
                assert!(text == expected.as_str());
                assert_eq!(text.to_cow().unwrap(), *expected);
                assert_eq!(text.decoded_len(), Ok(expected.len()));
                let mut buffer = vec![0xa5; expected.len()];
                assert_eq!(text.copy_to(&mut buffer), Ok(expected.as_str()));
            }
            Self::List(expected) => {
                let array = value.as_array().unwrap();
                assert_eq!(array.iter().count(), expected.len());
                for (expected, value) in expected.iter().zip(array) {
                    expected.assert_read(value);
                }
            }
            Self::Object(expected) => assert_members(expected, value.as_object().unwrap()),
        }
    }

    /// Asserts that serde_json read the same, as far as its own values can hold it.
    ///
    /// What they cannot hold: integers past 64 bits (it makes floats of them).
    /// The three tokens it refuses; the caller leaves such trees out.
    pub fn assert_serde(&self, value: &serde_json::Value) {
        match self {
            Self::Null => assert!(value.is_null()),
            Self::Bool(expected) => assert_eq!(value.as_bool(), Some(*expected)),
            Self::Small(expected) => assert_eq!(value.as_i64(), Some(i64::from(*expected))),
            Self::Int(expected) => assert_serde_integer(
                i64::try_from(*expected).ok(),
                u64::try_from(*expected).ok(),
                value,
            ),
            Self::UInt(expected) => assert_serde_integer(
                i64::try_from(*expected).ok(),
                u64::try_from(*expected).ok(),
                value,
            ),
            Self::Float(expected) => assert_eq!(
                value.as_f64().map(f64::to_bits),
                Some(expected.to_bits()),
                "{expected:e}"
            ),
            Self::Str(expected) => assert_eq!(value.as_str(), Some(expected.as_str())),
            Self::List(expected) => {
                let items = value.as_array().unwrap();
                assert_eq!(items.len(), expected.len());
                for (expected, value) in expected.iter().zip(items) {
                    expected.assert_serde(value);
                }
            }
            Self::Object(expected) => assert_serde_members(expected, value),
        }
    }

    /// Whether Python would write one of the three tokens for a part of it.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Float(value) => value.is_finite(),
            Self::List(items) => items.iter().all(Self::is_finite),
            Self::Object(members) => members_are_finite(members),
            _ => true,
        }
    }
}

/// Places for these members' containers.
pub fn places<'a>(members: &[(String, Tree)]) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    places.resize_with(members_containers(members), Place::default);
    places
}

/// The members to write.
pub fn scalars<'a>(
    members: &'a [(String, Tree)],
    places: &mut &'a [Place<'a>],
) -> Vec<(&'a str, Scalar<'a>)> {
    members
        .iter()
        .map(|(key, value)| (key.as_str(), value.scalar(places)))
        .collect()
}

/// Asserts that `object` has just these members, in this order.
pub fn assert_members(expected: &[(String, Tree)], object: Object<'_>) {
    assert_eq!(object.iter().count(), expected.len());
    assert_eq!(object.is_empty(), expected.is_empty());
    for ((key, value), (name, read)) in expected.iter().zip(object) {
        assert!(name == key.as_str());
        value.assert_read(read);
        // Of several with one key the last.
        let last = expected.iter().rposition(|(other, _)| other == key);
        let offset = object.iter().nth(last.unwrap()).unwrap().1.offset();
        assert_eq!(object.field(key).unwrap().offset(), offset);
    }
}

/// As [`Tree::assert_serde`]; of several members with one key serde_json keeps the last.
pub fn assert_serde_members(expected: &[(String, Tree)], value: &serde_json::Value) {
    let object = value.as_object().unwrap();
    for (index, (key, value)) in expected.iter().enumerate() {
        let later = &expected[index + 1..];
        if later.iter().all(|(other, _)| other != key) {
            value.assert_serde(&object[key]);
        }
    }
    assert!(
        object
            .keys()
            .all(|key| expected.iter().any(|(other, _)| other == key))
    );
}

pub fn members_are_finite(members: &[(String, Tree)]) -> bool {
    members.iter().all(|(_, value)| value.is_finite())
}

pub fn members_depth(members: &[(String, Tree)]) -> usize {
    let depths = members.iter().map(|(_, value)| value.depth());
    depths.max().unwrap_or(0)
}

fn members_containers(members: &[(String, Tree)]) -> usize {
    members.iter().map(|(_, value)| value.containers()).sum()
}

fn take_place<'a>(places: &mut &'a [Place<'a>]) -> &'a Place<'a> {
    let (first, rest) = places.split_first().unwrap();
    *places = rest;
    first
}

fn assert_serde_integer(signed: Option<i64>, unsigned: Option<u64>, value: &serde_json::Value) {
    if signed.is_some() || unsigned.is_some() {
        assert_eq!((value.as_i64(), value.as_u64()), (signed, unsigned));
    } else {
        assert!(value.is_f64());
    }
}
