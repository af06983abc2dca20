//! The calls of the driver that an upload cannot do without, and nothing else.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUevent, CUevent_flags, CUevent_wait_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result};

/// A context with two streams, some slots that are used in turn, and an event.
pub(crate) struct Bare {
    pub(crate) to_device: Arc<CudaStream>,
    pub(crate) stream: Arc<CudaStream>,
    slots: *mut c_void,
    count: usize,
    len: usize,
    /// Which slot it is now.
    now: usize,
    event: CudaEvent,
}

impl Bare {
    /// `count` slots of `len` bytes.
    pub(crate) fn new(context: &Arc<CudaContext>, count: usize, len: usize) -> Self {
        context.bind_to_thread().unwrap();
        // SAFETY: `malloc_host` has no conditions, but that a context is current.
        let slots = unsafe { result::malloc_host(count * len, 0) }.unwrap();
        // SAFETY: so many bytes were allocated.
        unsafe { slots.cast::<u8>().write_bytes(0, count * len) };
        Self {
            to_device: context.new_stream().unwrap(),
            stream: context.new_stream().unwrap(),
            slots,
            count,
            len,
            now: 0,
            event: context.new_event(None).unwrap(),
        }
    }

    /// The bytes of the slot.
    pub(crate) fn slot(&mut self) -> &mut [u8] {
        let start = self.start(0);
        // SAFETY: so many bytes were allocated from there on, and zeroed; they are borrowed alone, and the driver copies
        // nothing.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }

    /// Goes on to the next slot.
    pub(crate) const fn go_on(&mut self) {
        self.now = (self.now + 1) % self.count;
    }

    fn start(&self, at: usize) -> *mut u8 {
        // SAFETY: there are `count` slots of `len` bytes, `now` is one of them, and no caller goes past its end.
        unsafe { self.slots.cast::<u8>().add(self.now * self.len + at) }
    }

    /// Allocates memory of the device, and puts a copy of the slot's bytes from `at` on there.
    pub(crate) fn allocate_and_copy(&mut self, at: usize, len: usize) -> CUdeviceptr {
        assert!(at + len <= self.len);
        let (to_device, start) = (self.to_device.cu_stream(), self.start(at));
        // SAFETY: the stream is one of the context that is current.
        let pointer = unsafe { result::malloc_async(to_device, len) }.unwrap();
        // SAFETY: the slot has as many bytes from there on, and is there until the end.
        let bytes = unsafe { std::slice::from_raw_parts(start, len) };
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

    /// Says when the slot is free again, and goes on to the next.
    pub(crate) fn record_slot(&mut self) {
        self.go_on();
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
        unsafe { result::free_host(self.slots) }.unwrap();
    }
}
