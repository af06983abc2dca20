//! Frames that are written where they are sent from.

use super::{SendFrames, TransportError, Wait};

/// A transport that lends out the places of a message's frames, to be filled by
/// the caller: not one copy is made of what is written there.
///
/// # Examples
///
/// Generic over the transport: a counter is written in place.
///
/// ```
/// use tensorwire::transport::{LendFrames, Loan, Wait};
///
/// fn send_number<T: LendFrames>(transport: &mut T, number: u64) -> Result<(), T::SendError> {
///     let mut loan = transport.lend_frames(&[8], Wait::Configured)?;
///     for frame in loan.frames_mut() {
///         frame.copy_from_slice(&number.to_le_bytes());
///     }
///     loan.send(Wait::Configured).map_err(|(_, error)| error)
/// }
/// ```
pub trait LendFrames: SendFrames {
    /// A message that is being written.
    type Loan<'a>: Loan<Error = Self::SendError>
    where
        Self: 'a;

    /// Lends room for one message with frames of these `lengths`, in order.
    ///
    /// Where the room comes from a bounded pool, it waits for some for as long as
    /// `wait` says.
    ///
    /// # Errors
    ///
    /// The transport's own: no frames at all, more than it can send, no room
    /// within `wait`.
    fn lend_frames(
        &mut self,
        lengths: &[usize],
        wait: Wait,
    ) -> Result<Self::Loan<'_>, Self::SendError>;
}

/// A message that is being written where it will be sent from.
///
/// Dropping it gives the room back, and nothing is sent.
pub trait Loan: Sized {
    /// Why sending failed.
    type Error: TransportError;

    /// Returns the places of the frames, in order, each as long as was asked for.
    ///
    /// A place that was not written holds whatever was there: write all of it.
    /// May be called again; what was written stays.
    fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]>;

    /// Sends the message, waiting for room as `wait` says.
    ///
    /// # Errors
    ///
    /// The loan as it was, and the transport's own error; then nothing was sent.
    fn send(self, wait: Wait) -> Result<(), (Self, Self::Error)>;
}

impl<T: LendFrames + ?Sized> LendFrames for &mut T {
    type Loan<'a>
        = T::Loan<'a>
    where
        Self: 'a;

    fn lend_frames(
        &mut self,
        lengths: &[usize],
        wait: Wait,
    ) -> Result<Self::Loan<'_>, Self::SendError> {
        (**self).lend_frames(lengths, wait)
    }
}

#[cfg(feature = "alloc")]
impl<T: LendFrames + ?Sized> LendFrames for alloc::boxed::Box<T> {
    type Loan<'a>
        = T::Loan<'a>
    where
        Self: 'a;

    fn lend_frames(
        &mut self,
        lengths: &[usize],
        wait: Wait,
    ) -> Result<Self::Loan<'_>, Self::SendError> {
        (**self).lend_frames(lengths, wait)
    }
}
