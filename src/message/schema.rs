//! From JSON tokens to descriptors: the schema of the metadata frame.
//!
//! A descriptor is first tried as the exact bytes that Python writes, keys in
//! order and no white space. At the first byte that is not so, it is read again
//! from its start by the general cursor, which knows every order, escape and
//! error. The first way accepts nothing that the second does not, and fills the
//! row with the same values: a fuzz target holds the two against each other.

use super::options::Options;
use super::parts::{Keys, Name, digits, shape_and_dtype, take_dtype, take_list_index, take_shape};
use super::storage::{Row, Span, to_u32};
use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::scan::plain_run_hashed;
use crate::json::{Object, Value, ValueType};

/// The metadata frame, read whole; its descriptors are in the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed<'f> {
    pub(crate) text: &'f str,
    /// Of the fingerprints.
    pub(crate) key: u64,
    pub(crate) count: usize,
    pub(crate) scalars: Object<'f>,
    /// Where the list of descriptors starts.
    pub(crate) list_at: usize,
    pub(crate) tensor_bytes: usize,
}

/// Reads the metadata frame, and its descriptors into `rows`.
#[inline(always)]
pub(crate) fn parse<'f>(
    frame: &'f [u8],
    options: &Options,
    rows: &mut [Row],
) -> Result<Parsed<'f>, DecodeError> {
    let limits = options.limits();
    let limit = limits.metadata_bytes();
    if frame.len() > limit {
        let actual = frame.len();
        let kind = DecodeErrorKind::MetadataLimit { limit, actual };
        return Err(DecodeError::new(kind, 0));
    }
    // Where the rows lie; no peer knows.
    let hash_key = u64::try_from(rows.as_ptr().addr()).unwrap_or_default();
    let mut cursor = Cursor::from_bytes(frame)?;
    cursor.skip_whitespace();
    let start = cursor.offset();
    cursor.expect_type(ValueType::Object)?;

    let mut descriptors = None;
    let mut scalars = None;
    let mut keys = Keys::open(&mut cursor)?;
    while let Some(at) = keys.next_offset(&mut cursor)? {
        let duplicate = DecodeError::new(DecodeErrorKind::DuplicateKey, at);
        let key = take_metadata_key(&mut cursor)?;
        if key == Some(MetadataKey::TensorDescriptors) {
            if descriptors.is_some() {
                return Err(duplicate);
            }
            let list_at = cursor.offset();
            let list = take_descriptors(&mut cursor, options, hash_key, rows)?;
            descriptors = Some((list, list_at));
        } else if key == Some(MetadataKey::ScalarFields) {
            if scalars.is_some() {
                return Err(duplicate);
            }
            cursor.expect_type(ValueType::Object)?;
            let at = cursor.offset();
            cursor.skip_value(1, limits, options.non_finite())?;
            scalars = Some(Object::new(Value::new(cursor.text_since(at), at)));
        } else {
            cursor.out_of_line(|cursor| cursor.skip_value(1, limits, NonFinite::Refuse))?;
        }
    }
    let text = cursor.text();
    cursor.finish()?;
    let missing = DecodeErrorKind::MissingKey(SchemaKey::TensorDescriptors);
    let ((count, tensor_bytes), list_at) =
        descriptors.ok_or_else(|| DecodeError::new(missing, start))?;
    Ok(Parsed {
        text,
        key: hash_key,
        count,
        scalars: scalars.unwrap_or(Object::EMPTY),
        list_at,
        tensor_bytes,
    })
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum MetadataKey {
    ScalarFields,
    TensorDescriptors,
}

