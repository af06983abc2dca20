//! Tensors into a slot of a region, and out of it.

use core::borrow::Borrow;
use core::fmt;

use alloc::vec;
use alloc::vec::Vec;

use super::{ErrorKind, Region, Slot};
use crate::error::{DecodeError, EncodeError};
use crate::json::Object;
use crate::message::Options;
use crate::tensor::{Descriptor, TensorView};
use crate::transfer::manifest::{Manifest, Plan, Storage, Tensors};
use crate::transfer::worker::Output;

/// Tensors in a slot, and the manifest that says where.
#[derive(Debug)]
pub struct Stored {
    slot: Slot,
    used_len: usize,
    manifest: Vec<u8>,
}

impl Stored {
    /// Tensors that are in their places in `slot`, as `manifest` says.
    pub(crate) const fn from_parts(slot: Slot, used_len: usize, manifest: Vec<u8>) -> Self {
        Self {
            slot,
            used_len,
            manifest,
        }
    }

    /// Returns the slot.
    pub const fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns how many bytes of the slot are to be moved, gaps included.
    #[must_use]
    pub const fn used_len(&self) -> usize {
        self.used_len
    }

    /// Returns the manifest: a JSON object.
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Returns slot, [`used_len`](Self::used_len) and manifest.
    pub fn into_parts(self) -> (Slot, usize, Vec<u8>) {
        (self.slot, self.used_len, self.manifest)
    }
}

/// What a worker [stages](crate::transfer::Instance::stage).
impl From<Stored> for Output {
    fn from(stored: Stored) -> Self {
        Self::from_stored(stored.slot, stored.used_len, stored.manifest)
    }
}

impl Region {
    /// Takes a slot that is large enough for `tensors`, gaps included, and copies them there.
    ///
    /// Tensors without a byte get a slot too, the smallest one.
    ///
    /// # Errors
    ///
    /// - [`Encode`](StoreError::Encode) if [`Plan::new`] refuses them.
    /// - [`Plane`](StoreError::Plane) if the pool has no such slot, or its memory is not the host's.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::json::Value;
    /// use tensorwire::plane::memory::Hub;
    /// use tensorwire::plane::{DataPlane, RegionOptions};
    /// use tensorwire::transfer::manifest::Storage;
    /// use tensorwire::{Options, TensorView};
    ///
    /// let mut plane = Hub::new().join("encoder-0")?;
    /// let region = plane.register(RegionOptions::new(16 << 20))?;
    /// let latents = [0.5_f32; 6];
    /// let stored = region.store(&[TensorView::from_slice("latents", &[2, 3], &latents)?])?;
    /// assert_eq!(stored.used_len(), 24);
    ///
    /// let manifest = Value::parse(stored.manifest())?.as_object()?;
    /// let mut storage = Storage::<16>::new();
    /// let tensors = region.load(stored.slot(), manifest, &mut storage, &Options::new())?;
    /// let read = tensors.tensor("latents").ok_or("no latents")?;
    /// assert_eq!(read.as_slice::<f32>()?, latents);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store<'t, T>(&self, tensors: T) -> Result<Stored, StoreError>
    where
        T: IntoIterator<IntoIter: Clone, Item: AsRef<Descriptor<'t>> + Borrow<TensorView<'t>>>,
    {
        let plan = Plan::new(tensors).map_err(StoreError::Encode)?;
        let used_len = plan.slot_len();
        let slot = self.pool().allocate(used_len.max(1));
        let mut slot = slot.map_err(|error| StoreError::Plane(error.into()))?;
        let bytes = self.bytes_mut(&mut slot).map_err(StoreError::Plane)?;
        plan.store(bytes).map_err(StoreError::Encode)?;
        let mut manifest = vec![0; plan.encoded_len()];
        plan.encode_into(&mut manifest)
            .map_err(StoreError::Encode)?;
        Ok(Stored::from_parts(slot, used_len, manifest))
    }

    /// Finds the tensors in `slot` by the `manifest` that came with them, where they lie.
    ///
    /// # Errors
    ///
    /// - [`Decode`](LoadError::Decode) if [`Manifest::decode_with`] refuses it: a peer's fault.
    /// - [`Plane`](LoadError::Plane) as [`bytes`](Self::bytes).
    ///
    /// # Examples
    ///
    /// See [`store`](Self::store).
    pub fn load<'a, 's, const N: usize>(
        &'a self,
        slot: &'a Slot,
        manifest: Object<'a>,
        storage: &'s mut Storage<N>,
        options: &Options,
    ) -> Result<Tensors<'a, 's>, LoadError> {
        let bytes = self.bytes(slot).map_err(LoadError::Plane)?;
        let manifest = Manifest::decode_with(manifest, bytes.len(), storage, options);
        let tensors = manifest.and_then(|manifest| manifest.attach(bytes));
        tensors.map_err(LoadError::Decode)
    }
}

/// Tensors could not be stored in a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StoreError {
    /// The tensors cannot be told apart, or are too large.
    Encode(EncodeError),
    /// There is no slot for them, or none that the host writes to.
    Plane(ErrorKind),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(error) => error.fmt(f),
            Self::Plane(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StoreError {}

/// Tensors could not be found in a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LoadError {
    /// The manifest is none, or not one of this slot.
    Decode(DecodeError),
    /// The slot is of another region, or none that the host reads.
    Plane(ErrorKind),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => error.fmt(f),
            Self::Plane(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LoadError {}
