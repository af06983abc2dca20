//! What a worker has made for the next role.

use alloc::vec::Vec;
use core::fmt;

use super::error::CallError;
use super::text::Text;
use crate::json::Object;
use crate::transfer::pool::Slot;

/// Tensors to be fetched by the next role: a slot, and which of them lies where in it.
///
/// The `Stored` of a data plane's region becomes one.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::pool::Pool;
/// use tensorwire::transfer::worker::{CallError, Output};
///
/// let pool = Pool::new(1 << 20)?;
/// let manifest = br#"{"latents":[{"offset":0,"shape":[2],"dtype":"float32"}]}"#;
/// let manifest = Value::parse(manifest)?.as_object()?;
/// let output = Output::new(pool.allocate(8)?, 8, manifest).map_err(|(_slot, error)| error)?;
/// assert_eq!(output.used_len(), 8);
///
/// let slot = output.into_slot().ok_or("no slot")?;
/// let (_slot, error) = Output::new(slot, 2 << 20, manifest).unwrap_err();
/// assert_eq!(error, CallError::BadLength { used: 2 << 20, len: 1 << 20 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Output {
    slot: Option<Slot>,
    used: usize,
    manifest: Text,
}

impl Output {
    /// Tensors in the first `used` bytes of `slot`, as `manifest` says.
    ///
    /// # Errors
    ///
    /// The slot, and [`CallError::BadLength`] if it is shorter than `used`.
    pub fn new(slot: Slot, used: usize, manifest: Object<'_>) -> Result<Self, (Slot, CallError)> {
        let len = slot.len();
        if used > len {
            return Err((slot, CallError::BadLength { used, len }));
        }
        Ok(Self {
            slot: Some(slot),
            used,
            manifest: Text::new(manifest),
        })
    }

    /// Tensors that were stored by a manifest of this crate's own.
    pub(crate) fn from_stored(slot: Slot, used: usize, manifest: Vec<u8>) -> Self {
        Self {
            slot: Some(slot),
            used,
            manifest: Text::from_written(manifest),
        }
    }

    /// No tensors: what is passed on is in the scalars.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            slot: None,
            used: 0,
            manifest: Text::new(Object::EMPTY),
        }
    }

    /// Returns the slot; `None` if there are no tensors.
    #[must_use]
    pub const fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// Returns how many bytes of the slot the tensors take, gaps between them included.
    #[must_use]
    pub const fn used_len(&self) -> usize {
        self.used
    }

    /// Returns which tensors lie where in the slot.
    #[must_use]
    pub fn manifest(&self) -> Object<'_> {
        self.manifest.object()
    }

    /// Returns the slot, and stages nothing.
    #[must_use]
    pub fn into_slot(self) -> Option<Slot> {
        self.slot
    }

    pub(super) fn into_parts(self) -> (Option<Slot>, usize, Text) {
        (self.slot, self.used, self.manifest)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("slot", &self.slot)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}
