//! What a ring tells of itself.

/// What a ring has done so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// The slots there are.
    pub slots: usize,
    /// The bytes of each.
    pub slot_bytes: usize,
    /// The slots in use now, by the host or by the device. Those whose event has fired are so until they are asked for
    /// or [polled](crate::cuda::Cuda::poll) for.
    pub in_use: usize,
    /// The most that ever were.
    pub high_water: usize,
    /// The slots of those in use of which it is not known whether the device still uses them, as an event could not be
    /// recorded. Each poll tries again.
    pub lost: usize,
    /// How often slots were taken.
    pub taken: u64,
    /// The bytes asked for when they were, all times together.
    pub bytes: u64,
    /// How often slots were asked for, and too few were free.
    pub stalls: u64,
    /// How often a call went without, for want of a slot or of time.
    pub refused: u64,
}
