//! What a decoder accepts.

use super::decode::{Message, Metadata};
use super::storage::Storage;
use crate::Limits;
use crate::dtype::Generation;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Value;
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    limits: Limits,
    non_finite: NonFinite,
    generation: Generation,
    speculates: bool,
}

impl Options {
    /// Returns the default caps, Python's JSON, every dtype.
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

    /// Returns the caps.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Tells whether `NaN`, `Infinity` and `-Infinity` are refused among the scalars too.
    #[must_use]
    pub fn strict_json(&self) -> bool {
        self.non_finite == NonFinite::Refuse
    }

    pub(crate) const fn non_finite(&self) -> NonFinite {
        self.non_finite
    }

    /// Returns the newest generation of dtypes accepted.
    #[must_use]
    pub const fn generation(&self) -> Generation {
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

    /// Checks that `bytes` is one JSON document, such as the payload of a control
    /// message, within the caps on metadata and nesting.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::MetadataLimit`](crate::error::DecodeErrorKind::MetadataLimit),
    /// and as [`Value::parse`] or, if so set, [`Value::parse_strict`].
    pub fn parse_json<'a>(&self, bytes: &'a [u8]) -> Result<Value<'a>, DecodeError> {
        let (limit, actual) = (self.limits.metadata_bytes(), bytes.len());
        if actual > limit {
            let kind = DecodeErrorKind::MetadataLimit { limit, actual };
            return Err(DecodeError::new(kind, 0));
        }
        Value::parse_document(bytes, &self.limits, self.non_finite)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_held_to_the_same_caps_as_metadata() {
        let limits = Limits::new().with_metadata_bytes(8).with_depth(2);
        let options = Options::new().with_limits(limits);
        let kind = |options: &Options, text: &'static str| {
            let result = options.parse_json(text.as_bytes());
            result
                .map(|value| value.raw())
                .map_err(|error| error.kind())
        };
        assert_eq!(kind(&options, "[[1234]]"), Ok("[[1234]]"));
        assert_eq!(kind(&options, " NaN"), Ok("NaN"));
        let (limit, actual) = (8, 9);
        let long = Err(DecodeErrorKind::MetadataLimit { limit, actual });
        assert_eq!(kind(&options, "[[12345]]"), long);
        let deep = Err(DecodeErrorKind::DepthLimit { limit: 2 });
        assert_eq!(kind(&options, "[[[]]]"), deep);
        let strict = options.with_strict_json(true);
        assert!(strict.strict_json() && !options.strict_json());
        assert_eq!(kind(&strict, "NaN"), Err(DecodeErrorKind::NonFinite));
    }
}
