//! Each call of the driver that the adapter makes, checked.
//!
//! | call | waits for the device |
//! |---|---|
//! | `cuMemHostAlloc`, `cuMemHostRegister`, `cuMemAlloc` | may |
//! | `cuMemFreeHost`, `cuMemHostUnregister`, `cuMemFree` | yes |
//! | `cuMemAllocAsync`, `cuMemFreeAsync` | no |
//! | `cuMemcpyHtoDAsync`, `cuMemcpyDtoHAsync` from and to pinned memory | no |
//! | the same from and to other memory | may, in parts of it |
//! | `cuEventRecord`, `cuEventQuery`, `cuStreamWaitEvent` | no |
//! | `cuEventSynchronize` | yes |

use core::ffi::c_void;
use core::ptr::NonNull;
use core::slice;

use alloc::sync::Arc;

use std::sync::OnceLock;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream};

use super::error::{Code, CudaError, Step};
use crate::device::ErrorKind;

/// The driver, for one context, and whether the device is still good.
#[derive(Debug)]
pub(super) struct Driver {
    context: Arc<CudaContext>,
    /// The first error that the context does not come back from.
    fault: OnceLock<(Code, Step)>,
}

impl Driver {
    pub(super) const fn new(context: Arc<CudaContext>) -> Self {
        Self {
            context,
            fault: OnceLock::new(),
        }
    }

    pub(super) const fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The error that everything fails with from now on, if there was one.
    pub(super) fn fault(&self) -> Option<CudaError> {
        let &(code, step) = self.fault.get()?;
        Some(CudaError::unusable(code, step))
    }

    /// Gives what the driver said at `step` a name, and remembers what cannot be mended.
    pub(super) fn check<T>(
        &self,
        step: Step,
        result: Result<T, DriverError>,
    ) -> Result<T, CudaError> {
        result.map_err(|error| {
            let code = Code::from(error);
            if code.is_sticky() {
                let _earlier = self.fault.set((code, step));
            }
            CudaError::driver(code, step)
        })
    }

