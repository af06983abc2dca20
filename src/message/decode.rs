//! A message decoded in place: metadata first, then the payloads behind it.

use core::cmp::Ordering;
use core::ops::Range;

use super::CONTROL_MARKER;
use super::fields::{Field, TensorList};
use super::options::Options;
use super::schema::{self, Parsed};
use super::storage::{Slot, Storage, Table, to_usize};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::json::{Object, Str};
use crate::tensor::{Descriptor, TensorView};

/// The metadata frame of a message: its descriptors and its scalars.
///
/// The first of two phases, for a receiver that wants to choose where each
/// payload goes: [`descriptors`](Self::descriptors) tell the sizes,
/// [`attach`](Self::attach) checks the payloads and gives the message.
///
/// # Examples
///
/// ```
/// use tensorwire::message::{Options, Storage};
///
/// let frame = br#"{"tensor_descriptors":[{"field_name":"mask","shape":[3],"dtype":"bool"}]}"#;
/// let mut storage = Storage::<4>::new();
/// let metadata = Options::new().decode_metadata(frame, &mut storage)?;
///
/// let mut pinned = [0xa5; 64];
/// let room = metadata.descriptor(0).map_or(0, |mask| mask.byte_len());
/// pinned[..room].copy_from_slice(&[1, 0, 1]); // a receive straight into its place
///
/// let payloads = [&pinned[..room]];
/// let message = metadata.attach(&payloads)?;
/// let mask = message.tensor("mask").expect("described above");
/// assert_eq!(mask.as_slice::<bool>(), Ok(&[true, false, true][..]));
/// # Ok::<(), tensorwire::error::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'frame, 'store> {
    parsed: Parsed<'frame>,
    /// In wire order.
    slots: &'store [Slot],
    /// Indices of the slots, by name and list index.
    order: &'store [u32],
}

impl<'frame, 'store> Metadata<'frame, 'store> {
    pub(crate) fn decode_in(
        options: &Options,
        frame: &'frame [u8],
        table: Table<'store>,
    ) -> Result<Self, DecodeError> {
        refuse_control(frame)?;
        let parsed = schema::parse(frame, options, table.slots)?;
        Self::index(parsed, table)
    }

