//! What a name stands for: one tensor, or a list of them.

use core::fmt;

use super::decode::Message;
use super::order::Members;
use crate::tensor::TensorView;

/// What a name stands for.
#[non_exhaustive]
pub enum Field<'frame, 'store, F> {
    /// Several tensors.
    List(TensorList<'frame, 'store, F>),
    /// One tensor.
    Tensor(TensorView<'frame>),
}

/// The tensors of one name, by index, with holes where the writer had none.
///
/// # Examples
///
/// ```
/// use tensorwire::message::{Message, Storage};
///
/// let frames: [&[u8]; 3] = [
///     br#"{"tensor_descriptors":[
///         {"field_name":"skip","shape":[2],"dtype":"uint8","list_index":2},
///         {"field_name":"skip","shape":[1],"dtype":"uint8","list_index":0}]}"#,
///     &[7, 8],
///     &[9],
/// ];
/// let mut storage = Storage::<4>::new();
/// let message = Message::decode(&frames, &mut storage)?;
/// let list = message.list("skip").ok_or("no list of that name")?;
/// let bytes = list.iter().map(|member| member.map(|tensor| tensor.bytes()));
/// assert!(bytes.eq([Some(&[9][..]), None, Some(&[7, 8][..])]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorList<'frame, 'store, F> {
    message: Message<'frame, 'store, F>,
    members: Members<'frame, 'store>,
}

impl<'frame, 'store, F: AsRef<[u8]>> TensorList<'frame, 'store, F> {
    pub(crate) const fn new(
        message: Message<'frame, 'store, F>,
        members: Members<'frame, 'store>,
    ) -> Self {
        Self { message, members }
    }

    /// Returns the length, holes included: the largest index plus 1.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Tells whether it has no members; a list that a message holds has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns how many members there are, holes not counted.
    #[must_use]
    pub fn present_len(&self) -> usize {
        self.members.present_len()
    }

    /// Returns the member at `index`, or `None` in a hole and past the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<TensorView<'frame>> {
        self.message.get(self.members.position(index)?)
    }

    /// Iterates over the members by index, `None` for each hole.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = Option<TensorView<'frame>>> + use<'frame, 'store, F> {
        let message = self.message;
        self.members
            .iter()
            .map(move |position| message.get(position?))
    }

    /// Iterates over the members with their indices, in ascending order and without the holes.
    pub fn present(
        &self,
    ) -> impl Iterator<Item = (usize, TensorView<'frame>)> + use<'frame, 'store, F> {
        let message = self.message;
        self.members
            .present()
            .filter_map(move |(index, position)| Some((index, message.get(position)?)))
    }
}

impl<F> Clone for Field<'_, '_, F> {
    fn clone(&self) -> Self {
        match self {
            Self::List(list) => Self::List(list.clone()),
            Self::Tensor(tensor) => Self::Tensor(*tensor),
        }
    }
}

impl<F> fmt::Debug for Field<'_, '_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(list) => list.fmt(f),
            Self::Tensor(tensor) => tensor.fmt(f),
        }
    }
}

impl<F> Clone for TensorList<'_, '_, F> {
    fn clone(&self) -> Self {
        Self {
            message: self.message,
            members: self.members.clone(),
        }
    }
}

impl<F> fmt::Debug for TensorList<'_, '_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorList")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
