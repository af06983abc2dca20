//! A manifest, decoded and held against the length of its slot.

use core::fmt;

use super::entry::Entry;
use super::overlap::Extents;
use super::schema::{Parsed, Reader};
use super::storage::{Storage, Table};
use super::tensors::Tensors;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::Object;
use crate::message::Options;
use crate::message::conflicts::Sharing;
use crate::message::order::{Named, Order};
use crate::message::storage::Row;

/// Which tensors lie where in a slot.
///
/// Everything about it has been checked: each tensor lies inside of the slot,
/// and no two share a byte. What it hands out borrows the JSON text, not this
/// manifest and not its storage.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::manifest::{Manifest, Storage};
///
/// // As a control message has it, for instance `Ready::manifest`.
/// let text = br#"{"latents":[{"offset":512,"shape":[2,2],"dtype":"int8"}]}"#;
/// let object = Value::parse(text)?.as_object()?;
///
/// let mut slot = [0; 1024];
/// slot[512..516].copy_from_slice(&[1, 2, 3, 255]);
///
/// let mut storage = Storage::<16>::new();
/// let manifest = Manifest::decode(object, slot.len(), &mut storage)?;
/// let tensors = manifest.attach(&slot)?;
/// let latents = tensors.tensor("latents").ok_or("no latents")?;
/// assert_eq!(latents.shape(), [2, 2]);
/// assert_eq!(latents.as_slice::<i8>()?, [1, 2, 3, -1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Manifest<'frame, 'store> {
    order: Order<'frame, 'store>,
    /// In wire order.
    offsets: &'store [usize],
    /// Where the text starts in its document.
    base: usize,
    slot_len: usize,
    tensor_bytes: usize,
}

impl<'frame, 'store> Manifest<'frame, 'store> {
    /// Decodes the manifest of a slot of `slot_len` bytes.
    ///
    /// # Errors
    ///
    /// Any [`DecodeErrorKind`] but those of frames and of bytes that are no
    /// JSON; then nothing is handed out. Offsets of errors are of the document
    /// that `object` was taken from.
    pub fn decode<const N: usize>(
        object: Object<'frame>,
        slot_len: usize,
        storage: &'store mut Storage<N>,
    ) -> Result<Self, DecodeError> {
        Self::decode_with(object, slot_len, storage, &Options::new())
    }

