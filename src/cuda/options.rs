//! How much staging memory there is, and how it is used.

/// How a [`Cuda`](super::Cuda) is set up.
///
/// # Examples
///
/// ```
/// use tensorwire::cuda::Options;
///
/// let options = Options::new().with_ring(8, 16 << 20);
/// assert_eq!((options.slots(), options.slot_bytes()), (8, 16 << 20));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    slots: usize,
    slot_bytes: usize,
    batch_bytes: usize,
    timeout: Option<core::time::Duration>,
}

impl Options {
    /// Four slots of 8 MiB; tensors of up to 256 KiB are batched; `Wait::Configured` waits as long as it takes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: 4,
            slot_bytes: 8 << 20,
            batch_bytes: 256 << 10,
            timeout: None,
        }
    }

    /// Sets how many slots of how many bytes the ring has; the bytes are rounded up to a multiple of 256. It has one
    /// slot at least.
    ///
    /// A tensor larger than a slot goes through in chunks as large as one. To be downloaded, all
    /// tensors of one call have to fit in the ring.
    #[must_use]
    pub const fn with_ring(mut self, slots: usize, slot_bytes: usize) -> Self {
        self.slots = slots;
        self.slot_bytes = slot_bytes;
        self
    }

    /// Sets up to how many bytes a tensor of a message shares its device memory with others of the message.
    ///
    /// They share the copy too. With 0 each tensor has its memory for itself.
    #[must_use]
    pub const fn with_batch_bytes(mut self, batch_bytes: usize) -> Self {
        self.batch_bytes = batch_bytes;
        self
    }

    /// Sets how long [`Wait::Configured`](crate::transport::Wait::Configured) waits.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: core::time::Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns how many slots the ring has.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Returns how many bytes a slot has, as they were given.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Returns up to how many bytes a tensor is batched.
    #[must_use]
    pub const fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// Returns how long [`Wait::Configured`](crate::transport::Wait::Configured) waits; `None` for as long as it takes.
    #[must_use]
    pub const fn timeout(&self) -> Option<core::time::Duration> {
        self.timeout
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
