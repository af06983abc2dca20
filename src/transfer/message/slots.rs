//! Preallocated slots: what a registration lists.

use core::fmt;
use core::iter::FusedIterator;
use core::slice;

use super::fields::demand;
use super::keys::{Key, Keys, SLOT};
use crate::error::{DecodeError, DecodeErrorKind, SchemaKey};
use crate::json::cursor::{Cursor, NonFinite};
use crate::json::writer::Writer;
use crate::json::{Array, Elements, Value, ValueType};
use crate::message::Options;
use crate::message::parts::take_u64;

/// A slot that a receiver lets the head node give away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PreallocatedSlot {
    /// Bytes from the pool's start.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
    /// The receiver's number of it, which a [`Ready`](super::Ready) names again.
    pub slot_id: u64,
    /// Its address: the pool's plus the offset.
    pub addr: u64,
}

impl PreallocatedSlot {
    /// Makes one of its parts.
    #[must_use]
    pub const fn new(offset: u64, size: u64, slot_id: u64, addr: u64) -> Self {
        Self {
            offset,
            size,
            slot_id,
            addr,
        }
    }
}

/// The preallocated slots of a registration: received, or the caller's.
///
/// Received ones stay the text that they came as, and are read when asked; so
/// they need no storage, however many there are. They are checked beforehand.
///
/// Compares slot by slot.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::message::{PreallocatedSlot, PreallocatedSlots};
///
/// let slots = [PreallocatedSlot::new(0, 1 << 20, 0, 0x7f00_0000_0000)];
/// let slots = PreallocatedSlots::from(&slots);
/// assert_eq!(slots.len(), 1);
/// assert_eq!(slots.iter().map(|slot| slot.size).sum::<u64>(), 1 << 20);
/// ```
#[derive(Clone, Copy)]
pub struct PreallocatedSlots<'a> {
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    /// A checked array, and how many slots it holds.
    Received(Array<'a>, usize),
    Slice(&'a [PreallocatedSlot]),
}

impl<'a> PreallocatedSlots<'a> {
    /// No slots.
    pub const EMPTY: PreallocatedSlots<'static> = PreallocatedSlots {
        source: Source::Slice(&[]),
    };

    /// Takes an array of slots.
    pub(super) fn take(cursor: &mut Cursor<'a>, options: &Options) -> Result<Self, DecodeError> {
        cursor.expect_type(ValueType::Array)?;
        let start = cursor.offset();
        cursor.take_byte(b'[')?;
        cursor.skip_whitespace();
        let mut count: usize = 0;
        let mut more = !cursor.take_if(b']');
        while more {
            take_slot(cursor, options)?;
            // Each takes bytes of the payload, so the count fits.
            count = count.wrapping_add(1);
            more = cursor.take_separator(b']')?;
        }
        let array = Array::new(Value::new(cursor.text_since(start), start));
        Ok(Self {
            source: Source::Received(array, count),
        })
    }

    /// Returns the number of slots.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.source {
            Source::Received(_, count) => count,
            Source::Slice(slots) => slots.len(),
        }
    }

    /// Tells whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the slots, in the order of the list.
    #[must_use]
    pub fn iter(&self) -> SlotIter<'a> {
        SlotIter {
            rest: match self.source {
                Source::Received(array, count) => Rest::Received(array.iter(), count),
                Source::Slice(slots) => Rest::Slice(slots.iter()),
            },
        }
    }

    /// Writes the list: a received one as it stands.
    pub(super) fn put(&self, writer: &mut Writer<'_>) {
        let slots = match self.source {
            Source::Received(array, _) => return writer.put_value(array.as_value()),
            Source::Slice(slots) => slots,
        };
        writer.put_raw(b"[");
        for (index, slot) in slots.iter().enumerate() {
            if index > 0 {
                writer.put_raw(b",");
            }
            writer.put_raw(br#"{"offset":"#);
            writer.put_u64(slot.offset);
            writer.put_raw(br#","size":"#);
            writer.put_u64(slot.size);
            writer.put_raw(br#","slot_id":"#);
            writer.put_u64(slot.slot_id);
            writer.put_raw(br#","addr":"#);
            writer.put_u64(slot.addr);
            writer.put_raw(b"}");
        }
        writer.put_raw(b"]");
    }
}

impl Default for PreallocatedSlots<'_> {
    fn default() -> Self {
        PreallocatedSlots::EMPTY
    }
}

impl<'a> From<&'a [PreallocatedSlot]> for PreallocatedSlots<'a> {
    fn from(slots: &'a [PreallocatedSlot]) -> Self {
        Self {
            source: Source::Slice(slots),
        }
    }
}

impl<'a, const N: usize> From<&'a [PreallocatedSlot; N]> for PreallocatedSlots<'a> {
    fn from(slots: &'a [PreallocatedSlot; N]) -> Self {
        Self::from(slots.as_slice())
    }
}

