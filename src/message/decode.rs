//! A message decoded in place: metadata first, then the payloads behind it.

use super::CONTROL_MARKER;
use super::conflicts::Sharing;
use super::fields::{Field, TensorList};
use super::options::Options;
use super::order::{Named, Order};
use super::schema::{self, Parsed};
use super::storage::{Storage, Table};
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
/// let mask = message.tensor("mask").ok_or("no mask")?;
/// assert_eq!(mask.as_slice::<bool>()?, [true, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Metadata<'frame, 'store> {
    scalars: Object<'frame>,
    /// Where the list of descriptors starts.
    list_at: usize,
    tensor_bytes: usize,
    allocations: usize,
    order: Order<'frame, 'store>,
}

impl<'frame, 'store> Metadata<'frame, 'store> {
    pub(crate) fn decode_in(
        options: &Options,
        frame: &'frame [u8],
        table: Table<'store>,
    ) -> Result<Self, DecodeError> {
        refuse_control(frame)?;
        let parsed = schema::parse(frame, options, table.rows)?;
        Self::index(parsed, table)
    }

    /// Sorts the descriptors of `parsed`, and refuses two of one place.
    #[inline(always)]
    pub(crate) fn index(parsed: Parsed<'frame>, table: Table<'store>) -> Result<Self, DecodeError> {
        let Table { rows, order } = table;
        let rows = rows.get(..parsed.count).unwrap_or_default();
        let order = order.get_mut(..parsed.count).unwrap_or_default();
        Ok(Metadata {
            scalars: parsed.scalars,
            list_at: parsed.list_at,
            tensor_bytes: parsed.tensor_bytes,
            allocations: 0,
            order: Order::sort(parsed.text, parsed.key, Sharing::Members, rows, order)?,
        })
    }

    /// Notes that the storage had to grow.
    #[cfg(feature = "alloc")]
    pub(crate) const fn with_allocations(self, allocations: usize) -> Self {
        Self {
            allocations,
            ..self
        }
    }

