//! What a decoder accepts.

use super::decode::{Message, Metadata};
use super::storage::Storage;
use crate::Limits;
use crate::dtype::Generation;
use crate::error::DecodeError;
use crate::json::cursor::NonFinite;

/// What a decoder accepts: caps, dialect, dtypes.
///
/// # Examples
///
/// ```
/// use tensorwire::Limits;
/// use tensorwire::error::DecodeErrorKind;
/// use tensorwire::message::{Options, Storage};
///
/// let options = Options::new()
///     .with_limits(Limits::new().with_rank(8))
///     .with_strict_json(true);
/// let frames = [r#"{"tensor_descriptors":[],"scalar_fields":{"cfg":NaN}}"#];
/// let error = options.decode(&frames, &mut Storage::<4>::new()).unwrap_err();
/// assert_eq!(error.kind(), DecodeErrorKind::NonFinite);
/// assert_eq!(error.offset(), 48);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options {
    limits: Limits,
    non_finite: NonFinite,
    generation: Generation,
    speculates: bool,
}

impl Options {
    /// The default caps, Python's JSON, every dtype.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            limits: Limits::new(),
            non_finite: NonFinite::Accept,
            generation: Generation::Extended,
            speculates: true,
        }
    }

    /// Sets the caps.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether `NaN`, `Infinity` and `-Infinity` are refused among the scalars too.
    #[must_use]
    pub const fn with_strict_json(mut self, strict: bool) -> Self {
        self.non_finite = if strict {
            NonFinite::Refuse
        } else {
            NonFinite::Accept
        };
        self
    }

    /// Sets the newest generation of dtypes to accept.
    #[must_use]
    pub const fn with_generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    /// Turns the fast path off, to hold the general one against it.
    #[cfg(any(test, feature = "_differential"))]
    #[doc(hidden)]
    #[must_use]
    pub const fn without_speculation(mut self) -> Self {
        self.speculates = false;
        self
    }

    /// The caps.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) const fn non_finite(&self) -> NonFinite {
        self.non_finite
    }

    pub(crate) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(crate) const fn speculates(&self) -> bool {
        self.speculates
    }

    /// Decodes a whole message: frame 0 is the metadata, the others its payloads.
    ///
    /// # Errors
    ///
    /// Any [`DecodeErrorKind`](crate::error::DecodeErrorKind); then nothing is handed out.
    pub fn decode<'frame, 'store, F: AsRef<[u8]>, const N: usize>(
        &self,
        frames: &'frame [F],
        storage: &'store mut Storage<N>,
    ) -> Result<Message<'frame, 'store, F>, DecodeError> {
        Message::decode_in(self, frames, storage.table())
    }

    /// Decodes the metadata frame alone; its payloads are attached when they are there.
    ///
    /// # Errors
    ///
    /// Any [`DecodeErrorKind`](crate::error::DecodeErrorKind) but those about payload frames.
    pub fn decode_metadata<'frame, 'store, const N: usize>(
        &self,
        frame: &'frame [u8],
        storage: &'store mut Storage<N>,
    ) -> Result<Metadata<'frame, 'store>, DecodeError> {
        Metadata::decode_in(self, frame, storage.table())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
