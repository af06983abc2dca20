//! The JSON of a header, taken apart.

use std::collections::HashSet;
use std::vec::Vec;

use super::super::{Error, ErrorKind, Key, METADATA, NAMES, PREFIX_LEN, SMALLER_THAN_A_BYTE};
use crate::Limits;
use crate::convert::to_u64;
use crate::dtype::DType;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::{Str, ValueType};
use crate::tensor::{Descriptor, Shape};

/// The header, its members apart.
pub(super) struct Header<'a> {
    pub(super) tensors: Vec<RawTensor<'a>>,
    pub(super) texts: Vec<Text<'a>>,
}

/// An entry of `__metadata__`.
pub(super) struct Text<'a> {
    pub(super) key: Str<'a>,
    pub(super) value: Str<'a>,
    /// Of the value, in the file.
    pub(super) at: usize,
}

impl<'a> Header<'a> {
    pub(super) fn read(header: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::from_bytes(header).map_err(json)?;
        let mut tensors = Vec::new();
        let mut texts = None;
        let mut seen = HashSet::new();
        // Nothing stands before it, as the format has it.
        members(&mut cursor, |cursor, name, at| {
            let name = checked(name, at)?;
            if name == METADATA {
                if texts.replace(take_texts(cursor)?).is_some() {
                    return Err(here(ErrorKind::DuplicateName, at));
                }
                return Ok(());
            }
            if !seen.insert(name) {
                return Err(here(ErrorKind::DuplicateName, at));
            }
            tensors.push(take_tensor(cursor, name, at)?);
            Ok(())
        })?;
        cursor.finish().map_err(json)?;
        let texts = texts.unwrap_or_default();
        Ok(Self { tensors, texts })
    }
}

/// A tensor as the header has it.
pub(super) struct RawTensor<'a> {
    pub(super) descriptor: Descriptor<'a>,
    /// From the start of the data, and before the end.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Of its name, in the file.
    pub(super) at: usize,
}

fn take_texts<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Text<'a>>, Error> {
    let mut texts = Vec::new();
    let mut seen = HashSet::new();
    if cursor.take_prefix(b"null") {
        return Ok(texts);
    }
    members(cursor, |cursor, key, at| {
        let key = checked(key, at)?;
        if !seen.insert(key) {
            return Err(here(ErrorKind::DuplicateName, at));
        }
        let at = cursor.offset();
        cursor.expect_type(ValueType::String).map_err(json)?;
        let value = checked(cursor.take_string().map_err(json)?, at)?;
        let at = at.saturating_add(PREFIX_LEN);
        texts.push(Text { key, value, at });
        Ok(())
    })?;
    Ok(texts)
}

fn take_tensor<'a>(
    cursor: &mut Cursor<'a>,
    name: Str<'a>,
    at: usize,
) -> Result<RawTensor<'a>, Error> {
    let (mut dtype, mut shape, mut offsets) = (None, None, None);
    members(cursor, |cursor, key, at| {
        let again = if key == "dtype" {
            dtype.replace(take_dtype(cursor)?).is_some()
        } else if key == "shape" {
            shape.replace(take_shape(cursor)?).is_some()
        } else if key == "data_offsets" {
            offsets.replace(take_offsets(cursor)?).is_some()
        } else {
            // Of the levels of the header, this is the third.
            cursor
                .skip_value(2, &Limits::new(), NonFinite::Refuse)
                .map_err(json)?;
            false
        };
        if again {
            return Err(json(DecodeError::new(DecodeErrorKind::DuplicateKey, at)));
        }
        Ok(())
    })?;
    let missing = |key| here(ErrorKind::MissingKey(key), at);
    let dtype = dtype.ok_or_else(|| missing(Key::DType))?;
    let shape = shape.ok_or_else(|| missing(Key::Shape))?;
    let ((start, end), offsets_at) = offsets.ok_or_else(|| missing(Key::DataOffsets))?;
    let descriptor = Descriptor::new(name, dtype, shape)
        .map_err(|_| here(ErrorKind::Header(DecodeErrorKind::ShapeOverflow), at))?;
    let Some(actual) = end.checked_sub(start) else {
        return Err(here(ErrorKind::OffsetPair, offsets_at));
    };
    let expected = descriptor.byte_len();
    if actual != to_u64(expected) {
        return Err(here(ErrorKind::ByteLength { expected, actual }, offsets_at));
    }
    let at = at.saturating_add(PREFIX_LEN);
    Ok(RawTensor {
        descriptor,
        start,
        end,
        at,
    })
}

