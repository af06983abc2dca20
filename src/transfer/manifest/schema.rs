//! From the text of a manifest to its entries.
//!
//! As in a message's metadata, an entry is first tried as the exact bytes that
//! Python writes, and read again by the general cursor where it is anything else.

use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::ValueType;
use crate::json::cursor::{Cursor, NonFinite};
use crate::message::Options;
use crate::message::parts::{
    Keys, Name, digits, shape_and_dtype, take_dtype, take_list_index, take_shape, take_u64,
};
use crate::message::storage::{Row, to_u32};

/// A manifest read whole; its entries are in the storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) count: usize,
    /// Whether any field has no entries.
    pub(super) has_empty: bool,
    pub(super) tensor_bytes: usize,
}

/// What entries are read with.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    options: &'a Options,
    /// Of the fingerprints.
    hash_key: u64,
    /// Length of the slot in bytes.
    slot_len: usize,
}

/// One tensor, and where it starts.
struct Placed {
    row: Row,
    offset: u64,
    /// Where the offset stands in the text.
    offset_at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(options: &'a Options, hash_key: u64, slot_len: usize) -> Self {
        Self {
            options,
            hash_key,
            slot_len,
        }
    }

    /// Reads `text`, which is an object, and its entries into `entries` and `offsets`.
    pub(super) fn parse(
        &self,
        text: &str,
        entries: &mut [Row],
        offsets: &mut [usize],
    ) -> Result<Parsed, DecodeError> {
        let limit = self.options.limits().metadata_bytes();
        if text.len() > limit {
            let actual = text.len();
            let kind = DecodeErrorKind::MetadataLimit { limit, actual };
            return Err(DecodeError::new(kind, 0));
        }
        let mut places = entries.iter_mut().zip(offsets);
        let mut parsed = Parsed {
            count: 0,
            has_empty: false,
            tensor_bytes: 0,
        };
        let mut cursor = Cursor::new(text);
        let mut keys = Keys::open(&mut cursor)?;
        while let Some((key, at)) = keys.next(&mut cursor)? {
            let name = Name::new(key, at, self.options, self.hash_key)?;
            cursor.expect_type(ValueType::Array)?;
            cursor.take_byte(b'[')?;
            cursor.skip_whitespace();
            let mut more = !cursor.take_if(b']');
            parsed.has_empty |= !more;
            while more {
                self.take_entry(&mut cursor, name, &mut places, &mut parsed)?;
                more = cursor.take_separator(b']')?;
            }
        }
        Ok(parsed)
    }