    /// Sorts the descriptors of `parsed`, and refuses two of one place.
    pub(crate) fn index(parsed: Parsed<'frame>, table: Table<'store>) -> Result<Self, DecodeError> {
        let Table { slots, order } = table;
        let slots = slots.get(..parsed.count).unwrap_or_default();
        let order = order.get_mut(..parsed.count).unwrap_or_default();
        for (index, place) in (0..).zip(order.iter_mut()) {
            *place = index;
        }
        let metadata = Metadata {
            parsed,
            slots,
            order: &[],
        };
        // Lists come in ascending order, and single tensors always do: then
        // there is nothing to sort, and no two can have one place.
        let ascending = slots
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if metadata.precedes(a, b)));
        if !ascending {
            order.sort_unstable_by(|a, b| {
                let (a, b) = (to_usize(*a), to_usize(*b));
                match (slots.get(a), slots.get(b)) {
                    (Some(left), Some(right)) => metadata.compare(left, right).then(a.cmp(&b)),
                    _ => Ordering::Equal,
                }
            });
            metadata.refuse_conflicts(order)?;
        }
        Ok(Metadata { order, ..metadata })
    }

    /// By name, a plain tensor before the members of a list.
    fn compare(&self, a: &Slot, b: &Slot) -> Ordering {
        let text = self.parsed.text;
        a.name(text)
            .cmp(&b.name(text))
            .then(a.list_index.cmp(&b.list_index))
    }

    /// Whether `a` comes before `b` in the order and is not in conflict with it.
    fn precedes(&self, a: &Slot, b: &Slot) -> bool {
        let text = self.parsed.text;
        match a.name(text).cmp(&b.name(text)) {
            Ordering::Less => true,
            Ordering::Equal => a.list_index.is_some() && a.list_index < b.list_index,
            Ordering::Greater => false,
        }
    }

    /// Finds two descriptors of one place, or of one name in both roles.
    ///
    /// Of several conflicts it names the one that a reader of the wire meets first.
    fn refuse_conflicts(&self, order: &[u32]) -> Result<(), DecodeError> {
        let text = self.parsed.text;
        let mut first: Option<(usize, DecodeErrorKind)> = None;
        let mut note = |later: usize, kind| {
            if first.is_none_or(|(found, _)| later < found) {
                first = Some((later, kind));
            }
        };
        let mut previous: Option<&Slot> = None;
        // The plain tensor of the name at hand: it is in conflict with each
        // member of a list, not with its neighbour alone.
        let mut plain: Option<usize> = None;
        for index in order.iter().copied().map(to_usize) {
            let Some(slot) = self.slots.get(index) else {
                continue;
            };
            let namesake = previous.filter(|other| other.name(text) == slot.name(text));
            if namesake.is_none() {
                plain = None;
            }
            // Equal places are in the order of the wire.
            match (slot.list_index, plain) {
                (None, None) => plain = Some(index),
                (None, Some(_)) => note(index, DecodeErrorKind::DuplicateField),
                (Some(_), Some(plain)) => note(plain.max(index), DecodeErrorKind::MixedField),
                (Some(_), None) => {}
            }
            if let Some(list_index) = slot.list_index
                && namesake.is_some_and(|other| other.list_index == slot.list_index)
            {
                let list_index = to_usize(list_index);
                note(index, DecodeErrorKind::DuplicateListIndex { list_index });
            }
            previous = Some(slot);
        }
        match first {
            Some((index, kind)) => Err(self.error_at(index, kind)),
            None => Ok(()),
        }
    }

    fn error_at(&self, index: usize, kind: DecodeErrorKind) -> DecodeError {
        let at = self.slots.get(index).map_or(0, |slot| to_usize(slot.at));
        DecodeError::new(kind, at).in_descriptor(index)
    }

    /// The number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no tensors; error replies have none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What is said of the tensors, in wire order.
    pub fn descriptors(
        &self,
    ) -> impl ExactSizeIterator<Item = Descriptor<'frame>> + DoubleEndedIterator + use<'frame, 'store>
    {
        let text = self.parsed.text;
        self.slots.iter().map(move |slot| slot.descriptor(text))
    }

    /// What is said of the tensor at `index` in wire order, whose payload is frame `index + 1`.
    #[must_use]
    pub fn descriptor(&self, index: usize) -> Option<Descriptor<'frame>> {
        Some(self.slots.get(index)?.descriptor(self.parsed.text))
    }

    /// The place in wire order of the plain tensor of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let range = self.range(name);
        let index = self.ordered(range.start)?;
        let slot = self.slots.get(index)?;
        (!range.is_empty() && slot.list_index.is_none()).then_some(index)
    }

    /// The sizes of all payloads together, in bytes.
    #[must_use]
    pub const fn tensor_bytes(&self) -> usize {
        self.parsed.tensor_bytes
    }

    /// The scalars; without members if there are none.
    #[must_use]
    pub const fn scalars(&self) -> Object<'frame> {
        self.parsed.scalars
    }

    /// Puts the payloads behind the descriptors, one frame each in wire order.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::FrameCount`], [`DecodeErrorKind::FrameLength`].
    pub fn attach<F: AsRef<[u8]>>(
        self,
        payloads: &'frame [F],
    ) -> Result<Message<'frame, 'store, F>, DecodeError> {
        let (expected, actual) = (self.slots.len(), payloads.len());
        if actual != expected {
            let kind = DecodeErrorKind::FrameCount { expected, actual };
            return Err(DecodeError::new(kind, self.parsed.list_at));
        }
        for (index, (slot, payload)) in self.slots.iter().zip(payloads).enumerate() {
            let (expected, actual) = (slot.layout.byte_len, payload.as_ref().len());
            if actual != expected {
                let kind = DecodeErrorKind::FrameLength { expected, actual };
                return Err(self.error_at(index, kind));
            }
        }
        Ok(Message {
            metadata: self,
            payloads,
        })
    }

    /// Which places in `order` have this name.
    pub(crate) fn range(&self, name: &str) -> Range<usize> {
        let text = self.parsed.text;
        let name = Str::from(name);
        let key = |index: &u32| {
            let slot = self.slots.get(to_usize(*index)).unwrap_or(&Slot::EMPTY);
            slot.name(text)
        };
        let start = self.order.partition_point(|index| key(index) < name);
        let tail = self.order.get(start..).unwrap_or_default();
        let count = tail.iter().take_while(|index| key(index) == name).count();
        start..start.saturating_add(count)
    }

    /// The wire index at a place in `order`.
    pub(crate) fn ordered(&self, place: usize) -> Option<usize> {
        self.order.get(place).copied().map(to_usize)
    }
}

/// A message decoded in place.
///
/// Everything about it has been checked: every descriptor has a payload of
/// exactly its size, and every byte of the metadata is valid. Views borrow the
/// frames, not this message and not its storage.
///
/// A frame's `as_ref` must give the same bytes each time, as that of any
/// buffer does. A tensor whose frame changes its length is absent.
pub struct Message<'frame, 'store, F> {
    metadata: Metadata<'frame, 'store>,
    payloads: &'frame [F],
}

impl<'frame, 'store, F: AsRef<[u8]>> Message<'frame, 'store, F> {
    /// Decodes a whole message with the default [`Options`].
    ///
    /// # Errors
    ///
    /// Any [`DecodeErrorKind`]; then nothing is handed out.
    pub fn decode<const N: usize>(
        frames: &'frame [F],
        storage: &'store mut Storage<N>,
    ) -> Result<Self, DecodeError> {
        Options::new().decode(frames, storage)
    }

