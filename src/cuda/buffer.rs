//! Memory of a device, owned.
//!
//! ```text
//!  to_device    allocate -- copy -- copy -- ready
//!                                             |
//!  consumer                     ... waits ----+-- uses ... -- waits for reads -- free
//!                                             |                     |
//!  any other                    ... waits ----+-- read ... ---------+
//! ```
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use alloc::boxed::Box;
use alloc::sync::Arc;

use std::sync::OnceLock;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, SyncOnDrop};

use super::driver::Driver;
use super::error::{CudaError, Step};

/// Memory of a device. Dropped, it is freed in the order of its stream, after the reads on other
/// streams that cudarc tracked.
#[derive(Debug)]
pub(super) struct Buffer {
    driver: Arc<Driver>,
    /// Null for no bytes, which take no memory.
    pointer: CUdeviceptr,
    len: usize,
    /// On which it is freed: the transfer stream while it is being filled, then the consumer's.
    stream: Arc<CudaStream>,
    /// What fills it has run. `None` while it is being filled, and for no bytes.
    ready: Option<Arc<CudaEvent>>,
    /// Who reads it on other streams. It only grows, so that what is in it can be lent.
    readers: OnceLock<Box<Reader>>,
    /// There may be a read that no event tells of.
    is_in_doubt: AtomicBool,
}

/// The last read on a stream that cudarc's safe layer knows of.
#[derive(Debug)]
struct Reader {
    /// The stream's handle, to tell it from others.
    stream: usize,
    event: CudaEvent,
    next: OnceLock<Box<Self>>,
}

impl Buffer {
    /// Allocates `len` bytes in the order of `stream`, on which it is to be filled. For no bytes the driver is not asked.
    pub(super) fn allocate(
        driver: &Arc<Driver>,
        len: usize,
        stream: &Arc<CudaStream>,
    ) -> Result<Self, CudaError> {
        let pointer = match len {
            0 => 0,
            _ => driver.allocate(len, stream)?,
        };
        Ok(Self {
            driver: driver.clone(),
            pointer,
            len,
            stream: stream.clone(),
            ready: None,
            readers: OnceLock::new(),
            is_in_doubt: AtomicBool::new(false),
        })
    }

    /// Makes it `stream`'s: that one waits for `ready`, which is recorded behind what fills the memory, and frees it.
    ///
    /// The stream has to wait already.
    pub(super) fn hand_over(&mut self, ready: &Arc<CudaEvent>, stream: &Arc<CudaStream>) {
        if self.len > 0 {
            self.ready = Some(ready.clone());
        }
        self.stream = stream.clone();
    }

