//! Payloads on their way to the device while they are being read.
#![allow(unsafe_code)]

use alloc::sync::Arc;

use cudarc::driver::CudaStream;

use super::adapter::Shared;
use super::error::{CudaError, Step};
use super::incoming::Incoming;
use super::staging::Staging;
use super::tensor::Tensor;
use crate::device::{self, ErrorKind, Tensors};
use crate::message::Metadata;
use crate::transport::Wait;

/// Payloads of a message, read straight into pinned memory, from where the device copies them.
///
/// ```text
///  socket -- read --> slot ---- DMA ----> device        one copy of the host's in all
///  frame  -- copy --> slot ---- DMA ----> device        the same, with copy_from
/// ```
///
/// It holds the device memory of all tensors, and one slot while that is partly filled; a full one is the
/// device's at once. So as many landings as there are slots can fill the ring while they wait for slow peers:
/// read slow peers' frames elsewhere, and upload them when they are whole.
///
/// After an error other than the ring's being full it is of no use: each call says the error again.
///
/// [`device::Landing`] has the methods.
#[derive(Debug)]
pub struct Landing {
    // Dropped first: nothing is put on the stream any more when the memory is freed there.
    staging: Staging,
    incoming: Incoming,
    /// The tensor that bytes are due of, and how many of it have come.
    tensor: usize,
    done: usize,
    missing: usize,
    /// How many bytes the last room had that was not filled yet.
    offered: usize,
    failed: Option<CudaError>,
}

impl Landing {
    pub(super) fn new(
        shared: &Arc<Shared>,
        metadata: &Metadata<'_, '_>,
        stream: &Arc<CudaStream>,
    ) -> Result<Self, CudaError> {
        shared.keeper.poll()?;
        let mut incoming = Incoming::plan(shared, metadata.descriptors(), stream)?;
        incoming.allocate()?;
        let missing = incoming.byte_len();
        Ok(Self {
            staging: Staging::new(shared.clone()),
            incoming,
            tensor: 0,
            done: 0,
            missing,
            offered: 0,
            failed: None,
        })
    }

    /// Goes on to the tensor that the next byte is of, and returns how many of it are missing.
    fn due(&mut self) -> usize {
        while self.tensor < self.incoming.len() {
            let len = self.incoming.len_of(self.tensor);
            if let rest @ 1.. = len.saturating_sub(self.done) {
                return rest;
            }
            (self.tensor, self.done) = (self.tensor.saturating_add(1), 0);
        }
        0
    }

    /// An error of the caller's, about the tensor that bytes are due of, if there is one.
    fn refuse(&mut self, kind: ErrorKind) -> CudaError {
        let error = CudaError::new(kind, Step::Stage);
        match self.due() {
            0 => error,
            _ => error.of_tensor(self.tensor),
        }
    }

    /// Keeps an error that nothing comes after.
    fn keep<T>(&mut self, result: Result<T, CudaError>) -> Result<T, CudaError> {
        result.inspect_err(|&error| self.failed = Some(error))
    }

    fn start(&mut self, wait: Wait) -> Result<usize, CudaError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let rest = self.due();
        if rest == 0 {
            return Ok(0);
        }
        if self.done == 0 {
            // SAFETY: as for `filled` below.
            let aligned = unsafe { self.staging.align() };
            self.keep(aligned)?;
        }
        let taken = self.staging.take(self.missing, wait);
        taken.map_err(|error| error.of_tensor(self.tensor))?;
        Ok(rest)
    }
}

impl device::Landing for Landing {
    type Tensor = Tensor;
    type Error = CudaError;

    fn missing(&self) -> usize {
        self.missing
    }

    fn room(&mut self, wait: Wait) -> Result<&mut [u8], CudaError> {
        self.offered = 0;
        let rest = self.start(wait)?;
        let room = match rest {
            0 => &mut [],
            // There is a slot: this neither waits nor fails.
            _ => self.staging.room(rest, self.missing, Wait::Never)?,
        };
        self.offered = room.len();
        Ok(room)
    }

    fn filled(&mut self, len: usize) -> Result<(), CudaError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if len > self.offered {
            let (expected, actual) = (self.offered, len);
            return Err(self.refuse(ErrorKind::Length { expected, actual }));
        }
        self.offered = 0;
        let Some(target) = self.incoming.target(self.tensor, self.done) else {
            return Ok(());
        };
        self.incoming
            .look_at(self.tensor, self.done, self.staging.next(len));
        // SAFETY: `filled` and `send` ask that the memory of the targets is the device's, nobody else's before
        // what is put on the stream has run, and freed after that. It is memory of `incoming`, which has room for the
        // whole tensor, and `len` is not more than is missing of it, as `room` offered no more.
        // Nobody has it before `deliver`, which makes its user wait for the stream; else it is freed on the stream.
        let filled = unsafe { self.staging.filled(len, target) };
        self.done = self.done.saturating_add(len);
        self.missing = self.missing.saturating_sub(len);
        self.keep(filled)?;
        if self.missing == 0 {
            // SAFETY: as for `filled` above.
            let sent = unsafe { self.staging.send() };
            self.keep(sent)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Tensors<Tensor>, CudaError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let missing @ 1.. = self.missing {
            return Err(self.refuse(ErrorKind::Incomplete { missing }));
        }
        self.incoming.deliver(None)
    }

    fn copy_from(&mut self, mut bytes: &[u8], wait: Wait) -> Result<(), CudaError> {
        if bytes.len() > self.missing {
            let (expected, actual) = (self.missing, bytes.len());
            return Err(self.refuse(ErrorKind::Length { expected, actual }));
        }
        while !bytes.is_empty() {
            let room = self.room(wait)?;
            let len = room.len().min(bytes.len());
            let (Some(room), Some((now, rest))) =
                (room.get_mut(..len), bytes.split_at_checked(len))
            else {
                return Ok(());
            };
            room.copy_from_slice(now);
            self.filled(len)?;
            bytes = rest;
        }
        Ok(())
    }
}
