//! Memory of the device that is read from, whoever has it.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};

use super::adapter::Shared;
use super::error::{CudaError, Step};
use super::incoming::check_context;
use super::tensor::{Tensor, View, offset};
use crate::device::{DeviceTensor as _, ErrorKind, TensorInfo};
use crate::tensor::Element;

/// A tensor to bring back from the device: what it is called and looks like, and where its bytes are.
///
/// It is made of a [`Tensor`], or of whatever cudarc takes for memory of a device: a `CudaSlice`, a view of one,
/// memory of another crate that implements [`DevicePtr`][trait].
///
/// [trait]: https://docs.rs/cudarc/0.19/cudarc/driver/trait.DevicePtr.html
///
/// Where the memory lies and how long it is, is taken as its owner says, as cudarc's own copies take it: a [`DevicePtr`] that
/// names memory that is not its own has the device read that.
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

    /// Whether whoever frees or changes the memory waits for reads that are told to cudarc by `context`. Handles to one context do
    /// not agree on that: one that knows of no stream but the default one, now or when it comes to that, does not look.
    fn is_managed_by(&self, context: &Arc<CudaContext>) -> bool {
        match &self.memory {
            Memory::Other(memory) => Arc::ptr_eq(memory.stream().context(), context),
            // It looks for itself.
            Memory::Tensor(..) => true,
        }
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
pub(super) struct Begun<'a> {
    /// The device may be writing: an event that is recorded now tells when it has done.
    pub(super) is_begun: bool,
    /// The streams of the sources of which cudarc does not know that they are being read: those who free or change one there
    /// have to wait.
    untracked: Vec<&'a CudaStream>,
    pub(super) result: Result<(), CudaError>,
}

/// A copy that is to be put on the stream.
struct Read<'a> {
    /// Of the source.
    index: usize,
    /// From the start of the target.
    offset: usize,
    len: usize,
    pointer: CUdeviceptr,
    guard: SyncOnDrop<'a>,
    /// On which the source is freed.
    owner: &'a CudaStream,
    /// Whether whoever frees or changes the source there looks at what cudarc was told.
    is_managed: bool,
}

