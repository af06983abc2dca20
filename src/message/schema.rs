//! From JSON tokens to descriptors: the schema of the metadata frame.
//!
//! A descriptor is first tried as the exact bytes that Python writes, keys in
//! order and no white space. At the first byte that is not so, it is read again
//! from its start by the general cursor, which knows every order, escape and
//! error. The first way accepts nothing that the second does not, and fills the
//! slot with the same values: a fuzz target holds the two against each other.

use super::options::Options;
use super::storage::{Slot, Span, to_u32};
use crate::dtype::DType;
use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::scan::plain_run_hashed;
use crate::json::{Object, Str, Value, ValueType};
use crate::tensor::{DimProduct, Layout};

/// The metadata frame, read whole; its descriptors are in the slots.
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

/// Reads the metadata frame, and its descriptors into `slots`.
#[inline(always)]
pub(crate) fn parse<'f>(
    frame: &'f [u8],
    options: &Options,
    slots: &mut [Slot],
) -> Result<Parsed<'f>, DecodeError> {
    let limits = options.limits();
    let limit = limits.metadata_bytes();
    if frame.len() > limit {
        let actual = frame.len();
        let kind = DecodeErrorKind::MetadataLimit { limit, actual };
        return Err(DecodeError::new(kind, 0));
    }
    // Where the slots lie; no peer knows.
    let hash_key = u64::try_from(slots.as_ptr().addr()).unwrap_or_default();
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
            let list = take_descriptors(&mut cursor, options, hash_key, slots)?;
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
    slots: &mut [Slot],
) -> Result<(usize, usize), DecodeError> {
    cursor.expect_type(ValueType::Array)?;
    cursor.take_byte(b'[')?;
    cursor.skip_whitespace();
    if cursor.take_if(b']') {
        return Ok((0, 0));
    }
    let capacity = slots.len();
    let mut slots = slots.iter_mut();
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
        let Some(slot) = slots.next() else {
            cursor.advance_to(rest);
            return Err(cursor.error(DecodeErrorKind::StorageFull { capacity }));
        };
        let written = options
            .speculates()
            .then(|| speculate(rest, cursor.text().len(), options, hash_key))
            .flatten();
        if let Some((described, tail)) = written {
            *slot = described;
            rest = tail;
        } else {
            cursor.advance_to(rest);
            *slot = cursor
                .out_of_line(|cursor| take_any_descriptor(cursor, options, hash_key))
                .map_err(|error| error.in_descriptor(count))?;
            rest = cursor.rest();
        }
        let limit = options.limits().tensor_bytes();
        match tensor_bytes.checked_add(slot.layout.byte_len()) {
            Some(sum) if sum <= limit => tensor_bytes = sum,
            _ => return Err(slot.error(count, DecodeErrorKind::TensorBytesLimit { limit })),
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
) -> Option<(Slot, &'f [u8])> {
    let limits = options.limits();
    let offset = |rest: &[u8]| to_u32(length.wrapping_sub(rest.len()));

    let name = whole.strip_prefix(br#"{"field_name":""#)?;
    let (name_length, fingerprint) = plain_run_hashed(name, key);
    if name_length > limits.name_bytes() {
        return None;
    }
    let rest = name.get(name_length..)?;
    let name = Span::between(offset(name), offset(rest));

    let shape = rest.strip_prefix(br#"","shape":["#)?;
    let (product, rank, rest) = dims(shape)?;
    if rank > limits.rank() {
        return None;
    }
    let shape = Span::between(offset(shape), offset(rest));

    let rest = rest.strip_prefix(br#"],"dtype":""#)?;
    let (dtype, rest) = DType::strip_prefix(rest)?;
    if dtype.generation() > options.generation() {
        return None;
    }
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
    let slot = Slot {
        at: offset(whole),
        name,
        name_escaped: false,
        fingerprint,
        shape,
        rank: to_u32(rank),
        dtype,
        list_index,
        layout: Layout::new(product, dtype)?,
    };
    Some((slot, rest))
}

/// The dimensions up to the closing bracket: their product, their number, and the rest.
#[inline(always)]
fn dims(bytes: &[u8]) -> Option<(DimProduct, usize, &[u8])> {
    let mut product = DimProduct::new();
    let mut rank: usize = 0;
    let mut rest = bytes;
    if let [b']', ..] = rest {
        return Some((product, rank, rest));
    }
    loop {
        let (dim, tail) = digits(rest)?;
        product.push(dim);
        rank = rank.wrapping_add(1);
        match tail {
            [b',', tail @ ..] => rest = tail,
            [b']', ..] => return Some((product, rank, tail)),
            _ => return None,
        }
    }
}

/// A plain integer of at most 18 digits, which no arithmetic here overflows.
#[inline(always)]
fn digits(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let [first, tail @ ..] = bytes else {
        return None;
    };
    let mut value = match first {
        b'1'..=b'9' => u64::from(first & 0x0f),
        // Whatever digit comes next is out of place.
        b'0' => return Some((0, tail)),
        _ => return None,
    };
    let mut rest = tail;
    while let [byte, tail @ ..] = rest
        && let digit @ 0..=9 = byte.wrapping_sub(b'0')
    {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        rest = tail;
    }
    if bytes.len().wrapping_sub(rest.len()) > 18 {
        return None;
    }
    Some((usize::try_from(value).ok()?, rest))
}

/// The descriptor in whatever order and spelling it comes.
#[inline(never)]
fn take_any_descriptor(
    cursor: &mut Cursor<'_>,
    options: &Options,
    hash_key: u64,
) -> Result<Slot, DecodeError> {
    let at = cursor.offset();
    cursor.expect_type(ValueType::Object)?;
    let mut name = None;
    let mut shape = None;
    let mut dtype = None;
    let mut list_index = None;
    let mut keys = Keys::open(cursor)?;
    while let Some((key, key_at)) = keys.next(cursor)? {
        let twice = if key == "field_name" {
            name.replace(take_name(cursor, options, hash_key)?)
                .is_some()
        } else if key == "shape" {
            shape.replace(take_shape(cursor, options)?).is_some()
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
    let (shape, rank, product) = shape.ok_or_else(|| missing(SchemaKey::Shape))?;
    let dtype = dtype.ok_or_else(|| missing(SchemaKey::DType))?;
    let overflow = DecodeError::new(DecodeErrorKind::ShapeOverflow, shape.start());
    Ok(Slot {
        at: to_u32(at),
        name: name.span,
        name_escaped: name.escaped,
        fingerprint: name.fingerprint,
        shape,
        rank,
        dtype,
        list_index: list_index.flatten(),
        layout: Layout::new(product, dtype).ok_or(overflow)?,
    })
}

/// A span of the metadata, which is at most `u32::MAX` bytes.
const fn span(start: usize, end: usize) -> Span {
    Span::between(to_u32(start), to_u32(end))
}

/// A descriptor's name.
struct Name {
    span: Span,
    escaped: bool,
    fingerprint: u32,
}

fn take_name(
    cursor: &mut Cursor<'_>,
    options: &Options,
    hash_key: u64,
) -> Result<Name, DecodeError> {
    cursor.expect_type(ValueType::String)?;
    let at = cursor.offset();
    let name = cursor.take_string()?;
    let Ok(actual) = name.decoded_len() else {
        return Err(DecodeError::new(DecodeErrorKind::InvalidName, at));
    };
    let limit = options.limits().name_bytes();
    if actual > limit {
        let kind = DecodeErrorKind::NameLimit { limit, actual };
        return Err(DecodeError::new(kind, at));
    }
    // Without the quotes, of one byte each.
    let start = at.saturating_add(1);
    let end = start.saturating_add(name.raw().len());
    Ok(Name {
        span: span(start, end),
        escaped: name.is_escaped(),
        fingerprint: name.fingerprint(hash_key),
    })
}

fn take_shape(
    cursor: &mut Cursor<'_>,
    options: &Options,
) -> Result<(Span, u32, DimProduct), DecodeError> {
    cursor.expect_type(ValueType::Array)?;
    cursor.take_byte(b'[')?;
    let start = cursor.offset();
    let limit = options.limits().rank();
    let mut product = DimProduct::new();
    let mut rank: usize = 0;
    cursor.skip_whitespace();
    let mut more = !cursor.take_if(b']');
    while more {
        if rank >= limit {
            return Err(cursor.error(DecodeErrorKind::RankLimit { limit }));
        }
        product.push(take_dim(cursor)?);
        rank = rank.saturating_add(1);
        more = cursor.take_separator(b']')?;
    }
    // Without the closing bracket.
    let inside = span(start, cursor.offset().saturating_sub(1));
    Ok((inside, to_u32(rank), product))
}

fn take_dim(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    cursor.expect_type(ValueType::Number)?;
    let at = cursor.offset();
    let (text, integer) = cursor.take_number(NonFinite::Accept)?;
    if !integer || text.starts_with('-') {
        return Err(DecodeError::new(DecodeErrorKind::BadDim, at));
    }
    let overflow = DecodeError::new(DecodeErrorKind::DimOverflow, at);
    let dim: usize = text.parse().map_err(|_| overflow)?;
    isize::try_from(dim).map_err(|_| overflow)?;
    Ok(dim)
}

fn take_dtype(cursor: &mut Cursor<'_>, options: &Options) -> Result<DType, DecodeError> {
    cursor.expect_type(ValueType::String)?;
    let at = cursor.offset();
    let text = cursor.take_string()?;
    // The longest name has 15 bytes.
    let mut buffer = [0; 16];
    text.as_plain()
        .map_or_else(|| text.copy_to(&mut buffer).ok(), Some)
        .and_then(DType::from_name)
        .filter(|dtype| dtype.generation() <= options.generation())
        .ok_or_else(|| DecodeError::new(DecodeErrorKind::UnknownDType, at))
}

fn take_list_index(cursor: &mut Cursor<'_>, options: &Options) -> Result<Option<u32>, DecodeError> {
    let at = cursor.offset();
    let bad = DecodeError::new(DecodeErrorKind::BadListIndex, at);
    if cursor.peek_type()? != ValueType::Number {
        return Err(bad);
    }
    let (text, integer) = cursor.take_number(NonFinite::Accept)?;
    if text == "-1" {
        return Ok(None);
    }
    if !integer || text.starts_with('-') {
        return Err(bad);
    }
    let limit = options.limits().list_index();
    let over = DecodeError::new(DecodeErrorKind::ListIndexLimit { limit }, at);
    let index: u32 = text.parse().map_err(|_| over)?;
    match usize::try_from(index) {
        Ok(small) if small <= limit => Ok(Some(index)),
        _ => Err(over),
    }
}

/// The keys of an object, each with its offset; the caller takes the value in between.
struct Keys {
    first: bool,
}

impl Keys {
    #[inline(always)]
    fn open(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.take_byte(b'{')?;
        cursor.skip_whitespace();
        Ok(Self { first: true })
    }

    fn next<'f>(
        &mut self,
        cursor: &mut Cursor<'f>,
    ) -> Result<Option<(Str<'f>, usize)>, DecodeError> {
        match self.next_offset(cursor)? {
            Some(at) => Ok(Some((cursor.take_key()?, at))),
            None => Ok(None),
        }
    }

    /// Where the next key starts, if there is one.
    #[inline(always)]
    fn next_offset(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<usize>, DecodeError> {
        let more = if self.first {
            !cursor.take_if(b'}')
        } else {
            cursor.take_separator(b'}')?
        };
        self.first = false;
        Ok(more.then(|| cursor.offset()))
    }
}
