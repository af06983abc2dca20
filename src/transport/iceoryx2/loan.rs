//! A message that is written where it will be read.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr;

use ::iceoryx2::port::SendError;
use ::iceoryx2::prelude::ipc_threadsafe;
use ::iceoryx2::sample_mut::SampleMut;

use super::channel::BLOCK;
use super::{Error, Sender};
use crate::bundle;
use crate::transport::{Loan, Wait};

/// A message that is being written in a place of its sender's pool.
///
/// Dropping it frees the place.
#[must_use = "a message that is dropped is not sent"]
pub struct Lent<'a> {
    sender: &'a mut Sender,
    /// There at all times but within `send`.
    place: Option<Place>,
}

impl<'a> Lent<'a> {
    /// Writes header, table and padding for the sender's `lengths`.
    pub(super) fn new(sender: &'a mut Sender, place: Place) -> Self {
        let mut lent = Self {
            sender,
            place: Some(place),
        };
        // Where all frames are empty nobody needs to ask for their places.
        drop(lent.frames_mut());
        lent
    }

    fn try_send(&mut self, wait: Wait) -> Result<(), Error> {
        let bytes = self.sender.lengths.iter().copied();
        let bytes = bytes.fold(0, usize::saturating_add);
        let place = &mut self.place;
        self.sender.wait_until(wait, |sender| {
            let Some(sent) = place.take() else {
                return Err(Error::Closed);
            };
            let room = sent.room();
            let result = sender.pass_on(sent);
            if !matches!(result, Ok(true)) {
                // iceoryx2 freed the place: it is taken back with what was written there.
                *place = sender.place_again(room)?;
            }
            result.map(|received| received.then_some(()))
        })?;
        self.sender.recorder.sent(bytes);
        Ok(())
    }
}

impl Loan for Lent<'_> {
    type Error = Error;

    fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let lengths = self.sender.lengths.iter().copied();
        let bytes = self.place.as_mut().map(Place::bytes_mut);
        let places = bytes.and_then(|bytes| bundle::lend(lengths, bytes).ok());
        places.into_iter().flatten()
    }

    fn send(mut self, wait: Wait) -> Result<(), (Self, Error)> {
        match self.try_send(wait) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.sender.recorder.send_failed(&error);
                Err((self, error))
            }
        }
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent")
            .field("lengths", &self.sender.lengths)
            .finish_non_exhaustive()
    }
}

/// One place in a sender's pool, taken.
pub(super) struct Place {
    sample: SampleMut<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
}

impl Place {
    pub(super) fn new(sample: SampleMut<ipc_threadsafe::Service, [[u8; BLOCK]], ()>) -> Self {
        Self { sample }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.sample.payload_mut().as_flattened_mut()
    }

    /// Returns where it lies, to take it again after it was freed.
    fn room(&self) -> Room {
        let blocks = self.sample.payload();
        Room {
            data: blocks.as_ptr(),
            blocks: blocks.len(),
        }
    }

    /// Passes it on, and returns to how many; to none, the place is free.
    pub(super) fn send(self) -> Result<usize, SendError> {
        self.sample.send()
    }

    /// Writes what lies in `room`.
    ///
    /// # Safety
    ///
    /// 1. `room` was a place of the same sender.
    /// 2. It is free, or it is this place.
    pub(super) unsafe fn write_from(&mut self, room: &Room) {
        let bytes = self.sample.payload_mut();
        if ptr::eq(bytes.as_ptr(), room.data) {
            return;
        }
        let blocks = bytes.len().min(room.blocks);
        // SAFETY: `ptr::copy` asks three things.
        // - The source is valid for reads: it was a place of this sender's pool, which
        //   stays mapped as long as the sender, and is free, as it is not this one, so that nobody writes there.
        // - The target is valid for writes: it is a slice of at least as many blocks.
        // - Both are aligned: blocks are made of bytes.
        unsafe { ptr::copy(room.data, bytes.as_mut_ptr(), blocks) };
    }
}

/// Where a place was.
pub(super) struct Room {
    data: *const [u8; BLOCK],
    pub(super) blocks: usize,
}