/// Takes a key of the metadata; `None` for one that is skipped.
#[inline(always)]
fn take_metadata_key(cursor: &mut Cursor<'_>) -> Result<Option<MetadataKey>, DecodeError> {
    // As Python writes them; any other spelling goes the general way.
    for (written, key) in [
        (
            &br#""tensor_descriptors":"#[..],
            MetadataKey::TensorDescriptors,
        ),
        (&br#""scalar_fields":"#[..], MetadataKey::ScalarFields),
    ] {
        if cursor.take_prefix(written) {
            cursor.skip_whitespace();
            return Ok(Some(key));
        }
    }
    let key = cursor.take_key()?;
    Ok(if key == "tensor_descriptors" {
        Some(MetadataKey::TensorDescriptors)
    } else if key == "scalar_fields" {
        Some(MetadataKey::ScalarFields)
    } else {
        None
    })
}

/// Takes the array of descriptors; gives their number and the sum of their sizes.
#[inline(always)]
fn take_descriptors(
    cursor: &mut Cursor<'_>,
    options: &Options,
    hash_key: u64,
    rows: &mut [Row],
) -> Result<(usize, usize), DecodeError> {
    cursor.expect_type(ValueType::Array)?;
    cursor.take_byte(b'[')?;
    cursor.skip_whitespace();
    if cursor.take_if(b']') {
        return Ok((0, 0));
    }
    let capacity = rows.len();
    let mut rows = rows.iter_mut();
    let mut count: usize = 0;
    let mut tensor_bytes: usize = 0;
    // A local of its own is what stays in registers, whatever becomes of the cursor.
    let mut rest = cursor.rest();
    loop {
        let limit = options.limits().descriptors();
        if count >= limit {
            cursor.advance_to(rest);
            return Err(cursor.error(DecodeErrorKind::DescriptorLimit { limit }));
        }
        let Some(row) = rows.next() else {
            cursor.advance_to(rest);
            return Err(cursor.error(DecodeErrorKind::StorageFull { capacity }));
        };
        let written = options
            .speculates()
            .then(|| speculate(rest, cursor.text().len(), options, hash_key))
            .flatten();
        if let Some((described, tail)) = written {
            *row = described;
            rest = tail;
        } else {
            cursor.advance_to(rest);
            *row = cursor
                .out_of_line(|cursor| take_any_descriptor(cursor, options, hash_key))
                .map_err(|error| error.in_descriptor(count))?;
            rest = cursor.rest();
        }
        let limit = options.limits().tensor_bytes();
        match tensor_bytes.checked_add(row.layout.byte_len()) {
            Some(sum) if sum <= limit => tensor_bytes = sum,
            _ => return Err(row.error(count, DecodeErrorKind::TensorBytesLimit { limit })),
        }
        // Each descriptor takes bytes of the frame, so the count fits.
        count = count.wrapping_add(1);
        if let Some(next @ [b'{', ..]) = rest.strip_prefix(b",") {
            rest = next;
            continue;
        }
        cursor.advance_to(rest);
        if !cursor.take_separator(b']')? {
            return Ok((count, tensor_bytes));
        }
        rest = cursor.rest();
    }
}

/// The descriptor as Python writes it, and what follows it; `None` if it is anything else.
///
/// `whole` is a tail of a metadata frame of `length` bytes.
#[inline(always)]
fn speculate<'f>(
    whole: &'f [u8],
    length: usize,
    options: &Options,
    key: u64,
) -> Option<(Row, &'f [u8])> {
    let limits = options.limits();
    let at = |rest: &[u8]| length.wrapping_sub(rest.len());

    let name = whole.strip_prefix(br#"{"field_name":""#)?;
    let (name_length, fingerprint) = plain_run_hashed(name, key);
    if name_length > limits.name_bytes() {
        return None;
    }
    let rest = name.get(name_length..)?;
    let name = Name {
        span: Span::between(to_u32(at(name)), to_u32(at(rest))),
        escaped: false,
        fingerprint,
    };

    let shape = rest.strip_prefix(br#"","shape":["#)?;
    let (dims, dtype, rest) = shape_and_dtype(shape, length, options)?;
    let rest = rest.strip_prefix(br#"","list_index":"#)?;
    let (list_index, rest) = match rest {
        [b'-', b'1', b'}', rest @ ..] => (None, rest),
        _ => {
            let (index, rest) = digits(rest)?;
            if index > limits.list_index() {
                return None;
            }
            (Some(to_u32(index)), rest.strip_prefix(b"}")?)
        }
    };
    let row = Row::new(at(whole), name, dims, dtype, list_index)?;
    Some((row, rest))
}

/// The descriptor in whatever order and spelling it comes.
#[inline(never)]
fn take_any_descriptor(
    cursor: &mut Cursor<'_>,
    options: &Options,
    hash_key: u64,
) -> Result<Row, DecodeError> {
    let at = cursor.offset();
    cursor.expect_type(ValueType::Object)?;
    let mut name = None;
    let mut dims = None;
    let mut dtype = None;
    let mut list_index = None;
    let mut keys = Keys::open(cursor)?;
    while let Some((key, key_at)) = keys.next(cursor)? {
        let twice = if key == "field_name" {
            name.replace(take_name(cursor, options, hash_key)?)
                .is_some()
        } else if key == "shape" {
            dims.replace(take_shape(cursor, options)?).is_some()
        } else if key == "dtype" {
            dtype.replace(take_dtype(cursor, options)?).is_some()
        } else if key == "list_index" {
            list_index
                .replace(take_list_index(cursor, options)?)
                .is_some()
        } else {
            // Inside the metadata, the list and the descriptor.
            cursor.skip_value(3, options.limits(), NonFinite::Refuse)?;
            false
        };
        if twice {
            return Err(DecodeError::new(DecodeErrorKind::DuplicateKey, key_at));
        }
    }
    let missing = |key| DecodeError::new(DecodeErrorKind::MissingKey(key), at);
    let name: Name = name.ok_or_else(|| missing(SchemaKey::FieldName))?;
    let dims = dims.ok_or_else(|| missing(SchemaKey::Shape))?;
    let dtype = dtype.ok_or_else(|| missing(SchemaKey::DType))?;
    let overflow = DecodeError::new(DecodeErrorKind::ShapeOverflow, dims.span.start());
    Row::new(at, name, dims, dtype, list_index.flatten()).ok_or(overflow)
}

fn take_name(
    cursor: &mut Cursor<'_>,
    options: &Options,
    hash_key: u64,
) -> Result<Name, DecodeError> {
    cursor.expect_type(ValueType::String)?;
    let at = cursor.offset();
    Name::new(cursor.take_string()?, at, options, hash_key)
}
