//! Tensors laid out in a slot that is not there yet.

use core::borrow::Borrow;
use core::marker::PhantomData;

use super::encode;
use super::entry::{Entry, end};
use crate::error::EncodeError;
use crate::json::writer;
use crate::tensor::{Descriptor, TensorView};

/// What the offset of each tensor is a multiple of, in bytes.
pub const ALIGNMENT: usize = 512;

/// Where tensors go in a slot, in the order given, each at a multiple of [`ALIGNMENT`].
///
/// Made from [`TensorView`]s, or from [`Descriptor`]s of payloads that are
/// elsewhere: a slice of them, or whatever else iterates over them and can do so again.
/// The offsets are those of the Python writer. Its slots are
/// sized without the gaps between the tensors, and so sometimes too small:
/// [`slot_len`](Self::slot_len) counts them.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
/// use tensorwire::transfer::manifest::Plan;
///
/// let tensors = [
///     TensorView::from_slice("timesteps", &[2], &[999.0_f32, 500.0])?,
///     TensorView::from_slice("mask", &[3], &[true, false, true])?,
/// ];
/// let plan = Plan::new(&tensors)?;
/// assert_eq!(plan.slot_len(), 515);
///
/// let mut slot = vec![0xa5; 1024];
/// plan.store(&mut slot)?;
/// assert_eq!(slot[512..515], [1, 0, 1]);
///
/// let mut buffer = [0; 256];
/// assert_eq!(
///     plan.encode_into(&mut buffer)?,
///     br#"{"timesteps":[{"offset":0,"shape":[2],"dtype":"float32"}],"mask":[{"offset":512,"shape":[3],"dtype":"bool"}]}"#,
/// );
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan<'t, I> {
    tensors: I,
    slot_len: usize,
    descriptors: PhantomData<Descriptor<'t>>,
}

impl<'t, I: Iterator<Item: AsRef<Descriptor<'t>>> + Clone> Plan<'t, I> {
    /// Lays out `tensors`.
    ///
    /// # Errors
    ///
    /// - [`EncodeError::DuplicateField`], [`EncodeError::DuplicateListIndex`],
    ///   [`EncodeError::MixedField`]: no reader could tell the tensors apart.
    /// - [`EncodeError::InvalidName`]: a lone surrogate, which no reader takes for a name.
    /// - [`EncodeError::ScatteredList`]: the members of a list do not follow one another.
    /// - [`EncodeError::SlotOverflow`]: a slot of more than `isize::MAX` bytes.
    pub fn new<T>(tensors: T) -> Result<Self, EncodeError>
    where
        T: IntoIterator<IntoIter = I, Item = I::Item>,
    {
        let tensors = tensors.into_iter();
        encode::check_names(tensors.clone())?;
        let mut slot_len = 0;
        for tensor in tensors.clone() {
            let byte_len = tensor.as_ref().byte_len();
            let offset = next_offset(slot_len).ok_or(EncodeError::SlotOverflow)?;
            slot_len = end(offset, byte_len).ok_or(EncodeError::SlotOverflow)?;
        }
        Ok(Self {
            tensors,
            slot_len,
            descriptors: PhantomData,
        })
    }

    /// Returns how many bytes the slot has to have: where the last tensor ends, gaps included.
    #[must_use]
    pub const fn slot_len(&self) -> usize {
        self.slot_len
    }

    /// Iterates over the tensors' places, in the order given.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'t>> + Clone + use<'t, I> {
        self.placed().map(|(entry, _)| entry)
    }

    /// Returns the length in bytes of the manifest.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        writer::length(|writer| encode::put_manifest(writer, self.entries()))
    }

    /// Writes the manifest to the start of `buffer`, and gives that part of it.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`] with the length needed; then `buffer`
    /// holds zeros, which is no manifest.
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
        writer::write(buffer, |writer| {
            encode::put_manifest(writer, self.entries());
        })
    }

    /// The tensors with their places.
    fn placed(&self) -> impl Iterator<Item = (Entry<'t>, I::Item)> + Clone + use<'t, I> {
        let mut used = 0;
        self.tensors.clone().map(move |tensor| {
            let descriptor = *tensor.as_ref();
            // Neither saturates: `new` went the same way.
            let offset = next_offset(used).unwrap_or(usize::MAX);
            used = offset.saturating_add(descriptor.byte_len());
            (Entry::from_parts(descriptor, offset), tensor)
        })
    }
}

impl<'t, I> Plan<'t, I>
where
    I: Iterator<Item: AsRef<Descriptor<'t>> + Borrow<TensorView<'t>>> + Clone,
{
    /// Copies the tensors to their places.
    ///
    /// The bytes between them become zeros: a slot that served another request
    /// before is moved with its gaps, and a receiver is to see nothing of that.
    /// The bytes past [`slot_len`](Self::slot_len) stay as they are.
    ///
    /// # Errors
    ///
    /// [`EncodeError::SlotTooSmall`] if `slot` is shorter than
    /// [`slot_len`](Self::slot_len); then nothing is written.
    pub fn store(&self, slot: &mut [u8]) -> Result<(), EncodeError> {
        let (needed, capacity) = (self.slot_len, slot.len());
        let too_small = EncodeError::SlotTooSmall { needed, capacity };
        let mut rest = slot.get_mut(..needed).ok_or(too_small)?;
        let mut used: usize = 0;
        for (entry, tensor) in self.placed() {
            let gap = entry.offset().saturating_sub(used);
            let view: &TensorView<'t> = tensor.borrow();
            let bytes = view.bytes();
            used = entry.range().end;
            // Never `None`: the ranges ascend up to the slot's end.
            let Some((before, from)) = rest.split_at_mut_checked(gap) else {
                return Err(too_small);
            };
            let Some((place, after)) = from.split_at_mut_checked(bytes.len()) else {
                return Err(too_small);
            };
            before.fill(0);
            place.copy_from_slice(bytes);
            rest = after;
        }
        Ok(())
    }
}

/// The first multiple of the alignment that is not below `used`.
const fn next_offset(used: usize) -> Option<usize> {
    used.checked_next_multiple_of(ALIGNMENT)
}