#[cfg(feature = "alloc")]
impl<'a> From<&'a alloc::vec::Vec<PreallocatedSlot>> for PreallocatedSlots<'a> {
    fn from(slots: &'a alloc::vec::Vec<PreallocatedSlot>) -> Self {
        Self::from(slots.as_slice())
    }
}

impl<'a> IntoIterator for PreallocatedSlots<'a> {
    type Item = PreallocatedSlot;
    type IntoIter = SlotIter<'a>;

    fn into_iter(self) -> SlotIter<'a> {
        self.iter()
    }
}

impl PartialEq for PreallocatedSlots<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for PreallocatedSlots<'_> {}

impl fmt::Debug for PreallocatedSlots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The slots of [`PreallocatedSlots`].
#[derive(Clone, Debug)]
pub struct SlotIter<'a> {
    rest: Rest<'a>,
}

#[derive(Clone, Debug)]
enum Rest<'a> {
    /// The elements left, and how many.
    Received(Elements<'a>, usize),
    Slice(slice::Iter<'a, PreallocatedSlot>),
}

impl Iterator for SlotIter<'_> {
    type Item = PreallocatedSlot;

    fn next(&mut self) -> Option<PreallocatedSlot> {
        match &mut self.rest {
            Rest::Received(elements, left) => {
                let slot = elements.next()?;
                *left = left.saturating_sub(1);
                // Checked before: it cannot fail.
                take_slot(&mut Cursor::new(slot.raw()), &Options::new()).ok()
            }
            Rest::Slice(slots) => slots.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.rest {
            Rest::Received(_, left) => *left,
            Rest::Slice(slots) => slots.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for SlotIter<'_> {}

impl FusedIterator for SlotIter<'_> {}

fn take_slot(cursor: &mut Cursor<'_>, options: &Options) -> Result<PreallocatedSlot, DecodeError> {
    cursor.expect_type(ValueType::Object)?;
    let start = cursor.offset();
    let [mut offset, mut size, mut slot_id, mut addr] = [None; 4];
    let mut keys = Keys::open(cursor, SLOT)?;
    while let Some((key, at)) = keys.next(cursor)? {
        let field = match key {
            Key::Known(SchemaKey::Offset) => &mut offset,
            Key::Known(SchemaKey::Size) => &mut size,
            Key::Known(SchemaKey::SlotId) => &mut slot_id,
            Key::Known(SchemaKey::Addr) => &mut addr,
            _ => {
                // Inside the message, the list and the slot.
                cursor.skip_value(3, options.limits(), NonFinite::Refuse)?;
                continue;
            }
        };
        let value = take_u64(cursor)?;
        if field.replace(value).is_some() {
            return Err(DecodeError::new(DecodeErrorKind::DuplicateKey, at));
        }
    }
    Ok(PreallocatedSlot {
        offset: demand(offset, SchemaKey::Offset, start)?,
        size: demand(size, SchemaKey::Size, start)?,
        slot_id: demand(slot_id, SchemaKey::SlotId, start)?,
        addr: demand(addr, SchemaKey::Addr, start)?,
    })
}