impl Shared {
    /// Puts copies of `sources` on the stream to the host, each to its offset from `target`, after what is on `producer` by
    /// now. Sources without a byte are left out.
    ///
    /// Neighbours on the device that are to be neighbours on the host come in one copy, if the gap is at most `gap` bytes:
    /// those are copied as well, and may hold what others have left there.
    ///
    /// It may panic where the code of a source does, and then no copy is on the stream.
    ///
    /// # Safety
    ///
    /// Until the copies have run, the memory from `target` on is pinned, in one allocation with room for each source at its offset,
    /// and nobody uses it or frees it; that holds on errors too, as far as `is_begun` says.
    pub(super) unsafe fn begin_copies<'a>(
        &'a self,
        sources: &'a [Source<'_>],
        offsets: &[usize],
        gap: usize,
        target: NonNull<u8>,
        producer: &CudaStream,
    ) -> Begun<'a> {
        let mut begun = Begun {
            is_begun: false,
            untracked: Vec::new(),
            result: Ok(()),
        };
        // All code that is not ours runs before the first copy: a panic of it leaves nothing under way.
        let reads = match self.read_all(sources, offsets, gap, producer) {
            Ok(reads) => reads,
            Err(error) => {
                begun.result = Err(error);
                return begun;
            }
        };
        begun.untracked.reserve(reads.len());
        for read in reads {
            let index = read.index;
            // SAFETY: `NonNull::add` asks that the sum stays inside of one allocation of at most `isize::MAX` bytes: there is
            // room at the offset, says the caller.
            let target = unsafe { target.add(read.offset) };
            // SAFETY: `begin_copy` asks for pinned memory with room for the bytes that nobody uses or frees until the copy
            // has run: the caller says so of each source, and the bytes between two of them are in the same memory. It asks
            // that the source has so many bytes: others that are behind it lie in the same allocation.
            let result = unsafe { self.begin_copy(read, target, &mut begun) };
            if let Err(error) = result {
                begun.result = Err(error.of_tensor(index));
                break;
            }
        }
        begun
    }

    /// What is to be copied from where, once the stream to the host waits for it.
    fn read_all<'a>(
        &'a self,
        sources: &'a [Source<'_>],
        offsets: &[usize],
        gap: usize,
        producer: &CudaStream,
    ) -> Result<Vec<Read<'a>>, CudaError> {
        check_context(self, producer)?;
        self.join(producer, &self.to_host)?;
        let places = sources.iter().zip(offsets.iter().copied()).enumerate();
        let mut places = places
            .filter(|(_, (source, _))| source.info.byte_len() > 0)
            .peekable();
        let mut reads = Vec::new();
        while let Some((index, (source, offset))) = places.next() {
            let mut len = source.info.byte_len();
            let is_next = |len: usize, other: &Source<'_>, start: usize| {
                let distance = start.checked_sub(offset)?;
                let between = distance.checked_sub(len)?;
                // Those that are behind it lie in the same allocation.
                (between <= gap && other.is_behind(source, distance)).then_some(distance)
            };
            while let Some(&(_, (other, start))) = places.peek()
                && let Some(distance) = is_next(len, other, start)
            {
                len = distance.saturating_add(other.info.byte_len());
                places.next();
            }
            let read = self.read(source, producer);
            let (pointer, guard, owner) = read.map_err(|error| error.of_tensor(index))?;
            reads.push(Read {
                index,
                offset,
                len,
                pointer,
                guard,
                owner,
                is_managed: source.is_managed_by(self.driver.context()),
            });
        }
        Ok(reads)
    }

    /// Where `source` is, once the stream to the host waits for it; what is to be dropped when it has been read; and the
    /// stream on which it is freed.
    fn read<'a>(
        &'a self,
        source: &'a Source<'_>,
        producer: &CudaStream,
    ) -> Result<(CUdeviceptr, SyncOnDrop<'a>, &'a CudaStream), CudaError> {
        let owner = &**source.stream();
        check_context(self, owner)?;
        let theirs = owner.context();
        // cudarc thinks of nothing that would have to be waited for in a context with one stream. But ours is another: where the
        // context was opened twice, each handle counts for itself.
        if theirs.is_event_tracking() && !theirs.is_in_multi_stream_mode() && owner != producer {
            self.join(owner, &self.to_host)?;
        }
        let (pointer, guard) = source.read(&self.to_host);
        // What cudarc could not return.
        self.driver.surface(Step::WaitEvent)?;
        Ok((pointer, guard, owner))
    }

    /// Puts a copy of what is to be `read` on the stream to the host.
    ///
    /// # Safety
    ///
    /// There are so many bytes from there on in one allocation. Until the copy has run, the memory from `target` on is pinned, has
    /// room for them, and nobody uses it or frees it.
    unsafe fn begin_copy<'a>(
        &self,
        read: Read<'a>,
        target: NonNull<u8>,
        begun: &mut Begun<'a>,
    ) -> Result<(), CudaError> {
        let Read {
            len,
            pointer,
            guard,
            owner,
            is_managed,
            ..
        } = read;
        begun.is_begun = true;
        let contexts = [owner.context(), self.driver.context()];
        let is_managed = is_managed
            && contexts
                .iter()
                .all(|context| context.is_managing_stream_synchronization());
        let is_tracked = is_managed && matches!(guard, SyncOnDrop::Record(Some(_)));
        // SAFETY: `copy_to_host` asks for pinned memory that nobody else uses until the copy has run: the caller says so;
        // and for memory of the device that nobody writes to, ordered on the stream: the stream waits for what cudarc knows
        // of and for the producer's work, later writers wait for the guard's event or for `release`. That there are so many
        // bytes, and of the device, is what its owner says, as to cudarc's own copies.
        let copied = unsafe {
            self.driver
                .copy_to_host(target, pointer, len, &self.to_host)
        };
        drop(guard);
        let recorded = self.driver.surface(Step::RecordEvent);
        if !is_tracked || recorded.is_err() {
            begun.untracked.push(owner);
        }
        copied.and(recorded)
    }

    /// Makes those wait that cudarc does not make wait: whoever frees or changes a source of the copies that
    /// `begun` tells of and that are over when `event` has fired. If there is no event, or none
    /// is waited for, the host waits: what others free is not to be read.
    pub(super) fn release(
        &self,
        producer: &CudaStream,
        event: Option<&CudaEvent>,
        begun: &Begun<'_>,
    ) -> Result<(), CudaError> {
        if begun.untracked.is_empty() {
            return Ok(());
        }
        let Some(event) = event else {
            self.rest();
            return Ok(());
        };
        let mut previous = producer;
        let mut result = self.driver.wait(producer, event);
        for &stream in &begun.untracked {
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
