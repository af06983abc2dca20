//! Pushes that have ended.

use super::{PushId, Slot};

/// A push that has ended, with the slot that it was from.
#[derive(Debug)]
#[must_use = "it holds the slot, and tells whether the bytes arrived"]
pub struct Completion<E> {
    id: PushId,
    slot: Slot,
    result: Result<u64, E>,
}

impl<E> Completion<E> {
    /// For those who implement a plane: the push `id` has ended, and nobody reads `slot` any more.
    pub const fn new(id: PushId, slot: Slot, result: Result<u64, E>) -> Self {
        Self { id, slot, result }
    }

    /// Returns which push it is.
    pub const fn id(&self) -> PushId {
        self.id
    }

    /// Returns how many bytes are in their places, all of them, or why they are not.
    ///
    /// # Errors
    ///
    /// What the plane said.
    pub const fn result(&self) -> Result<u64, &E> {
        match &self.result {
            Ok(bytes) => Ok(*bytes),
            Err(error) => Err(error),
        }
    }

    /// Returns the slot that was pushed from, and the result.
    pub fn into_parts(self) -> (Slot, Result<u64, E>) {
        (self.slot, self.result)
    }
}
