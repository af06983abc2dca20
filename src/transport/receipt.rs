//! What receiving a message cost.

/// What receiving one message cost, and what keeping it costs.
///
/// Together with the [`Cost`](crate::message::Cost) of decoding it, which tells
/// of misaligned views, this is what a test asserts that wants no copies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Receipt {
    copied_bytes: usize,
    allocations: usize,
    retained_bytes: usize,
}

impl Receipt {
    /// Makes a receipt of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            copied_bytes: 0,
            allocations: 0,
            retained_bytes: 0,
        }
    }

    /// Sets how many bytes of frames our side copied.
    #[must_use]
    pub const fn with_copied_bytes(mut self, bytes: usize) -> Self {
        self.copied_bytes = bytes;
        self
    }

    /// Sets how often our side asked for memory.
    #[must_use]
    pub const fn with_allocations(mut self, allocations: usize) -> Self {
        self.allocations = allocations;
        self
    }

    /// Sets how much memory the message keeps in use.
    #[must_use]
    pub const fn with_retained_bytes(mut self, bytes: usize) -> Self {
        self.retained_bytes = bytes;
        self
    }

    /// Returns how many bytes of frames were copied on our side: not what the
    /// system or the library underneath copies off the wire.
    #[must_use]
    pub const fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// Returns how often our side asked for memory: when its storage had to grow.
    #[must_use]
    pub const fn allocations(&self) -> usize {
        self.allocations
    }

    /// Returns how many bytes the message keeps in use at most, which may be many times
    /// its own: a small frame can be a slice of a large buffer.
    #[must_use]
    pub const fn retained_bytes(&self) -> usize {
        self.retained_bytes
    }
}
