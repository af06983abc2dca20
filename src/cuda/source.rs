//! Memory of the device that is read from, whoever has it.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use alloc::boxed::Box;
use alloc::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};

use super::adapter::Shared;
use super::driver::Driver;
use super::error::{CudaError, Step};
use super::tensor::{Tensor, View, offset};
use crate::device::{DeviceTensor as _, ErrorKind, TensorInfo};
use crate::tensor::Element;

/// A tensor to bring back from the device: what it is called and looks like, and where its bytes are.
///
/// It is made of a [`Tensor`], or of whatever cudarc takes for memory of a device: a `CudaSlice`, a view of one,
/// memory of another crate that implements [`DevicePtr`].
///
/// # Examples
///
/// ```
/// use cudarc::driver::CudaSlice;
/// use tensorwire::cuda::{CudaError, Source};
/// use tensorwire::device::TensorInfo;
/// use tensorwire::{DType, Descriptor};
///
/// /// Names what a kernel has computed.
/// fn latents(computed: &CudaSlice<f32>) -> Result<Source<'_>, Box<dyn std::error::Error>> {
///     let shape = [2, computed.len() / 2];
///     let info = TensorInfo::new(&Descriptor::new("latents", DType::Float32, &shape)?);
///     Ok(Source::new(info, computed)?)
/// }
/// ```
pub struct Source<'a> {
    info: TensorInfo,
    memory: Memory<'a>,
}

enum Memory<'a> {
    Other(Box<dyn Readable + 'a>),
    Tensor(&'a Tensor, View<'a, u8>),
}

impl<'a> Source<'a> {
    /// Takes `elements` for the tensor that `info` tells of.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DType`] unless `T` reads the dtype, [`ErrorKind::Length`] unless there are just as many bytes. The
    /// driver is not called.
    pub fn new<T, D>(info: TensorInfo, elements: &'a D) -> Result<Self, CudaError>
    where
        T: Element,
        D: DevicePtr<T>,
    {
        let (expected, actual) = (info.dtype(), T::DTYPE);
        if expected != actual {
            let kind = ErrorKind::DType { expected, actual };
            return Err(CudaError::new(kind, Step::CopyToHost));
        }
        Self::of_memory(info, elements)
    }

    /// Takes `bytes` for those of the tensor that `info` tells of, whatever its dtype.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Length`] unless there are just as many. The driver is not called.
    pub fn from_bytes<D: DevicePtr<u8>>(info: TensorInfo, bytes: &'a D) -> Result<Self, CudaError> {
        Self::of_memory(info, bytes)
    }

    fn of_memory<T: 'a, D: DevicePtr<T>>(
        info: TensorInfo,
        memory: &'a D,
    ) -> Result<Self, CudaError> {
        let expected = info.byte_len();
        // Not `num_bytes`, which does not look whether the product fits.
        let actual = memory.len().saturating_mul(size_of::<T>());
        if expected != actual {
            let kind = ErrorKind::Length { expected, actual };
            return Err(CudaError::new(kind, Step::CopyToHost));
        }
        let elements = PhantomData;
        let memory = Memory::Other(Box::new(Elements { memory, elements }));
        Ok(Self { info, memory })
    }

    /// Returns what it is called, and what it looks like.
    #[must_use]
    pub const fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// Whether it lies in one allocation with `other`, and starts so many bytes behind the start of that.
    fn is_behind(&self, other: &Self, distance: usize) -> bool {
        let (Memory::Tensor(this, _), Memory::Tensor(other, _)) = (&self.memory, &other.memory)
        else {
            return false;
        };
        let expected = offset(other.device_pointer(), distance);
        this.is_beside(other) && this.device_pointer() == expected
    }

    pub(super) fn into_info(self) -> TensorInfo {
        self.info
    }

    /// The address, once `stream` waits for what was written there as far as cudarc knows; and what is to be dropped when the
    /// read is on the stream.
    fn read<'s>(&'s self, stream: &'s CudaStream) -> (CUdeviceptr, SyncOnDrop<'s>) {
        match &self.memory {
            Memory::Other(memory) => memory.read(stream),
            Memory::Tensor(_, view) => view.device_ptr(stream),
        }
    }

    /// The stream on which the memory is freed.
    fn stream(&self) -> &Arc<CudaStream> {
        match &self.memory {
            Memory::Other(memory) => memory.stream(),
            Memory::Tensor(_, view) => view.stream(),
        }
    }
}

impl<'a> From<&'a Tensor> for Source<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self {
            info: tensor.info().clone(),
            memory: Memory::Tensor(tensor, tensor.bytes()),
        }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.info).finish()
    }
}

/// What a [`DevicePtr`] does, whatever its elements.
trait Readable {
    fn read<'s>(&'s self, stream: &'s CudaStream) -> (CUdeviceptr, SyncOnDrop<'s>);

    fn stream(&self) -> &Arc<CudaStream>;
}

struct Elements<'a, T, D> {
    memory: &'a D,
    elements: PhantomData<&'a [T]>,
}

impl<T, D: DevicePtr<T>> Readable for Elements<'_, T, D> {
    fn read<'s>(&'s self, stream: &'s CudaStream) -> (CUdeviceptr, SyncOnDrop<'s>) {
        self.memory.device_ptr(stream)
    }

    fn stream(&self) -> &Arc<CudaStream> {
        DeviceSlice::stream(self.memory)
    }
}

