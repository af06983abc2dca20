//! The parts of a descriptor, as the metadata and a manifest both have them.
//!
//! What takes no cursor takes only what Python writes, and knows no error.

use super::options::Options;
use super::storage::{Span, to_u32};
use crate::dtype::DType;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::{Str, ValueType};
use crate::tensor::DimProduct;

/// The dimensions that follow the opening bracket of a shape, and the dtype after them without its closing quote.
///
/// `bytes` are a tail of a text of `length` bytes.
#[inline(always)]
pub(crate) fn shape_and_dtype<'f>(
    bytes: &'f [u8],
    length: usize,
    options: &Options,
) -> Option<(Dims, DType, &'f [u8])> {
    let at = |rest: &[u8]| to_u32(length.wrapping_sub(rest.len()));
    let (product, rank, rest) = dims(bytes)?;
    if rank > options.limits().rank() {
        return None;
    }
    let dims = Dims {
        span: Span::between(at(bytes), at(rest)),
        rank: to_u32(rank),
        product,
    };
    let (dtype, rest) = DType::strip_prefix(rest.strip_prefix(br#"],"dtype":""#)?)?;
    (dtype.generation() <= options.generation()).then_some((dims, dtype, rest))
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
pub(crate) fn digits(bytes: &[u8]) -> Option<(usize, &[u8])> {
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

/// A span of the metadata, which is at most `u32::MAX` bytes.
const fn span(start: usize, end: usize) -> Span {
    Span::between(to_u32(start), to_u32(end))
}

/// A field's name.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) span: Span,
    pub(crate) escaped: bool,
    pub(crate) fingerprint: u32,
}

impl Name {
    /// Checks the string whose quote is at `at`.
    pub(crate) fn new(
        text: Str<'_>,
        at: usize,
        options: &Options,
        hash_key: u64,
    ) -> Result<Self, DecodeError> {
        let Ok(actual) = text.decoded_len() else {
            return Err(DecodeError::new(DecodeErrorKind::InvalidName, at));
        };
        let limit = options.limits().name_bytes();
        if actual > limit {
            let kind = DecodeErrorKind::NameLimit { limit, actual };
            return Err(DecodeError::new(kind, at));
        }
        // Without the quotes, of one byte each.
        let start = at.saturating_add(1);
        let end = start.saturating_add(text.raw().len());
        Ok(Self {
            span: span(start, end),
            escaped: text.is_escaped(),
            fingerprint: text.fingerprint(hash_key),
        })
    }
}

/// The shape of a tensor, as it is read.
#[derive(Clone, Copy)]
pub(crate) struct Dims {
    /// Between the brackets.
    pub(crate) span: Span,
    pub(crate) rank: u32,
    pub(crate) product: DimProduct,
}

pub(crate) fn take_shape(cursor: &mut Cursor<'_>, options: &Options) -> Result<Dims, DecodeError> {
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
    let end = cursor.offset().saturating_sub(1);
    Ok(Dims {
        span: span(start, end),
        rank: to_u32(rank),
        product,
    })
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

/// Takes a plain non-negative integer, as all numbers are that are neither a dimension nor a list index.
#[inline]
pub(crate) fn take_u64(cursor: &mut Cursor<'_>) -> Result<u64, DecodeError> {
    // As Python writes nearly all of them; any other goes the general way.
    if let Some((value, rest @ [b',' | b'}', ..])) = digits(cursor.rest())
        && let Ok(value) = u64::try_from(value)
    {
        cursor.advance_to(rest);
        return Ok(value);
    }
    cursor.expect_type(ValueType::Number)?;
    let at = cursor.offset();
    let (text, integer) = cursor.take_number(NonFinite::Accept)?;
    if !integer || text.starts_with('-') {
        return Err(DecodeError::new(DecodeErrorKind::BadInteger, at));
    }
    text.parse()
        .map_err(|_| DecodeError::new(DecodeErrorKind::IntegerOverflow, at))
}

pub(crate) fn take_dtype(cursor: &mut Cursor<'_>, options: &Options) -> Result<DType, DecodeError> {
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

pub(crate) fn take_list_index(
    cursor: &mut Cursor<'_>,
    options: &Options,
) -> Result<Option<u32>, DecodeError> {
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
pub(crate) struct Keys {
    first: bool,
}

impl Keys {
    #[inline(always)]
    pub(crate) fn open(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.take_byte(b'{')?;
        cursor.skip_whitespace();
        Ok(Self { first: true })
    }

    pub(crate) fn next<'f>(
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
    pub(crate) fn next_offset(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<usize>, DecodeError> {
        let more = if self.first {
            !cursor.take_if(b'}')
        } else {
            cursor.take_separator(b'}')?
        };
        self.first = false;
        Ok(more.then(|| cursor.offset()))
    }
}