    /// Makes the context the thread's, before calls that do not do that themselves.
    ///
    /// What failed in a drop, of cudarc's values as well, is told here, once.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        self.check(Step::Enter, self.context.check_err())?;
        self.check(Step::Enter, self.bind())
    }

    /// Makes the context the thread's, and nothing else.
    ///
    /// `CudaContext::bind_to_thread` does not if an error is parked, and returns that one: no good in a drop, nor after a copy.
    fn bind(&self) -> Result<(), DriverError> {
        let context = self.context.cu_ctx();
        if result::ctx::get_current()? == Some(context) {
            return Ok(());
        }
        // SAFETY: `set_current` asks for a context that exists: `self` keeps it.
        unsafe { result::ctx::set_current(context) }
    }

    /// Keeps what failed where nothing can be returned, for the next [`enter`](Self::enter) to tell.
    pub(super) fn park<T>(&self, step: Step, result: Result<T, DriverError>) {
        if let Err(error) = result {
            let _named = self.check::<T>(step, Err(error));
            self.context.record_err::<T>(Err(error));
        }
    }

    pub(super) fn create_stream(&self) -> Result<Arc<CudaStream>, CudaError> {
        self.enter()?;
        self.check(Step::CreateStream, self.context.new_stream())
    }

    pub(super) fn create_event(&self) -> Result<CudaEvent, CudaError> {
        self.enter()?;
        self.check(Step::CreateEvent, self.context.new_event(None))
    }

    /// Records `event` after what is on `stream` by now.
    ///
    /// An error says that it is not known whether it will fire, or for what. What was parked by others is not told
    /// here: the event is needed by then.
    pub(super) fn record(&self, event: &CudaEvent, stream: &CudaStream) -> Result<(), CudaError> {
        self.check(Step::Enter, self.bind())?;
        // SAFETY: `event::record` asks that event and stream are not null handles of nothing: both are borrowed, and so
        // not destroyed. The driver itself turns away a pair of two contexts.
        let recorded = unsafe { result::event::record(event.cu_event(), stream.cu_stream()) };
        self.check(Step::RecordEvent, recorded)
    }

    /// Tells whether `event` has fired. One that was never recorded has.
    pub(super) fn is_complete(&self, event: &CudaEvent) -> Result<bool, CudaError> {
        self.enter()?;
        self.check(Step::QueryEvent, event.try_is_complete())
    }

    /// Blocks this thread until `event` has fired. For drops, and for nothing else.
    ///
    /// An error says that it is not known whether it has. Also after a fault it is tried; what was parked stays so.
    pub(super) fn synchronize(&self, event: &CudaEvent) -> Result<(), CudaError> {
        self.check(Step::Enter, self.bind())?;
        // SAFETY: `event::synchronize` asks for an event: it is borrowed, and so not destroyed.
        let fired = unsafe { result::event::synchronize(event.cu_event()) };
        self.check(Step::WaitEvent, fired)
    }

    /// Blocks this thread until what is on `stream` by now has run. For drops, where no event could be recorded.
    pub(super) fn synchronize_stream(&self, stream: &CudaStream) -> Result<(), CudaError> {
        self.check(Step::Enter, self.bind())?;
        // SAFETY: `stream::synchronize` asks for a stream that is not destroyed: it is borrowed.
        let ran = unsafe { result::stream::synchronize(stream.cu_stream()) };
        self.check(Step::WaitEvent, ran)
    }

    /// Makes what comes next on `stream` wait for `event`; the host does not.
    pub(super) fn wait(&self, stream: &CudaStream, event: &CudaEvent) -> Result<(), CudaError> {
        self.enter()?;
        self.check(Step::WaitEvent, stream.wait(event))
    }

    /// Allocates `len` bytes of pinned memory, which hold anything. Not write-combined: the host reads it too.
    pub(super) fn allocate_pinned(&self, len: usize) -> Result<NonNull<u8>, CudaError> {
        self.enter()?;
        // SAFETY: `malloc_host` has no conditions, but that a context is current, which `enter` saw to;
        // that the memory holds anything is passed on.
        let pointer = unsafe { result::malloc_host(len, 0) };
        let pointer = self.check(Step::AllocatePinned, pointer)?;
        NonNull::new(pointer.cast()).ok_or_else(|| {
            CudaError::new(ErrorKind::OutOfMemory { bytes: len }, Step::AllocatePinned)
        })
    }

    /// Frees pinned memory. Callers do not count on the driver to wait for copies that use it.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`allocate_pinned`](Self::allocate_pinned) of this driver, was not freed, and nobody uses the memory any more.
    pub(super) unsafe fn free_pinned(&self, pointer: NonNull<u8>) {
        self.park(Step::Enter, self.bind());
        // SAFETY: `free_host` asks that the pointer came from `malloc_host` and is not null: the caller
        // says so, and it is a `NonNull`.
        let freed = unsafe { result::free_host(pointer.as_ptr().cast()) };
        self.park(Step::FreePinned, freed);
    }

    /// Pins `len` bytes from `pointer` on, in place.
    ///
    /// # Safety
    ///
    /// The bytes are one allocation, or part of one, and stay allocated until [`unregister`](Self::unregister).
    pub(super) unsafe fn register(
        &self,
        pointer: NonNull<u8>,
        len: usize,
    ) -> Result<(), CudaError> {
        self.enter()?;
        let start: *mut c_void = pointer.as_ptr().cast();
        // SAFETY: `cuMemHostRegister` asks for a range of memory that stays allocated while it is
        // registered: the caller says so.
        let registered =
            unsafe { sys::cuMemHostRegister_v2(start, len, sys::CU_MEMHOSTREGISTER_PORTABLE) };
        self.check(Step::Register, registered.result())
            .map_err(|error| error.of_bytes(len))
    }

    /// Unpins memory that was pinned in place, and tells whether it is: it must not be freed otherwise.
    ///
    /// # Safety
    ///
    /// `pointer` was given to [`register`](Self::register), the memory is still allocated, and no copy uses it any more.
    #[must_use = "what could not be unpinned must not be freed"]
    pub(super) unsafe fn unregister(&self, pointer: NonNull<u8>) -> bool {
        self.park(Step::Enter, self.bind());
        // SAFETY: `cuMemHostUnregister` asks for the start of a range that is registered: the caller says so.
        let unregistered = unsafe { sys::cuMemHostUnregister(pointer.as_ptr().cast()) };
        let unregistered = unregistered.result();
        self.park(Step::FreePinned, unregistered);
        unregistered.is_ok()
    }

    /// Allocates `len` bytes of device memory, in the order of `stream` where the device can.
    pub(super) fn allocate(
        &self,
        len: usize,
        stream: &CudaStream,
    ) -> Result<CUdeviceptr, CudaError> {
        self.enter()?;
        let allocated = if self.context.has_async_alloc() {
            // SAFETY: `malloc_async` asks for a stream that exists, which it does as it is borrowed, and that
            // what the memory holds and who uses it when is seen to: that is passed on.
            unsafe { result::malloc_async(stream.cu_stream(), len) }
        } else {
            // SAFETY: `malloc_sync` asks that what the memory holds is seen to: that is passed on.
            unsafe { result::malloc_sync(len) }
        };
        self.check(Step::AllocateDevice, allocated)
            .map_err(|error| error.of_bytes(len))
    }

    /// Frees device memory after what is on `stream` by now; where the device has no such order, it waits for
    /// the stream, and leaks the memory if it is not known, asked twice, that the stream has run.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`allocate`](Self::allocate) of this driver and was not freed. Whatever uses the memory is
    /// ordered before what comes next on `stream`, and so was the allocation.
    pub(super) unsafe fn free(&self, pointer: CUdeviceptr, stream: &CudaStream) {
        self.park(Step::Enter, self.bind());
        let freed = if self.context.has_async_alloc() {
            // SAFETY: `free_async` asks for a stream that exists, and memory that is the stream's to free,
            // once: the caller says so.
            unsafe { result::free_async(pointer, stream.cu_stream()) }
        } else {
            if !self.has_run(stream) && !self.has_run(stream) {
                // The memory may be in use for ever: it is leaked.
                return;
            }
            // SAFETY: `free_sync` asks for memory of `malloc_sync`, once: the caller says so, and the context
            // answers `has_async_alloc` as it did then.
            unsafe { result::free_sync(pointer) }
        };
        self.park(Step::FreeDevice, freed);
    }

    /// Waits until what is on `stream` by now has run; an error is parked, and says that it is not known.
    fn has_run(&self, stream: &CudaStream) -> bool {
        // SAFETY: `stream::synchronize` asks for a stream that is not destroyed: it is borrowed.
        let ran = unsafe { result::stream::synchronize(stream.cu_stream()) };
        self.park(Step::FreeDevice, ran);
        ran.is_ok()
    }

    /// Puts a copy of `len` pinned bytes to the device on `stream`.
    ///
    /// # Safety
    ///
    /// Until the copy has run, the `len` bytes from `source` on are pinned memory that nobody writes to or frees, and those from
    /// `target` on are memory of this device that nobody else uses, ordered on `stream`.
    pub(super) unsafe fn copy_to_device(
        &self,
        target: CUdeviceptr,
        source: NonNull<u8>,
        len: usize,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: `slice::from_raw_parts` asks for `len` readable bytes that nobody writes to while the slice
        // lives, which is during this call: the caller says so of longer. They hold values, as bytes do.
        let source = unsafe { slice::from_raw_parts(source.as_ptr(), len) };
        // SAFETY: `memcpy_htod_async` asks that target and stream are good, and that the source stays where it
        // is until the copy has run: the caller says so.
        let copied = unsafe { result::memcpy_htod_async(target, source, stream.cu_stream()) };
        self.check(Step::CopyToDevice, copied)
    }

    /// Puts a copy of `len` bytes of the device to pinned memory on `stream`.
    ///
    /// # Safety
    ///
    /// Until the copy has run, the `len` bytes from `target` on are pinned memory that nobody else uses or frees, and those from
    /// `source` on are memory of this device that nobody writes to, ordered on `stream`.
    pub(super) unsafe fn copy_to_host(
        &self,
        target: NonNull<u8>,
        source: CUdeviceptr,
        len: usize,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: `slice::from_raw_parts_mut` asks for `len` bytes that nobody else uses while the slice lives,
        // which is during this call: the caller says so of longer.
        let target = unsafe { slice::from_raw_parts_mut(target.as_ptr(), len) };
        // SAFETY: `memcpy_dtoh_async` asks that source and stream are good, and that the target is left alone
        // until the copy has run: the caller says so.
        let copied = unsafe { result::memcpy_dtoh_async(target, source, stream.cu_stream()) };
        self.check(Step::CopyToHost, copied)
    }
}
