//! A decoder of manifests that owns its storage.

use alloc::vec::Vec;

use super::decode::{Manifest, parse};
use super::storage::Table;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Object;
use crate::message::Options;
use crate::message::order::Place;
use crate::message::storage::Row;

/// Decodes manifest after manifest in storage of its own.
///
/// The storage grows to hold the largest manifest seen, and then decoding
/// allocates nothing. It has room for 16 entries or at most twice as many as a
/// manifest had, and never for more than
/// [`Limits::descriptors`](crate::Limits::descriptors).
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::manifest::Decoder;
///
/// let text = br#"{"mask":[{"offset":0,"shape":[3],"dtype":"bool"}]}"#;
/// let mut decoder = Decoder::new();
/// let manifest = decoder.decode(Value::parse(text)?.as_object()?, 3)?;
/// let mask = manifest.attach(&[1, 0, 1])?.tensor("mask").ok_or("no mask")?;
/// assert_eq!(mask.as_slice::<bool>()?, [true, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    options: Options,
    entries: Vec<Row>,
    order: Vec<Place>,
    offsets: Vec<usize>,
    by_offset: Vec<u32>,
}

impl Decoder {
    /// Makes a decoder with the default [`Options`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_options(Options::new())
    }

    /// Makes a decoder that accepts what `options` say.
    #[must_use]
    pub const fn with_options(options: Options) -> Self {
        Self {
            options,
            entries: Vec::new(),
            order: Vec::new(),
            offsets: Vec::new(),
            by_offset: Vec::new(),
        }
    }

    /// Returns what it accepts.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Decodes the manifest of a slot of `slot_len` bytes.
    ///
    /// # Errors
    ///
    /// As [`Manifest::decode`], but for [`StorageFull`](DecodeErrorKind::StorageFull).
    pub fn decode<'frame>(
        &mut self,
        object: Object<'frame>,
        slot_len: usize,
    ) -> Result<Manifest<'frame, '_>, DecodeError> {
        let parsed = loop {
            let (entries, offsets) = (&mut self.entries, &mut self.offsets);
            match parse(object, slot_len, &self.options, entries, offsets) {
                Ok(parsed) => break parsed,
                Err(error) => match error.kind() {
                    DecodeErrorKind::StorageFull { capacity } => self.grow(capacity),
                    _ => return Err(error),
                },
            }
        };
        let table = Table {
            entries: &mut self.entries,
            order: &mut self.order,
            offsets: &mut self.offsets,
            by_offset: &mut self.by_offset,
        };
        Manifest::index(object, slot_len, parsed, table)
    }

    /// Doubles the room, since `capacity` entries were there and one more.
    fn grow(&mut self, capacity: usize) {
        // More than `capacity`: at the limit, another error came first.
        let limit = self.options.limits().descriptors();
        let room = capacity.saturating_mul(2).max(16).min(limit);
        resize(&mut self.entries, room, Row::EMPTY);
        resize(&mut self.order, room, Place::EMPTY);
        resize(&mut self.offsets, room, 0);
        resize(&mut self.by_offset, room, 0);
    }
}

fn resize<T: Copy>(part: &mut Vec<T>, room: usize, empty: T) {
    part.reserve_exact(room.saturating_sub(part.len()));
    part.resize(room, empty);
}
