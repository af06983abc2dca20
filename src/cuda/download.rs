//! Tensors of the device to the host, into frames that are sent from where they lie.
//!
//! ```text
//!  producer's stream   event     to_host                    ring of pinned slots             a transport
//! +-----------------+  waits   +--------------+  DMA   +------+------+------+   frames    +--------------+
//! | kernels ...     |--------->| a copy each  |------->|  one run of slots  |------------>| sends them,  |
//! +-----------------+          +--------------+        +------+------+------+             | lets them go |
//!                                     | event: the frames are there ^                     +--------------+
//!                                     +-----------------------------+  back when the last frame is let go |
//!                                                                   +-------------------------------------+
//! ```

use core::mem;

use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::CudaStream;

use super::Cuda;
use super::driver::Driver;
use super::error::{CudaError, Step};
use super::pinned::Pinned;
use super::ring::InFlight;
use super::source::Source;
use crate::device::{self, ALIGN, Downloaded, ErrorKind, TensorInfo};
use crate::transport::{Buffer, Wait};

impl Cuda {
    /// Brings `sources` back, as `producer` leaves them: into one run of pinned slots, each at a multiple of 256.
    ///
    /// The device's [`download`](crate::device::Device::download) does the same for [`Tensor`](super::Tensor)s. When
    /// it returns the copies are under way: the sources can be dropped at once, and
    /// what is put on `producer` later may change them where cudarc tracks their
    /// uses; where it does not, `producer` and the streams of the sources wait for the copies.
    ///
    /// Sources without a byte take no slot.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::RingFull`], [`ErrorKind::TimedOut`] when there were not enough slots side by side within `wait`.
    /// - [`ErrorKind::TooLarge`] for more bytes than the ring has.
    /// - The driver's; the error says which source.
    pub fn download_sources<'a, I>(
        &self,
        sources: I,
        producer: &CudaStream,
        wait: Wait,
    ) -> Result<Download, CudaError>
    where
        I: IntoIterator<Item = Source<'a>>,
    {
        let sources: Vec<_> = sources.into_iter().collect();
        let (offsets, len) = self.lay_out(&sources)?;
        let flight = match len {
            0 => None,
            _ => Some(self.fly(&sources, &offsets, len, producer, wait)?),
        };
        let infos = sources.into_iter().map(Source::into_info);
        Ok(Download {
            frames: infos.zip(offsets).collect(),
            len,
            flight,
            driver: self.shared.driver.clone(),
        })
    }

    /// Where each source goes, and where the last one ends.
    fn lay_out(&self, sources: &[Source<'_>]) -> Result<(Vec<usize>, usize), CudaError> {
        let mut offsets = Vec::with_capacity(sources.len());
        let mut end: usize = 0;
        for (index, source) in sources.iter().enumerate() {
            let offset = end.checked_next_multiple_of(ALIGN);
            let sum = offset.and_then(|offset| {
                let end = offset.checked_add(source.info().byte_len())?;
                Some((offset, end))
            });
            let (offset, next) = sum.ok_or_else(|| {
                let statistics = self.statistics();
                let room = statistics.slots.saturating_mul(statistics.slot_bytes);
                let needed = usize::MAX;
                let kind = ErrorKind::TooLarge { needed, room };
                CudaError::new(kind, Step::Stage).of_tensor(index)
            })?;
            if source.info().byte_len() > 0 {
                end = next;
            }
            offsets.push(offset);
        }
        Ok((offsets, end))
    }

    fn fly(
        &self,
        sources: &[Source<'_>],
        offsets: &[usize],
        len: usize,
        producer: &CudaStream,
        wait: Wait,
    ) -> Result<InFlight, CudaError> {
        let shared = &*self.shared;
        shared.keeper.poll()?;
        let slots = shared.ring.take(len, wait)?;
        // SAFETY: `begin_copies` asks for pinned memory with room for each source, which nobody uses or frees until the
        // copies have run: `lay_out` has put all of them inside of `len` bytes, the slots have
        // as many, and are the ring's from `submit` on, with or without an error, until it knows that the copies are over.
        let begun =
            unsafe { shared.begin_copies(sources, offsets, ALIGN, slots.start(), producer) };
        if !begun.is_begun {
            return begun.result.and_then(|()| slots.submit(&shared.to_host));
        }
        let flight = slots.submit(&shared.to_host);
        let event = flight.as_ref().ok().map(|flight| &**flight.event());
        let released = shared.release(sources, producer, event, &begun);
        begun.result?;
        let flight = flight?;
        released?;
        Ok(flight)
    }
}

/// Tensors on their way out of a CUDA device, into pinned slots.
///
/// The frames of the [`Downloaded`] lie in those slots: a transport sends them from there, and the
/// slots are free when it has let go of the last one. Dropped before, the slots are free when the copies are over.
#[derive(Debug)]
#[must_use = "dropped, what comes is thrown away"]
pub struct Download {
    /// With where they lie from the start of the slots.
    frames: Vec<(TensorInfo, usize)>,
    len: usize,
    /// `None` if no source has a byte.
    flight: Option<InFlight>,
    driver: Arc<Driver>,
}

impl Download {
    /// Returns what the tensors are called and look like, in the order that was asked for.
    pub fn infos(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.frames.iter().map(|(info, _)| info)
    }

    /// Makes what comes next on `stream` wait until the sources have been read; the host does not wait.
    ///
    /// For kernels that write to a source by its address, which nobody knows of.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn wait_on(&self, stream: &CudaStream) -> Result<(), CudaError> {
        match &self.flight {
            Some(flight) => self.driver.wait(stream, flight.event()),
            None => Ok(()),
        }
    }
}

impl device::Download for Download {
    type Error = CudaError;

    fn is_ready(&mut self) -> Result<bool, CudaError> {
        self.flight.as_ref().map_or(Ok(true), InFlight::is_ready)
    }

    fn finish(mut self, wait: Wait) -> Result<Downloaded, (Self, CudaError)> {
        let memory = match self.flight.take() {
            None => None,
            Some(flight) => match flight.finish(wait) {
                Ok(slots) => Some(Pinned::of_slots(slots, self.len).share()),
                Err((flight, error)) => {
                    self.flight = Some(flight);
                    return Err((self, error));
                }
            },
        };
        let frames = mem::take(&mut self.frames).into_iter();
        let frames = frames.map(|(info, offset)| {
            let range = offset..offset.saturating_add(info.byte_len());
            let bytes = memory.as_ref().and_then(|memory| memory.slice(range));
            let frame = bytes.map_or_else(|| Buffer::from(Vec::new()), Buffer::new);
            (info, frame)
        });
        let (expected, actual) = (
            self.len,
            memory.as_ref().map_or(0, |memory| memory.as_ref().len()),
        );
        Downloaded::new(frames.collect()).map_err(|_| {
            // Not so: `lay_out` has put each range inside of the slots.
            let kind = ErrorKind::Length { expected, actual };
            (self, CudaError::new(kind, Step::CopyToHost))
        })
    }
}
