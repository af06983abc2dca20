//! A decoder that owns its storage.

use alloc::vec::Vec;

use super::decode::{Message, Metadata, split};
use super::options::Options;
use super::order::Place;
use super::schema;
use super::storage::{Row, Table};
use crate::error::{DecodeError, DecodeErrorKind};

/// Decodes message after message in storage of its own.
///
/// The storage grows to hold the largest message seen, and then decoding allocates
/// nothing. It has room for 16 descriptors or at most twice as many as a message
/// had, and never for more than [`Limits::descriptors`](crate::Limits::descriptors).
///
/// # Examples
///
/// ```
/// use tensorwire::message::Decoder;
///
/// let mut decoder = Decoder::new();
/// let frames: [&[u8]; 2] = [
///     br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"uint8"}]}"#,
///     &[1, 2],
/// ];
/// let x = decoder.decode(&frames)?.tensor("x").ok_or("no x")?;
/// assert!(decoder.decode(&frames[..1]).is_err());
/// assert_eq!(x.bytes(), [1, 2]); // a view borrows the frames alone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    options: Options,
    rows: Vec<Row>,
    order: Vec<Place>,
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
            rows: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Returns what it accepts.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Decodes a whole message: frame 0 is the metadata, the others its payloads.
    ///
    /// # Errors
    ///
    /// Any [`DecodeErrorKind`] but [`StorageFull`](DecodeErrorKind::StorageFull).
    pub fn decode<'frame, F: AsRef<[u8]>>(
        &mut self,
        frames: &'frame [F],
    ) -> Result<Message<'frame, '_, F>, DecodeError> {
        let (metadata, payloads) = split(frames)?;
        self.decode_metadata(metadata)?.attach(payloads)
    }

    /// Decodes the metadata frame alone; its payloads are attached when they are there.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode), but for those about payload frames.
    pub fn decode_metadata<'frame>(
        &mut self,
        frame: &'frame [u8],
    ) -> Result<Metadata<'frame, '_>, DecodeError> {
        super::decode::refuse_control(frame)?;
        let mut allocations: usize = 0;
        let parsed = loop {
            match schema::parse(frame, &self.options, &mut self.rows) {
                Ok(parsed) => break parsed,
                Err(error) => match error.kind() {
                    DecodeErrorKind::StorageFull { capacity } => {
                        self.grow(capacity);
                        // Of each of the two vectors.
                        allocations = allocations.saturating_add(2);
                    }
                    _ => return Err(error),
                },
            }
        };
        let table = Table {
            rows: &mut self.rows,
            order: &mut self.order,
        };
        Ok(Metadata::index(parsed, table)?.with_allocations(allocations))
    }

    /// Doubles the room, since `capacity` descriptors were there and one more.
    fn grow(&mut self, capacity: usize) {
        // More than `capacity`: at the limit, another error came first.
        let limit = self.options.limits().descriptors();
        let room = capacity.saturating_mul(2).max(16).min(limit);
        self.rows
            .reserve_exact(room.saturating_sub(self.rows.len()));
        self.order
            .reserve_exact(room.saturating_sub(self.order.len()));
        self.rows.resize(room, Row::EMPTY);
        self.order.resize(room, Place::EMPTY);
    }
}
