//! The calls of the driver that an upload cannot do without, and nothing else.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUevent, CUevent_flags, CUevent_wait_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result};

/// A context with two streams, a slot and its event.
pub(crate) struct Bare {
    pub(crate) to_device: Arc<CudaStream>,
    pub(crate) stream: Arc<CudaStream>,
    slot: *mut c_void,
    len: usize,
    event: CudaEvent,
}

impl Bare {
    pub(crate) fn new(context: &Arc<CudaContext>, len: usize) -> Self {
        context.bind_to_thread().unwrap();
        // SAFETY: `malloc_host` has no conditions, but that a context is current.
        let slot = unsafe { result::malloc_host(len, 0) }.unwrap();
        // SAFETY: so many bytes were allocated.
        unsafe { slot.cast::<u8>().write_bytes(0, len) };
        Self {
            to_device: context.new_stream().unwrap(),
            stream: context.new_stream().unwrap(),
            slot,
            len,
            event: context.new_event(None).unwrap(),
        }
    }

    /// The pinned memory.
    pub(crate) fn slot(&mut self) -> &mut [u8] {
        // SAFETY: it was allocated with so many bytes, and zeroed; it is borrowed alone, and the driver copies nothing.
        unsafe { std::slice::from_raw_parts_mut(self.slot.cast(), self.len) }
    }

    /// Allocates memory of the device, and puts a copy of the slot's first bytes there.
    pub(crate) fn allocate_and_copy(&mut self, len: usize) -> CUdeviceptr {
        let (to_device, bytes) = (self.to_device.cu_stream(), self.slot.cast::<u8>());
        // SAFETY: the stream is one of the context that is current.
        let pointer = unsafe { result::malloc_async(to_device, len) }.unwrap();
        // SAFETY: the slot has more bytes, and is there until the end.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, len) };
        // SAFETY: both memories are there until the copy has run, which the driver does at once.
        unsafe { result::memcpy_htod_async(pointer, bytes, to_device) }.unwrap();
        pointer
    }

    /// Copies out of pinned memory that is the caller's.
    pub(crate) fn allocate_and_copy_from(&mut self, bytes: &[u8]) -> CUdeviceptr {
        let to_device = self.to_device.cu_stream();
        // SAFETY: the stream is one of the context that is current.
        let pointer = unsafe { result::malloc_async(to_device, bytes.len()) }.unwrap();
        // SAFETY: both memories are there until the copy has run, which the driver does at once.
        unsafe { result::memcpy_htod_async(pointer, bytes, to_device) }.unwrap();
        pointer
    }

    /// Says when the slot is free again.
    pub(crate) fn record_slot(&mut self) {
        // SAFETY: event and stream are of the context that is current.
        unsafe { result::event::record(self.event.cu_event(), self.to_device.cu_stream()) }
            .unwrap();
    }

    /// Makes the consumer's stream wait for an event of its own, recorded now.
    pub(crate) fn hand_over(&mut self) -> CUevent {
        let ready = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        // SAFETY: event and stream are of the context that is current.
        unsafe { result::event::record(ready, self.to_device.cu_stream()) }.unwrap();
        let flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: as above.
        unsafe { result::stream::wait_event(self.stream.cu_stream(), ready, flags) }.unwrap();
        ready
    }

    /// Brings bytes back, once the producer's stream has come so far, and waits until they are there.
    pub(crate) fn fetch(&mut self, pointer: CUdeviceptr, len: usize) {
        let produced = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        // SAFETY: event and stream are of the context that is current.
        unsafe { result::event::record(produced, self.stream.cu_stream()) }.unwrap();
        let flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        let to_host = self.to_device.cu_stream();
        // SAFETY: as above.
        unsafe { result::stream::wait_event(to_host, produced, flags) }.unwrap();
        let target = &mut self.slot()[..len];
        // SAFETY: both memories are there until the copy has run, which the driver does at once.
        unsafe { result::memcpy_dtoh_async(target, pointer, to_host) }.unwrap();
        self.record_slot();
        // SAFETY: the event is one of the context.
        while unsafe { result::event::query(self.event.cu_event()) }.is_err() {}
        // SAFETY: it was created for this, and is destroyed once.
        unsafe { result::event::destroy(produced) }.unwrap();
    }

    /// What is left when the tensors are dropped.
    pub(crate) fn free(&mut self, pointers: impl IntoIterator<Item = CUdeviceptr>, ready: CUevent) {
        for pointer in pointers {
            // SAFETY: it was allocated on a stream of this context, and is freed once.
            unsafe { result::free_async(pointer, self.stream.cu_stream()) }.unwrap();
        }
        // SAFETY: it was created for this, and is destroyed once.
        unsafe { result::event::destroy(ready) }.unwrap();
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `malloc_host`, and is freed once.
        unsafe { result::free_host(self.slot) }.unwrap();
    }
}