/// What became of copies that were to be put on a stream.
#[derive(Debug)]
pub(super) struct Begun {
    /// The device may be writing: an event that is recorded now tells when it has done.
    pub(super) is_begun: bool,
    /// cudarc does not know that each source is being read: those who free or change one have to wait.
    is_untracked: bool,
    pub(super) result: Result<(), CudaError>,
}

impl Shared {
    /// Puts copies of `sources` on the stream to the host, each to its offset from `target`, after what is on `producer` by
    /// now. Sources without a byte are left out.
    ///
    /// Neighbours on the device that are to be neighbours on the host come in one copy, if the gap is at most `gap` bytes:
    /// those are copied as well, and may hold what others have left there.
    ///
    /// # Safety
    ///
    /// Until the copies have run, the memory from `target` on is pinned, in one allocation with room for each source at its offset,
    /// and nobody uses it or frees it; that holds on errors too, as far as `is_begun` says.
    pub(super) unsafe fn begin_copies(
        &self,
        sources: &[Source<'_>],
        offsets: &[usize],
        gap: usize,
        target: NonNull<u8>,
        producer: &CudaStream,
    ) -> Begun {
        let mut begun = Begun {
            is_begun: false,
            is_untracked: false,
            result: Ok(()),
        };
        begun.result = self.follow(producer);
        let places = sources.iter().zip(offsets.iter().copied()).enumerate();
        let mut places = places
            .filter(|(_, (source, _))| source.info.byte_len() > 0)
            .peekable();
        while begun.result.is_ok()
            && let Some((index, (source, offset))) = places.next()
        {
            let mut len = source.info.byte_len();
            let is_next = |len: usize, other: &Source<'_>, start: usize| {
                let distance = start.checked_sub(offset)?;
                let between = distance.checked_sub(len)?;
                (between <= gap && other.is_behind(source, distance)).then_some(distance)
            };
            while let Some(&(_, (other, start))) = places.peek()
                && let Some(distance) = is_next(len, other, start)
            {
                len = distance.saturating_add(other.info.byte_len());
                places.next();
            }
            // SAFETY: `NonNull::add` asks that the sum stays inside of one allocation of at most `isize::MAX` bytes: there is
            // room at the offset, says the caller.
            let target = unsafe { target.add(offset) };
            // SAFETY: `begin_copy` asks for pinned memory with room for `len` bytes that nobody uses or frees until the copy
            // has run: the caller says so of each source, and the bytes between two of them are in the same memory. It asks
            // that the source has so many bytes: others that are behind it lie in the same allocation.
            let result = unsafe { self.begin_copy(source, target, len, &mut begun) };
            begun.result = result.map_err(|error| error.of_tensor(index));
        }
        begun
    }

    /// Makes the stream to the host wait for what is on `producer` by now.
    fn follow(&self, producer: &CudaStream) -> Result<(), CudaError> {
        let event = self.driver.create_event()?;
        self.driver.record(&event, producer)?;
        self.driver.wait(&self.to_host, &event)
    }

    /// Puts a copy of `len` bytes from the start of `source` on the stream to the host.
    ///
    /// # Safety
    ///
    /// There are so many from there on in one allocation. Until the copy has run, the memory from `target` on is pinned, has
    /// room for them, and nobody uses it or frees it.
    unsafe fn begin_copy(
        &self,
        source: &Source<'_>,
        target: NonNull<u8>,
        len: usize,
        begun: &mut Begun,
    ) -> Result<(), CudaError> {
        let (pointer, guard) = source.read(&self.to_host);
        // What cudarc could not return.
        surface(&self.driver, Step::WaitEvent)?;
        begun.is_begun = true;
        let is_managed = self.driver.context().is_managing_stream_synchronization();
        let is_tracked = is_managed && matches!(guard, SyncOnDrop::Record(Some(_)));
        // SAFETY: `copy_to_host` asks for pinned memory that nobody else uses until the copy has run: the caller says so;
        // and for memory of the device that nobody writes to, ordered on the stream: the stream waits for what cudarc knows
        // of and for the producer's work, later writers wait for the guard's event or for `release`.
        let copied = unsafe {
            self.driver
                .copy_to_host(target, pointer, len, &self.to_host)
        };
        drop(guard);
        let recorded = surface(&self.driver, Step::RecordEvent);
        begun.is_untracked |= !is_tracked || recorded.is_err();
        copied.and(recorded)
    }

    /// Makes those wait that cudarc does not make wait: whoever frees or changes one of the `sources` of copies that
    /// `begun` tells of and that are over when `event` has fired. If there is no event, or none
    /// is waited for, the host waits: what others free is not to be read.
    pub(super) fn release(
        &self,
        sources: &[Source<'_>],
        producer: &CudaStream,
        event: Option<&CudaEvent>,
        begun: &Begun,
    ) -> Result<(), CudaError> {
        if !begun.is_untracked {
            return Ok(());
        }
        let Some(event) = event else {
            self.rest();
            return Ok(());
        };
        let mut previous = producer;
        let mut result = self.driver.wait(producer, event);
        for source in sources {
            let stream = &**source.stream();
            if stream != previous && stream != producer {
                // Each of them, whatever became of the others.
                let waits = self.driver.wait(stream, event);
                result = result.and(waits);
                previous = stream;
            }
        }
        result.inspect_err(|_| self.rest())
    }

    /// Waits for all copies on the stream to the host.
    fn rest(&self) {
        // What it cannot tell, the next call does.
        let _fault = self.driver.synchronize_stream(&self.to_host);
    }
}

/// Tells what cudarc has kept to itself.
pub(super) fn surface(driver: &Driver, step: Step) -> Result<(), CudaError> {
    driver.check(step, driver.context().check_err())
}
