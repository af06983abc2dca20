//! Where a decoder keeps descriptors: memory that the caller brings.

use super::order::Place;
use super::parts::{Dims, Name};
use crate::dtype::DType;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Str;
use crate::tensor::{Descriptor, Layout, Shape};

/// Room for the descriptors of one message, up to `N`.
///
/// Holds numbers only and borrows nothing: one storage serves message after
/// message, on the stack (72 bytes a descriptor) or in a `static`.
///
/// # Examples
///
/// ```
/// use tensorwire::message::{Message, Storage};
///
/// let mut storage = Storage::<8>::new();
/// for frame in [r#"{"tensor_descriptors":[]}"#; 2] {
///     let frames = [frame];
///     assert!(Message::decode(&frames, &mut storage)?.is_empty());
/// }
/// # Ok::<(), tensorwire::error::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Storage<const N: usize> {
    rows: [Row; N],
    order: [Place; N],
}

impl<const N: usize> Storage<N> {
    /// Makes empty storage.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rows: [Row::EMPTY; N],
            order: [Place::EMPTY; N],
        }
    }

    pub(crate) const fn table(&mut self) -> Table<'_> {
        Table {
            rows: &mut self.rows,
            order: &mut self.order,
        }
    }
}

impl<const N: usize> Default for Storage<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Storage whose size is not known to the compiler.
#[derive(Debug)]
pub(crate) struct Table<'s> {
    pub(crate) rows: &'s mut [Row],
    /// Where the rows come by name and list index.
    pub(crate) order: &'s mut [Place],
}

/// A piece of the metadata, at most `u32::MAX` bytes from its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) const fn between(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    pub(crate) fn start(self) -> usize {
        to_usize(self.start)
    }

    pub(crate) fn of(self, text: &str) -> &str {
        text.get(to_usize(self.start)..to_usize(self.end))
            .unwrap_or_default()
    }
}

/// A `u32` that counts bytes or descriptors in memory, and so fits.
pub(crate) fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The low bits of `value`: all of it for an offset, as longer metadata is refused first.
pub(crate) const fn to_u32(value: usize) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A descriptor as spans of the metadata.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Row {
    /// The whole descriptor.
    pub(crate) at: u32,
    pub(crate) name: Span,
    pub(crate) name_escaped: bool,
    /// Of the name.
    pub(crate) fingerprint: u32,
    /// Between the brackets.
    pub(crate) shape: Span,
    pub(crate) rank: u32,
    pub(crate) dtype: DType,
    pub(crate) list_index: Option<u32>,
    pub(crate) layout: Layout,
}

impl Row {
    pub(crate) const EMPTY: Self = Self {
        at: 0,
        name: Span { start: 0, end: 0 },
        name_escaped: false,
        fingerprint: 0,
        shape: Span { start: 0, end: 0 },
        rank: 0,
        dtype: DType::UInt8,
        list_index: None,
        layout: Layout::EMPTY,
    };

    /// The row of the descriptor at `at`; `None` if no tensor is that large.
    #[inline(always)]
    pub(crate) fn new(
        at: usize,
        name: Name,
        dims: Dims,
        dtype: DType,
        list_index: Option<u32>,
    ) -> Option<Self> {
        Some(Self {
            at: to_u32(at),
            name: name.span,
            name_escaped: name.escaped,
            fingerprint: name.fingerprint,
            shape: dims.span,
            rank: dims.rank,
            dtype,
            list_index,
            layout: Layout::new(dims.product, dtype)?,
        })
    }

    pub(crate) fn name<'a>(&self, text: &'a str) -> Str<'a> {
        // A string starts at its quote.
        let at = self.name.start().saturating_sub(1);
        Str::from_json(self.name.of(text), self.name_escaped).at(at)
    }

    /// An error about this row, which is at `index` in wire order.
    pub(crate) fn error(&self, index: usize, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, to_usize(self.at)).in_descriptor(index)
    }

    pub(crate) fn descriptor<'a>(&self, text: &'a str) -> Descriptor<'a> {
        let shape = Shape::from_text(self.shape.of(text), to_usize(self.rank));
        Descriptor::from_parts(
            self.name(text),
            self.list_index,
            self.dtype,
            shape,
            self.layout,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_takes_the_room_that_is_told() {
        assert!(size_of::<Storage<64>>() <= 64 * 72);
    }
}
