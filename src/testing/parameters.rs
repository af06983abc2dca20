//! How large generated messages may be, and what may be in them.

use alloc::vec::Vec;

use crate::dtype::DType;

/// What may be generated.
///
/// A valid message never exceeds these. A nearly valid one has at most as many tensors and as
/// many bytes of payload; its one mutation may exceed the rest: a rank that is one too high is a
/// mutation.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
/// use tensorwire::testing::Parameters;
///
/// // What a service takes that knows images and nothing else.
/// let parameters = Parameters::new()
///     .with_dtypes(&[DType::UInt8, DType::Float32])
///     .with_tensors(2)
///     .with_rank(3)
///     .with_bytes(1 << 16);
/// assert_eq!(parameters.dtypes(), [DType::UInt8, DType::Float32]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameters {
    bytes: usize,
    dtypes: Vec<DType>,
    python_spelling: bool,
    rank: usize,
    scalars: usize,
    strict_json: bool,
    tensors: usize,
}

impl Parameters {
    /// Small messages of every kind: up to 6 tensors of rank 5 and any dtype, 4096 bytes of
    /// payload in all, 5 scalars, in any spelling that JSON allows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: 4096,
            dtypes: DType::ALL.to_vec(),
            python_spelling: false,
            rank: 5,
            scalars: 5,
            strict_json: false,
            tensors: 6,
        }
    }

    /// Sets the most bytes of payload that all tensors of a message have together.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the dtypes that occur; without any there are no tensors.
    #[must_use]
    pub fn with_dtypes(mut self, dtypes: &[DType]) -> Self {
        self.dtypes = dtypes.to_vec();
        self
    }

    /// Sets whether texts are spelled only as Python spells them.
    ///
    /// If not, some have white space, other key orders, unknown keys, escapes that nothing
    /// needs, or lack the keys that have a default.
    #[must_use]
    pub const fn with_python_spelling(mut self, python: bool) -> Self {
        self.python_spelling = python;
        self
    }

    /// Sets the most dimensions of a tensor; [`Limits::rank`](crate::Limits::rank), if that is less.
    #[must_use]
    pub const fn with_rank(mut self, rank: usize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the most members that `scalar_fields` has, those inside of others not counted.
    #[must_use]
    pub const fn with_scalars(mut self, scalars: usize) -> Self {
        self.scalars = scalars;
        self
    }

    /// Sets whether the scalars keep clear of `NaN`, `Infinity` and `-Infinity`, for a receiver
    /// with [`Options::with_strict_json`](crate::Options::with_strict_json).
    #[must_use]
    pub const fn with_strict_json(mut self, strict: bool) -> Self {
        self.strict_json = strict;
        self
    }

    /// Sets the most tensors of a message; 4096, if that is less.
    #[must_use]
    pub const fn with_tensors(mut self, tensors: usize) -> Self {
        self.tensors = tensors;
        self
    }

    /// Returns the most bytes of payload.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the dtypes that occur.
    #[must_use]
    pub fn dtypes(&self) -> &[DType] {
        &self.dtypes
    }

    /// Returns whether texts are spelled only as Python spells them.
    #[must_use]
    pub const fn python_spelling(&self) -> bool {
        self.python_spelling
    }

    /// Returns the most dimensions of a tensor.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank.min(crate::Limits::new().rank())
    }

    /// Returns the most members of `scalar_fields`.
    #[must_use]
    pub const fn scalars(&self) -> usize {
        self.scalars
    }

    /// Returns whether the scalars keep clear of the tokens that are no JSON.
    #[must_use]
    pub const fn strict_json(&self) -> bool {
        self.strict_json
    }

    /// Returns the most tensors of a message.
    #[must_use]
    pub fn tensors(&self) -> usize {
        if self.dtypes.is_empty() {
            return 0;
        }
        self.tensors.min(crate::Limits::new().descriptors())
    }

    /// The size in bytes of the smallest element.
    pub(super) fn least_size(&self) -> usize {
        let sizes = self.dtypes.iter().map(|dtype| dtype.size());
        sizes.min().unwrap_or(usize::MAX)
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self::new()
    }
}
