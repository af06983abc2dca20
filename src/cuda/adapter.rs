//! One device, with its staging memory and transfer streams.

use alloc::boxed::Box;
use alloc::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use super::driver::Driver;
use super::error::{Code, CudaError, Step};
use super::keeper::Keeper;
use super::options::Options;
use super::pinned::Pinned;
use super::ring::{Ring, Statistics};
use crate::transport::Wait;

/// A CUDA device to bring tensors to, and from.
///
/// It has a ring of pinned slots and two streams of its own, one for each direction. Clones are handles to
/// the same; any thread may use one. The last one to go waits for the copies that are under way.
#[derive(Clone, Debug)]
pub struct Cuda {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    // In this order they are dropped: what waits for copies first. What is kept may be slots of the ring, whose memory goes with the
    // last of them.
    pub(super) ring: Ring,
    pub(super) keeper: Arc<Keeper>,
    pub(super) to_device: Arc<CudaStream>,
    pub(super) to_host: Arc<CudaStream>,
    pub(super) driver: Arc<Driver>,
    pub(super) options: Options,
}

impl Cuda {
    /// Opens the device `ordinal`, in its primary context, and allocates the ring.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::device::ErrorKind::Unavailable) as [`availability`](super::availability()) says; the driver's.
    pub fn open(ordinal: usize, options: Options) -> Result<Self, CudaError> {
        super::availability(ordinal)?;
        let context = CudaContext::new(ordinal)
            .map_err(|error| CudaError::driver(Code::from(error), Step::Open))?;
        Self::of(context, options)
    }

    /// Uses a context that was made elsewhere, and allocates the ring.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn with_context(context: Arc<CudaContext>, options: Options) -> Result<Self, CudaError> {
        super::availability(context.ordinal())?;
        Self::of(context, options)
    }

    /// Whoever calls this has seen that there is a driver.
    fn of(context: Arc<CudaContext>, options: Options) -> Result<Self, CudaError> {
        let driver = Arc::new(Driver::new(context));
        let (slots, slot_bytes) = (options.slots(), options.slot_bytes());
        let ring = Ring::new(driver.clone(), slots, slot_bytes, options.timeout())?;
        Ok(Self {
            shared: Arc::new(Shared {
                keeper: ring.keeper().clone(),
                ring,
                to_device: driver.create_stream()?,
                to_host: driver.create_stream()?,
                driver,
                options,
            }),
        })
    }

    /// Returns the context, to make streams and load kernels with.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        self.shared.driver.context()
    }

    /// Returns what the staging ring has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.ring.statistics()
    }

    /// Returns the error that the device does not come back from, if there was one. Every call fails with
    /// [`Unusable`](crate::device::ErrorKind::Unusable) from then on; a new process is needed.
    #[must_use]
    pub fn fault(&self) -> Option<CudaError> {
        self.shared.driver.fault()
    }

    /// Takes back slots and lets go of frames that the device has done with. Each call does so too; a service that has
    /// nothing else to do may.
    ///
    /// # Errors
    ///
    /// The driver's: a copy failed, or what was dropped could not be freed.
    pub fn poll(&self) -> Result<(), CudaError> {
        self.shared.driver.enter()?;
        self.shared.ring.poll()
    }

    /// Takes `len` bytes of pinned memory out of the ring; dropped, they are back.
    ///
    /// # Errors
    ///
    /// `RingFull`, `TimedOut` by `wait`; `TooLarge` for more than the ring has; the driver's, of a copy that slots were waited for.
    pub fn take_pinned(&self, len: usize, wait: Wait) -> Result<Pinned, CudaError> {
        let slots = self.shared.ring.take(len, wait)?;
        Ok(Pinned::of_slots(slots, len))
    }

    /// Allocates `len` bytes of pinned memory apart from the ring, zeroed. It takes long: keep it.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; the driver's.
    pub fn allocate_pinned(&self, len: usize) -> Result<Pinned, CudaError> {
        Pinned::allocate(&self.shared.driver, len)
    }

    /// Pins memory that is there. It takes long: keep it.
    ///
    /// # Errors
    ///
    /// The bytes as they were, and the driver's error.
    pub fn register(&self, bytes: Box<[u8]>) -> Result<Pinned, (Box<[u8]>, CudaError)> {
        Pinned::register(&self.shared.driver, bytes)
    }
}