fn take_dtype(cursor: &mut Cursor<'_>) -> Result<DType, Error> {
    cursor.expect_type(ValueType::String).map_err(json)?;
    let at = cursor.offset();
    let text = cursor.take_string().map_err(json)?;
    if let Some((dtype, _)) = NAMES.iter().find(|(_, name)| text == *name) {
        return Ok(*dtype);
    }
    let known = SMALLER_THAN_A_BYTE.iter().any(|name| text == *name);
    Err(here(
        if known {
            ErrorKind::UnsupportedDType
        } else {
            ErrorKind::UnknownDType
        },
        at,
    ))
}

fn take_shape<'a>(cursor: &mut Cursor<'a>) -> Result<Shape<'a>, Error> {
    let mut rank: usize = 0;
    let start = cursor.offset().saturating_add(1);
    elements(cursor, |cursor| {
        rank = rank.saturating_add(1);
        let at = cursor.offset();
        let dim = take_integer(
            cursor,
            DecodeErrorKind::BadDim,
            DecodeErrorKind::DimOverflow,
        )?;
        let fits = isize::try_from(dim).is_ok();
        fits.then_some(())
            .ok_or_else(|| here(ErrorKind::Header(DecodeErrorKind::DimOverflow), at))
    })?;
    // Without the brackets.
    let text = cursor.text_since(start);
    let text = text.strip_suffix(']').unwrap_or_default();
    Ok(Shape::from_text(text, rank))
}

/// Start and end, and where they stand.
fn take_offsets(cursor: &mut Cursor<'_>) -> Result<((u64, u64), usize), Error> {
    let at = cursor.offset();
    let (mut pair, mut count) = ((0, 0), 0_usize);
    elements(cursor, |cursor| {
        let number = take_integer(
            cursor,
            DecodeErrorKind::BadInteger,
            DecodeErrorKind::IntegerOverflow,
        )?;
        pair = (pair.1, number);
        count = count.saturating_add(1);
        Ok(())
    })?;
    if count != 2 {
        return Err(here(ErrorKind::OffsetPair, at));
    }
    Ok((pair, at))
}

fn take_integer(
    cursor: &mut Cursor<'_>,
    bad: DecodeErrorKind,
    over: DecodeErrorKind,
) -> Result<u64, Error> {
    cursor.expect_type(ValueType::Number).map_err(json)?;
    let at = cursor.offset();
    let (text, integer) = cursor.take_number(NonFinite::Refuse).map_err(json)?;
    if !integer || text.starts_with('-') {
        return Err(here(ErrorKind::Header(bad), at));
    }
    text.parse().map_err(|_| here(ErrorKind::Header(over), at))
}

/// Goes over the members of the object that is next; each one's value is for `take` to take.
fn members<'a>(
    cursor: &mut Cursor<'a>,
    mut take: impl FnMut(&mut Cursor<'a>, Str<'a>, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    cursor.expect_type(ValueType::Object).map_err(json)?;
    cursor.take_byte(b'{').map_err(json)?;
    cursor.skip_whitespace();
    let mut more = !cursor.take_if(b'}');
    while more {
        let at = cursor.offset();
        let key = cursor.take_key().map_err(json)?;
        take(cursor, key, at)?;
        more = cursor.take_separator(b'}').map_err(json)?;
    }
    Ok(())
}

/// Goes over the elements of the array that is next.
fn elements<'a>(
    cursor: &mut Cursor<'a>,
    mut take: impl FnMut(&mut Cursor<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    cursor.expect_type(ValueType::Array).map_err(json)?;
    cursor.take_byte(b'[').map_err(json)?;
    cursor.skip_whitespace();
    let mut more = !cursor.take_if(b']');
    while more {
        take(cursor)?;
        more = cursor.take_separator(b']').map_err(json)?;
    }
    Ok(())
}

/// A text that a Rust text can hold.
fn checked(text: Str<'_>, at: usize) -> Result<Str<'_>, Error> {
    match text.decoded_len() {
        Ok(_) => Ok(text),
        Err(_) => Err(here(ErrorKind::LoneSurrogate, at)),
    }
}

/// At a byte of the header.
const fn here(kind: ErrorKind, at: usize) -> Error {
    Error::new(kind, at.saturating_add(PREFIX_LEN))
}

fn json(error: DecodeError) -> Error {
    here(ErrorKind::Header(error.kind()), error.offset())
}