    /// Takes the next entry into the next of `places`.
    #[inline(always)]
    fn take_entry<'s>(
        &self,
        cursor: &mut Cursor<'_>,
        name: Name,
        places: &mut impl Iterator<Item = (&'s mut Row, &'s mut usize)>,
        parsed: &mut Parsed,
    ) -> Result<(), DecodeError> {
        let index = parsed.count;
        let limit = self.options.limits().descriptors();
        if index >= limit {
            return Err(cursor.error(DecodeErrorKind::DescriptorLimit { limit }));
        }
        let Some((row, offset)) = places.next() else {
            let capacity = index;
            return Err(cursor.error(DecodeErrorKind::StorageFull { capacity }));
        };
        let written = self
            .options
            .speculates()
            .then(|| self.speculate(cursor.rest(), cursor.text().len(), name))
            .flatten();
        let placed = if let Some((placed, rest)) = written {
            cursor.advance_to(rest);
            placed
        } else {
            cursor
                .out_of_line(|cursor| self.take_any_entry(cursor, name))
                .map_err(|error| error.in_descriptor(index))?
        };
        *row = placed.row;
        *offset = self
            .fit(&placed)
            .map_err(|error| error.in_descriptor(index))?;
        let limit = self.options.limits().tensor_bytes();
        match parsed.tensor_bytes.checked_add(row.layout.byte_len()) {
            Some(sum) if sum <= limit => parsed.tensor_bytes = sum,
            _ => return Err(row.error(index, DecodeErrorKind::TensorBytesLimit { limit })),
        }
        // Each entry takes bytes of the text, so the count fits.
        parsed.count = index.wrapping_add(1);
        Ok(())
    }

    /// The offset, if the tensor lies inside of the slot.
    #[inline]
    fn fit(&self, placed: &Placed) -> Result<usize, DecodeError> {
        let byte_len = placed.row.layout.byte_len();
        let offset = usize::try_from(placed.offset).ok();
        let end = offset.and_then(|offset| offset.checked_add(byte_len));
        match (offset, end) {
            (Some(offset), Some(end)) if end <= self.slot_len => Ok(offset),
            _ => {
                let kind = DecodeErrorKind::OutOfSlot {
                    offset: placed.offset,
                    byte_len,
                    slot_len: self.slot_len,
                };
                Err(DecodeError::new(kind, placed.offset_at))
            }
        }
    }

    /// The entry as Python writes it, and what follows it; `None` if it is anything else.
    ///
    /// `whole` is a tail of a text of `length` bytes.
    #[inline(always)]
    fn speculate<'f>(
        &self,
        whole: &'f [u8],
        length: usize,
        name: Name,
    ) -> Option<(Placed, &'f [u8])> {
        let limits = self.options.limits();
        let at = |rest: &[u8]| length.wrapping_sub(rest.len());

        let offset = whole.strip_prefix(br#"{"offset":"#)?;
        let offset_at = at(offset);
        let (offset, rest) = digits(offset)?;

        let shape = rest.strip_prefix(br#","shape":["#)?;
        let (dims, dtype, rest) = shape_and_dtype(shape, length, self.options)?;
        let (list_index, rest) = match rest.strip_prefix(b"\"")? {
            [b'}', rest @ ..] => (None, rest),
            rest => {
                let (index, rest) = digits(rest.strip_prefix(br#","list_index":"#)?)?;
                if index > limits.list_index() {
                    return None;
                }
                (Some(to_u32(index)), rest.strip_prefix(b"}")?)
            }
        };
        let placed = Placed {
            row: Row::new(at(whole), name, dims, dtype, list_index)?,
            offset: u64::try_from(offset).ok()?,
            offset_at,
        };
        Some((placed, rest))
    }

    /// The entry in whatever order and spelling it comes.
    #[inline(never)]
    fn take_any_entry(&self, cursor: &mut Cursor<'_>, name: Name) -> Result<Placed, DecodeError> {
        let at = cursor.offset();
        cursor.expect_type(ValueType::Object)?;
        let mut offset = None;
        let mut dims = None;
        let mut dtype = None;
        let mut list_index = None;
        let mut keys = Keys::open(cursor)?;
        while let Some((key, key_at)) = keys.next(cursor)? {
            let twice = if key == "offset" {
                offset.replace(take_offset(cursor)?).is_some()
            } else if key == "shape" {
                dims.replace(take_shape(cursor, self.options)?).is_some()
            } else if key == "dtype" {
                dtype.replace(take_dtype(cursor, self.options)?).is_some()
            } else if key == "list_index" {
                list_index.replace(self.take_member(cursor)?).is_some()
            } else {
                // Inside the manifest, the list and the entry.
                cursor.skip_value(3, self.options.limits(), NonFinite::Refuse)?;
                false
            };
            if twice {
                return Err(DecodeError::new(DecodeErrorKind::DuplicateKey, key_at));
            }
        }
        let missing = |key| DecodeError::new(DecodeErrorKind::MissingKey(key), at);
        let (offset, offset_at) = offset.ok_or_else(|| missing(SchemaKey::Offset))?;
        let dims = dims.ok_or_else(|| missing(SchemaKey::Shape))?;
        let dtype = dtype.ok_or_else(|| missing(SchemaKey::DType))?;
        let overflow = DecodeError::new(DecodeErrorKind::ShapeOverflow, dims.span.start());
        Ok(Placed {
            row: Row::new(at, name, dims, dtype, list_index).ok_or(overflow)?,
            offset,
            offset_at,
        })
    }

    /// A list index, which -1 is not: a plain tensor has none.
    fn take_member(&self, cursor: &mut Cursor<'_>) -> Result<u32, DecodeError> {
        let bad = cursor.error(DecodeErrorKind::BadListIndex);
        take_list_index(cursor, self.options)?.ok_or(bad)
    }
}

/// An offset, and where it stands in the text.
fn take_offset(cursor: &mut Cursor<'_>) -> Result<(u64, usize), DecodeError> {
    let at = cursor.offset();
    Ok((take_u64(cursor)?, at))
}