    /// Where it starts; null for no bytes.
    pub(super) const fn pointer(&self) -> CUdeviceptr {
        self.pointer
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    pub(super) const fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// The event that says that it has been filled; `None` for no bytes.
    pub(super) const fn ready(&self) -> Option<&Arc<CudaEvent>> {
        self.ready.as_ref()
    }

    /// Makes `stream` wait until it has been filled, and notes what is put on `stream` until the guard goes as a read.
    ///
    /// Errors are parked in the context, as cudarc does with those of its own slices.
    pub(super) fn read_on<'a>(&'a self, stream: &'a CudaStream) -> SyncOnDrop<'a> {
        let Some(ready) = &self.ready else {
            return SyncOnDrop::Record(None);
        };
        if *stream == *self.stream {
            return SyncOnDrop::Record(None);
        }
        if let Err(error) = stream.wait(ready) {
            self.driver.park::<()>(Step::WaitEvent, Err(error));
            // The stream does not wait: so this thread has to.
            let _unknown = self.driver.synchronize(ready);
        }
        let (ours, theirs) = (self.driver.context(), stream.context());
        if !ours.is_event_tracking() {
            return SyncOnDrop::Record(None);
        }
        // Where the guard would record nothing, or fail, this thread waits: the event is of our context, and the guard asks the
        // handle to the context that the stream has whether it tracks, which each handle knows only of its own streams. One that
        // has none but the default stream by the time that the guard goes records nothing.
        let is_recorded = ours == theirs
            && theirs.is_managing_stream_synchronization()
            && (!stream.cu_stream().is_null() || Arc::ptr_eq(theirs, self.stream.context()));
        // The default stream of each thread is one handle for many streams: one event would not do.
        let reader = if is_recorded && !is_per_thread(stream) {
            self.reader(stream)
        } else {
            None
        };
        // While an error is kept, cudarc's guard returns it to itself, and neither records nor waits.
        if Driver::is_parked(ours) || Driver::is_parked(theirs) {
            self.is_in_doubt.store(true, Ordering::Relaxed);
        }
        match reader {
            Some(event) => SyncOnDrop::Record(Some((event, stream))),
            None => SyncOnDrop::sync_stream(stream),
        }
    }

    /// The event for reads on `stream`; `None` if the driver makes none.
    fn reader(&self, stream: &CudaStream) -> Option<&CudaEvent> {
        let key = stream.cu_stream().addr();
        let mut place = &self.readers;
        loop {
            if place.get().is_none() {
                let event = self.driver.context().new_event(None);
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        self.driver.park::<()>(Step::CreateEvent, Err(error));
                        return None;
                    }
                };
                let next = OnceLock::new();
                let stream = key;
                // Another thread may be first: then its reader is looked at.
                let _first = place.set(Box::new(Reader {
                    stream,
                    event,
                    next,
                }));
            }
            let reader = place.get()?;
            if reader.stream == key {
                // Of itself a stream has nothing to wait for; one that has the handle of one that is gone has.
                let waiting = stream.wait(&reader.event);
                self.driver.park(Step::WaitEvent, waiting);
                return Some(&reader.event);
            }
            place = &reader.next;
        }
    }

    /// Makes its stream wait for the reads on others. `false` if it is not known that they are over by then.
    fn join_readers(&self) -> bool {
        if self.is_in_doubt.load(Ordering::Relaxed)
            && let Err(_named) = self.driver.synchronize_context()
        {
            return false;
        }
        let mut place = &self.readers;
        while let Some(reader) = place.get() {
            if let Err(error) = self.stream.wait(&reader.event) {
                self.driver.park::<()>(Step::WaitEvent, Err(error));
                if let Err(_named) = self.driver.synchronize(&reader.event) {
                    return false;
                }
            }
            place = &reader.next;
        }
        true
    }

    /// Gives the memory away: its start, its length, and the stream in whose order it is to be used and freed.
    ///
    /// `Err` with itself if it has no bytes.
    pub(super) fn into_raw(mut self) -> Result<(CUdeviceptr, usize, Arc<CudaStream>), Self> {
        if self.pointer == 0 || !self.join_readers() {
            return Err(self);
        }
        let raw = (self.pointer, self.len, self.stream.clone());
        // From here on `drop` has nothing to free.
        self.pointer = 0;
        Ok(raw)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let is_joined = self.pointer != 0 && self.join_readers();
        // One after the other: each in the drop of the one before, many would need much stack.
        let mut reader = self.readers.take();
        while let Some(mut last) = reader {
            reader = last.next.take();
        }
        // Memory that may be read yet is leaked.
        if !is_joined {
            return;
        }
        // SAFETY: `free` asks three things.
        // - The pointer came from `allocate` of this driver and was not freed: `Self::allocate` got it there,
        //   `into_raw` sets it to null, and this is the only other place.
        // - The allocation is ordered before what comes next on the stream: either it is the stream that the
        //   memory was allocated on, or that of `hand_over`, which waits for an event behind the allocation.
        // - So is what uses the memory: what fills it is on the first stream, and before that event; reads on
        //   other streams were just joined; and what was not tracked is the user's to order, as `View` says.
        unsafe { self.driver.free(self.pointer, &self.stream) };
    }
}

/// Tells whether `stream` is that of whichever thread uses it.
pub(super) fn is_per_thread(stream: &CudaStream) -> bool {
    /// `CU_STREAM_PER_THREAD` of `cuda.h`.
    const PER_THREAD: usize = 2;
    let handle: *mut c_void = stream.cu_stream().cast();
    handle.addr() == PER_THREAD
}