    pub(crate) fn decode_in(
        options: &Options,
        frames: &'frame [F],
        table: Table<'store>,
    ) -> Result<Self, DecodeError> {
        let (metadata, payloads) = split(frames)?;
        Metadata::decode_in(options, metadata, table)?.attach(payloads)
    }

    /// What the metadata frame says.
    #[must_use]
    pub const fn metadata(&self) -> Metadata<'frame, 'store> {
        self.metadata
    }

    /// The number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.metadata.len()
    }

    /// Whether there are no tensors; error replies have none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.metadata.is_empty()
    }

    /// The scalars; without members if there are none.
    #[must_use]
    pub const fn scalars(&self) -> Object<'frame> {
        self.metadata.scalars()
    }

    /// The tensors in wire order, members of lists among them.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'frame>> + use<'frame, 'store, F> {
        let this = *self;
        (0..self.len()).filter_map(move |index| this.at(index))
    }

    /// The tensor at `index` in wire order, or `None` past the last.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<TensorView<'frame>> {
        let descriptor = self.metadata.descriptor(index)?;
        TensorView::new(descriptor, self.payloads.get(index)?.as_ref()).ok()
    }

    /// The plain tensor of this name; names compare unescaped.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'frame>> {
        self.at(self.metadata.position(name)?)
    }

    /// The list of this name.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<TensorList<'frame, 'store, F>> {
        match self.field(name)? {
            Field::List(list) => Some(list),
            Field::Tensor(_) => None,
        }
    }

    /// Whatever has this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field<'frame, 'store, F>> {
        let range = self.metadata.range(name);
        if range.is_empty() {
            return None;
        }
        let first = self.at(self.metadata.ordered(range.start)?)?;
        Some(match first.list_index() {
            None => Field::Tensor(first),
            Some(_) => Field::List(TensorList::new(*self, range)),
        })
    }

    /// The payloads of all tensors together, in bytes: none of them copied.
    #[must_use]
    pub const fn payload_bytes(&self) -> usize {
        self.metadata.tensor_bytes()
    }

    /// How many tensors lie at addresses where their elements cannot be seen in place.
    #[must_use]
    pub fn misaligned(&self) -> usize {
        self.tensors().filter(|tensor| !tensor.is_aligned()).count()
    }
}

impl<F> Clone for Message<'_, '_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Message<'_, '_, F> {}

impl<F> core::fmt::Debug for Message<'_, '_, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Message")
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}

/// Parts the metadata frame from the payloads.
pub(crate) fn split<F: AsRef<[u8]>>(frames: &[F]) -> Result<(&[u8], &[F]), DecodeError> {
    match frames.split_first() {
        Some((metadata, payloads)) => Ok((metadata.as_ref(), payloads)),
        None => Err(DecodeError::new(DecodeErrorKind::NoFrames, 0)),
    }
}

/// Refuses the first frame of a control message.
pub(crate) fn refuse_control(frame: &[u8]) -> Result<(), DecodeError> {
    if frame == CONTROL_MARKER {
        return Err(DecodeError::new(DecodeErrorKind::ControlMessage, 0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    #[test]
    fn of_several_conflicts_the_first_on_the_wire_is_told() {
        // Every message of up to four tensors of one name, plain (-1) or of a list.
        let mut messages = vec![Vec::new()];
        for _ in 0..4 {
            let longer = messages.iter().flat_map(|message: &Vec<i32>| {
                [-1, 0, 1, 5].map(|list_index| [message.as_slice(), &[list_index]].concat())
            });
            messages.extend(longer.collect::<Vec<_>>());
        }
        for message in messages {
            let expected = (0..message.len()).find_map(|later| {
                let earlier = &message[..later];
                let same = earlier.contains(&message[later]);
                let mixed = earlier.iter().any(|&a| (a < 0) != (message[later] < 0));
                let kind = match usize::try_from(message[later]) {
                    _ if mixed => DecodeErrorKind::MixedField,
                    Err(_) if same => DecodeErrorKind::DuplicateField,
                    Ok(list_index) if same => DecodeErrorKind::DuplicateListIndex { list_index },
                    _ => return None,
                };
                Some((kind, Some(later)))
            });
            let descriptors: Vec<String> = message
                .iter()
                .map(|list_index| {
                    let rest = r#""shape":[0],"dtype":"bool""#;
                    format!(r#"{{"field_name":"x",{rest},"list_index":{list_index}}}"#)
                })
                .collect();
            let frame = format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","));
            let mut storage = Storage::<4>::new();
            let result = Options::new().decode_metadata(frame.as_bytes(), &mut storage);
            let error = result.err().map(|error| (error.kind(), error.descriptor()));
            assert_eq!(error, expected, "{message:?}");
        }
    }
}