    /// Returns the number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.order.rows().len()
    }

    /// Tells whether there are no tensors; error replies have none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.order.rows().is_empty()
    }

    /// Iterates over what is said of the tensors, in wire order.
    pub fn descriptors(
        &self,
    ) -> impl ExactSizeIterator<Item = Descriptor<'frame>>
    + DoubleEndedIterator
    + Clone
    + use<'frame, 'store> {
        let text = self.order.text();
        self.order
            .rows()
            .iter()
            .map(move |row| row.descriptor(text))
    }

    /// Returns what is said of the tensor at `index` in wire order, whose payload is frame `index + 1`.
    #[must_use]
    pub fn descriptor(&self, index: usize) -> Option<Descriptor<'frame>> {
        Some(self.order.rows().get(index)?.descriptor(self.order.text()))
    }

    /// Returns the place in wire order of the plain tensor of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        match self.order.named(name)? {
            Named::List(_) => None,
            Named::Tensor(index) => Some(index),
        }
    }

    /// Returns the sizes of all payloads together, in bytes.
    #[must_use]
    pub const fn tensor_bytes(&self) -> usize {
        self.tensor_bytes
    }

    /// Returns the scalars; without members if there are none.
    #[must_use]
    pub const fn scalars(&self) -> Object<'frame> {
        self.scalars
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
        let (expected, actual) = (self.order.rows().len(), payloads.len());
        if actual != expected {
            let kind = DecodeErrorKind::FrameCount { expected, actual };
            return Err(DecodeError::new(kind, self.list_at));
        }
        for (index, (row, payload)) in self.order.rows().iter().zip(payloads).enumerate() {
            let (expected, actual) = (row.layout.byte_len(), payload.as_ref().len());
            if actual != expected {
                let kind = DecodeErrorKind::FrameLength { expected, actual };
                return Err(row.error(index, kind));
            }
        }
        Ok(Message {
            metadata: self,
            payloads,
        })
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
///
/// # Examples
///
/// ```
/// use tensorwire::message::{Message, Storage};
///
/// let frames: [&[u8]; 2] = [
///     br#"{"tensor_descriptors":[{"field_name":"latents","shape":[2,2],"dtype":"int8"}],"scalar_fields":{"request_id":"r1"}}"#,
///     &[1, 2, 3, 255],
/// ];
/// let mut storage = Storage::<16>::new();
/// let message = Message::decode(&frames, &mut storage)?;
/// let latents = message.tensor("latents").ok_or("no latents")?;
/// assert_eq!(latents.shape(), [2, 2]);
/// assert_eq!(latents.as_slice::<i8>()?, [1, 2, 3, -1]);
/// assert!(message.scalars().field("request_id")?.as_str()? == "r1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Returns what the metadata frame says.
    #[must_use]
    pub const fn metadata(&self) -> Metadata<'frame, 'store> {
        self.metadata
    }

    /// Returns the number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.metadata.len()
    }

    /// Tells whether there are no tensors; error replies have none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.metadata.is_empty()
    }

    /// Returns the scalars; without members if there are none.
    #[must_use]
    pub const fn scalars(&self) -> Object<'frame> {
        self.metadata.scalars()
    }

    /// Iterates over the tensors in wire order, members of lists among them.
    pub fn tensors(
        &self,
    ) -> impl DoubleEndedIterator<Item = TensorView<'frame>> + Clone + use<'frame, 'store, F> {
        let this = *self;
        (0..self.len()).filter_map(move |index| this.get(index))
    }

    /// Returns the tensor at `index` in wire order, or `None` past the last.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<TensorView<'frame>> {
        let descriptor = self.metadata.descriptor(index)?;
        TensorView::new(descriptor, self.payloads.get(index)?.as_ref()).ok()
    }

    /// Returns the frame that the tensor at `index` in wire order lies in, or `None` past the last.
    ///
    /// It is what the message was decoded from, for those who need the frame itself: its owner, to keep it.
    #[must_use]
    pub fn payload(&self, index: usize) -> Option<&'frame F> {
        self.payloads.get(index)
    }

    /// Returns the plain tensor of this name; names compare unescaped.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'frame>> {
        self.get(self.metadata.position(name)?)
    }

    /// Returns the list of this name.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<TensorList<'frame, 'store, F>> {
        match self.field(name)? {
            Field::List(list) => Some(list),
            Field::Tensor(_) => None,
        }
    }

    /// Returns whatever has this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field<'frame, 'store, F>> {
        self.named(self.metadata.order.named(name)?)
    }

    /// Iterates over the fields, each name once: a plain tensor, or a list where
    /// its member of the smallest index stands.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use tensorwire::message::{Field, Message, Storage};
    ///
    /// let frames: [&[u8]; 4] = [
    ///     br#"{"tensor_descriptors":[
    ///         {"field_name":"embeds","shape":[1],"dtype":"uint8","list_index":1},
    ///         {"field_name":"mask","shape":[1],"dtype":"bool"},
    ///         {"field_name":"embeds","shape":[1],"dtype":"uint8","list_index":0}]}"#,
    ///     &[1],
    ///     &[1],
    ///     &[0],
    /// ];
    /// let mut storage = Storage::<4>::new();
    /// let message = Message::decode(&frames, &mut storage)?;
    /// let fields: HashMap<String, Field<'_, '_, _>> = message
    ///     .fields()
    ///     .map(|(name, field)| (name.to_string(), field))
    ///     .collect();
    /// assert!(matches!(&fields["mask"], Field::Tensor(_)));
    /// assert!(matches!(&fields["embeds"], Field::List(list) if list.len() == 2));
    /// # Ok::<(), tensorwire::error::DecodeError>(())
    /// ```
    pub fn fields(
        &self,
    ) -> impl Iterator<Item = (Str<'frame>, Field<'frame, 'store, F>)> + use<'frame, 'store, F>
    {
        let this = *self;
        (0..self.len()).filter_map(move |index| {
            let field = this.named(this.metadata.order.named_at(index)?)?;
            Some((this.metadata.descriptor(index)?.name(), field))
        })
    }

    fn named(&self, named: Named<'frame, 'store>) -> Option<Field<'frame, 'store, F>> {
        Some(match named {
            Named::List(members) => Field::List(TensorList::new(*self, members)),
            Named::Tensor(index) => Field::Tensor(self.get(index)?),
        })
    }

    /// Returns what the message cost, and what using it will.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let misaligned = self.tensors().filter(|tensor| !tensor.is_aligned());
        let (misaligned, misaligned_bytes) = misaligned.fold((0, 0), |(count, bytes), tensor| {
            let bytes: usize = bytes;
            let count: usize = count;
            (
                count.saturating_add(1),
                bytes.saturating_add(tensor.byte_len()),
            )
        });
        Cost {
            payload_bytes: self.metadata.tensor_bytes,
            allocations: self.metadata.allocations,
            misaligned,
            misaligned_bytes,
        }
    }
}

/// What a decoded message cost.
///
/// Decoding copies no payload. What may have to be copied yet is what is misaligned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cost {
    payload_bytes: usize,
    allocations: usize,
    misaligned: usize,
    misaligned_bytes: usize,
}

impl Cost {
    /// Returns the payloads of all tensors together, in bytes.
    #[must_use]
    pub const fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Returns how often memory was asked for: by a `Decoder` whose storage had to grow, else 0.
    #[must_use]
    pub const fn allocations(&self) -> usize {
        self.allocations
    }

    /// Returns how many tensors lie where their elements cannot be seen in place.
    #[must_use]
    pub const fn misaligned(&self) -> usize {
        self.misaligned
    }

    /// Returns the bytes of those.
    #[must_use]
    pub const fn misaligned_bytes(&self) -> usize {
        self.misaligned_bytes
    }
}

impl core::fmt::Debug for Metadata<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Metadata")
            .field("tensors", &self.len())
            .field("tensor_bytes", &self.tensor_bytes)
            .finish_non_exhaustive()
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
