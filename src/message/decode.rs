//! A message decoded in place: metadata first, then the payloads behind it.

use core::cmp::Ordering;
use core::ops::Range;

use super::CONTROL_MARKER;
use super::fields::{Field, TensorList};
use super::options::Options;
use super::schema::{self, Parsed};
use super::storage::{Place, Slot, Storage, Table, to_usize};
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
    /// The same by name and list index.
    order: &'store [Place],
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
        for ((index, slot), place) in (0..).zip(slots).zip(order.iter_mut()) {
            *place = Place::new(slot, index, parsed.text);
        }
        let metadata = Metadata {
            parsed,
            slots,
            order: &[],
        };
        if order.len() > 1 {
            order.sort_unstable_by_key(Place::key);
            let mut neighbours = metadata.neighbours(order);
            if neighbours.collide {
                order.sort_unstable_by(|a, b| metadata.compare(*a, *b));
                neighbours = metadata.neighbours(order);
            }
            if let Some((index, kind)) = neighbours.conflict {
                return Err(metadata.error_at(index, kind));
            }
        }
        Ok(Metadata { order, ..metadata })
    }

    /// The order of any two places.
    fn compare(&self, a: Place, b: Place) -> Ordering {
        let names = || self.name_at(a).cmp(&self.name_at(b));
        let fingerprints = a.fingerprint.cmp(&b.fingerprint);
        fingerprints
            .then_with(names)
            .then_with(|| a.key().cmp(&b.key()))
    }

    fn name_at(&self, place: Place) -> Str<'frame> {
        let slot = self.slots.get(place.index()).unwrap_or(&Slot::EMPTY);
        slot.name(self.parsed.text)
    }

    /// Compares each place in `order` with the next.
    ///
    /// Two descriptors in conflict are neighbours, if no two names have one
    /// fingerprint or `order` is by name too.
    fn neighbours(&self, order: &[Place]) -> Neighbours {
        let mut found = Neighbours {
            collide: false,
            conflict: None,
        };
        for pair in order.windows(2) {
            let &[a, b] = pair else { continue };
            if a.fingerprint != b.fingerprint {
                continue;
            }
            if self.name_at(a) != self.name_at(b) {
                found.collide = true;
                continue;
            }
            let list_index = |place: Place| self.slots.get(place.index())?.list_index;
            if let Some(kind) = conflict(list_index(a), list_index(b)) {
                let later = a.index().max(b.index());
                if found.conflict.is_none_or(|(first, _)| later < first) {
                    found.conflict = Some((later, kind));
                }
            }
        }
        found
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
        let name = Str::from(name);
        let fingerprint = name.fingerprint();
        let before = |place: &Place| {
            let order = place.fingerprint.cmp(&fingerprint);
            order.then_with(|| self.name_at(*place).cmp(&name)) == Ordering::Less
        };
        let start = self.order.partition_point(before);
        let tail = self.order.get(start..).unwrap_or_default();
        let same =
            |place: &&Place| place.fingerprint == fingerprint && self.name_at(**place) == name;
        let count = tail.iter().take_while(same).count();
        start..start.saturating_add(count)
    }

    /// The wire index at a place in `order`.
    pub(crate) fn ordered(&self, place: usize) -> Option<usize> {
        self.order.get(place).map(|place| place.index())
    }
}

/// What comparing neighbours finds.
struct Neighbours {
    /// Two names have one fingerprint: `order` is not by name yet.
    collide: bool,
    /// Of several conflicts the one that a reader of the wire meets first.
    conflict: Option<(usize, DecodeErrorKind)>,
}

/// Whether two descriptors of one name cannot both be there.
fn conflict(a: Option<u32>, b: Option<u32>) -> Option<DecodeErrorKind> {
    match (a, b) {
        (None, None) => Some(DecodeErrorKind::DuplicateField),
        (Some(a), Some(b)) if a == b => Some(DecodeErrorKind::DuplicateListIndex {
            list_index: to_usize(a),
        }),
        (Some(_), Some(_)) => None,
        _ => Some(DecodeErrorKind::MixedField),
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
    use std::collections::BTreeMap;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// Two names of one fingerprint; any birthday finds some.
    fn colliding() -> [String; 2] {
        let mut seen = BTreeMap::new();
        (0..)
            .find_map(|number| {
                let name = format!("t{number}");
                let fingerprint = Str::from(&*name).fingerprint();
                let other = seen.insert(fingerprint, name.clone())?;
                Some([other, name])
            })
            .unwrap()
    }

    fn metadata(names: &[(&str, i32)]) -> String {
        let descriptors: Vec<_> = names
            .iter()
            .map(|(name, index)| {
                format!(
                    r#"{{"field_name":"{name}","shape":[0],"dtype":"uint8","list_index":{index}}}"#
                )
            })
            .collect();
        format!(r#"{{"tensor_descriptors":[{}]}}"#, descriptors.join(","))
    }

    #[test]
    fn names_of_one_fingerprint_are_told_apart() {
        let [a, b] = colliding();
        let text = metadata(&[(&a, 1), (&b, -1), (&a, 0), (&a, 3), ("c", -1)]);
        let mut storage = Storage::<8>::new();
        let frames = [text.as_str(), "", "", "", "", ""];
        let message = Message::decode(&frames, &mut storage).unwrap();
        let list = message.list(&a).unwrap();
        assert!(list.present().map(|(index, _)| index).eq([0, 1, 3]));
        assert!(message.tensor(&b).is_some() && message.tensor("c").is_some());
        assert!(message.list(&b).is_none() && message.tensor("d").is_none());
    }

    #[test]
    fn conflicts_among_names_of_one_fingerprint_are_found() {
        let [a, b] = colliding();
        let list_index = 0;
        for (names, kind, index) in [
            (
                [(&*a, -1), (&*b, -1), (&*a, -1), (&*b, -1)],
                DecodeErrorKind::DuplicateField,
                2,
            ),
            (
                [(&*a, 0), (&*b, 0), (&*b, 1), (&*a, 0)],
                DecodeErrorKind::DuplicateListIndex { list_index },
                3,
            ),
            (
                [(&*b, 0), (&*a, 0), (&*a, 1), (&*b, -1)],
                DecodeErrorKind::MixedField,
                3,
            ),
        ] {
            let text = metadata(&names);
            let frames = [text.as_str(), "", "", "", ""];
            let error = Message::decode(&frames, &mut Storage::<8>::new()).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert_eq!(error.descriptor(), Some(index));
        }
    }

    #[test]
    fn a_descriptor_takes_the_room_that_is_told() {
        let of = |count: usize| count * 72;
        assert!(size_of::<Storage<64>>() <= of(64));
    }
}