    /// Decodes the manifest of a slot of `slot_len` bytes, under caps and with the dtypes of `options`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_with<const N: usize>(
        object: Object<'frame>,
        slot_len: usize,
        storage: &'store mut Storage<N>,
        options: &Options,
    ) -> Result<Self, DecodeError> {
        let table = storage.table();
        let parsed = parse(object, slot_len, options, table.entries, table.offsets)?;
        Self::index(object, slot_len, parsed, table)
    }

    /// Sorts the entries of `parsed`, and refuses those of one name and those that overlap.
    pub(super) fn index(
        object: Object<'frame>,
        slot_len: usize,
        parsed: Parsed,
        table: Table<'store>,
    ) -> Result<Self, DecodeError> {
        let text = object.as_value().raw();
        let base = object.as_value().offset();
        let key = hash_key(table.entries);
        let entries = table.entries.get(..parsed.count).unwrap_or_default();
        let offsets = table.offsets.get(..parsed.count).unwrap_or_default();
        let order = table.order.get_mut(..parsed.count).unwrap_or_default();
        let shift = |error: DecodeError| error.shifted(base);
        let order = Order::sort(text, key, Sharing::WrittenOnce, entries, order).map_err(shift)?;
        if parsed.has_empty {
            refuse_empty_namesakes(object, &order).map_err(shift)?;
        }
        let extents = Extents { entries, offsets };
        extents.refuse_overlap(table.by_offset).map_err(shift)?;
        Ok(Self {
            order,
            offsets,
            base,
            slot_len,
            tensor_bytes: parsed.tensor_bytes,
        })
    }

    /// Returns the number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Tells whether there are no tensors.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Iterates over what is said of the tensors, in wire order.
    pub fn entries(
        &self,
    ) -> impl DoubleEndedIterator<Item = Entry<'frame>> + Clone + use<'frame, 'store> {
        let this = *self;
        (0..self.len()).filter_map(move |index| this.entry(index))
    }

    /// Returns what is said of the tensor at `index` in wire order, or `None` past the last.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Entry<'frame>> {
        let row = self.order.rows().get(index)?;
        let descriptor = row.descriptor(self.order.text()).shifted(self.base);
        Some(Entry::from_parts(descriptor, *self.offsets.get(index)?))
    }

    /// Returns the place in wire order of the plain tensor of this name; names compare unescaped.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        match self.order.named(name)? {
            Named::List(_) => None,
            Named::Tensor(index) => Some(index),
        }
    }

    /// Returns the sizes of all tensors together, in bytes and without the gaps.
    #[must_use]
    pub const fn tensor_bytes(&self) -> usize {
        self.tensor_bytes
    }

    /// Returns the length of the slot that it was held against, in bytes.
    #[must_use]
    pub const fn slot_len(&self) -> usize {
        self.slot_len
    }

    /// Returns where the last tensor ends, in bytes from the start of the slot; 0 if there are none.
    ///
    /// So many bytes have to be moved.
    #[must_use]
    pub fn used_len(&self) -> usize {
        let ends = self.entries().map(|entry| entry.range().end);
        ends.max().unwrap_or_default()
    }

    /// Puts the bytes of the slot behind the entries.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::SlotLength`] unless there are [`slot_len`](Self::slot_len) bytes.
    pub fn attach(self, slot: &'frame [u8]) -> Result<Tensors<'frame, 'store>, DecodeError> {
        let (expected, actual) = (self.slot_len, slot.len());
        if actual != expected {
            let kind = DecodeErrorKind::SlotLength { expected, actual };
            return Err(DecodeError::new(kind, self.base));
        }
        Ok(Tensors::new(self, slot))
    }

    pub(super) const fn order(&self) -> Order<'frame, 'store> {
        self.order
    }
}

/// Reads `object`, and its entries into `entries` and `offsets`.
pub(super) fn parse(
    object: Object<'_>,
    slot_len: usize,
    options: &Options,
    entries: &mut [Row],
    offsets: &mut [usize],
) -> Result<Parsed, DecodeError> {
    let value = object.as_value();
    let reader = Reader::new(options, hash_key(entries), slot_len);
    reader
        .parse(value.raw(), entries, offsets)
        .map_err(|error| error.shifted(value.offset()))
}

/// Refuses the name of a field without entries that a field with entries, in `order`, has too.
///
/// Whether there is such a field depends on which of the two a reader
/// believes. Of two without entries there is none either way.
fn refuse_empty_namesakes(object: Object<'_>, order: &Order<'_, '_>) -> Result<(), DecodeError> {
    let base = object.as_value().offset();
    let twice = object.iter().filter_map(|(name, value)| {
        let is_empty = value.as_array().ok()?.get(0).is_none();
        let other = is_empty.then(|| order.written_at(name))?;
        Some(name.offset().saturating_sub(base).max(other?))
    });
    match twice.min() {
        None => Ok(()),
        Some(at) => Err(DecodeError::new(DecodeErrorKind::DuplicateField, at)),
    }
}

/// Where the entries lie; no peer knows.
fn hash_key(entries: &[Row]) -> u64 {
    u64::try_from(entries.as_ptr().addr()).unwrap_or_default()
}

impl fmt::Debug for Manifest<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manifest")
            .field("tensors", &self.len())
            .field("tensor_bytes", &self.tensor_bytes)
            .field("slot_len", &self.slot_len)
            .finish_non_exhaustive()
    }
}
