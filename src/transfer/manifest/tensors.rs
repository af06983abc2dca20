//! The tensors of a manifest, seen where they lie in the slot.

use core::fmt;

use super::decode::Manifest;
use crate::json::Str;
use crate::message::order::{Members, Named};
use crate::tensor::TensorView;

/// A manifest and the bytes of its slot.
///
/// Views borrow the slot's bytes and the manifest's text, not this value and
/// not its storage. Tensors may start at any offset, so a view's alignment is
/// what it happens to be.
#[derive(Clone, Copy)]
pub struct Tensors<'frame, 'store> {
    manifest: Manifest<'frame, 'store>,
    slot: &'frame [u8],
}

impl<'frame, 'store> Tensors<'frame, 'store> {
    pub(super) const fn new(manifest: Manifest<'frame, 'store>, slot: &'frame [u8]) -> Self {
        Self { manifest, slot }
    }

    /// Returns the manifest, which tells the offset of each tensor: it is entry `index` there
    /// that is tensor `index` here.
    #[must_use]
    pub const fn manifest(&self) -> Manifest<'frame, 'store> {
        self.manifest
    }

    /// Returns the number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.manifest.len()
    }

    /// Tells whether there are no tensors.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.manifest.is_empty()
    }

    /// Iterates over the tensors in wire order, members of lists among them.
    pub fn tensors(
        &self,
    ) -> impl DoubleEndedIterator<Item = TensorView<'frame>> + Clone + use<'frame, 'store> {
        let this = *self;
        (0..self.len()).filter_map(move |index| this.get(index))
    }

    /// Returns the tensor at `index` in wire order, or `None` past the last.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<TensorView<'frame>> {
        let entry = self.manifest.entry(index)?;
        let bytes = self.slot.get(entry.range())?;
        TensorView::new(entry.descriptor(), bytes).ok()
    }

    /// Returns the plain tensor of this name; names compare unescaped.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'frame>> {
        self.get(self.manifest.position(name)?)
    }

    /// Returns the list of this name.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<TensorList<'frame, 'store>> {
        match self.field(name)? {
            Field::List(list) => Some(list),
            Field::Tensor(_) => None,
        }
    }

    /// Returns whatever has this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field<'frame, 'store>> {
        self.named(self.manifest.order().named(name)?)
    }

    /// Iterates over the fields, each name once: a plain tensor, or a list where
    /// its member of the smallest index stands.
    pub fn fields(
        &self,
    ) -> impl Iterator<Item = (Str<'frame>, Field<'frame, 'store>)> + use<'frame, 'store> {
        let this = *self;
        (0..self.len()).filter_map(move |index| {
            let field = this.named(this.manifest.order().named_at(index)?)?;
            Some((this.manifest.entry(index)?.descriptor().name(), field))
        })
    }

    fn named(&self, named: Named<'frame, 'store>) -> Option<Field<'frame, 'store>> {
        Some(match named {
            Named::List(members) => Field::List(TensorList {
                tensors: *self,
                members,
            }),
            Named::Tensor(index) => Field::Tensor(self.get(index)?),
        })
    }
}

impl fmt::Debug for Tensors<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensors")
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Field<'frame, 'store> {
    /// Several tensors.
    List(TensorList<'frame, 'store>),
    /// One tensor.
    Tensor(TensorView<'frame>),
}

/// The tensors of one name, by index, with holes where the writer had none.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::manifest::{Manifest, Storage};
///
/// let text = br#"{"skip":[
///     {"offset":2,"shape":[1],"dtype":"uint8","list_index":2},
///     {"offset":0,"shape":[2],"dtype":"uint8","list_index":0}]}"#;
/// let mut storage = Storage::<4>::new();
/// let object = Value::parse(text)?.as_object()?;
/// let manifest = Manifest::decode(object, 3, &mut storage)?;
/// let tensors = manifest.attach(&[7, 8, 9])?;
/// let list = tensors.list("skip").ok_or("no list of that name")?;
/// let bytes = list.iter().map(|member| member.map(|tensor| tensor.bytes()));
/// assert!(bytes.eq([Some(&[7, 8][..]), None, Some(&[9][..])]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TensorList<'frame, 'store> {
    tensors: Tensors<'frame, 'store>,
    members: Members<'frame, 'store>,
}

impl<'frame, 'store> TensorList<'frame, 'store> {
    /// Returns the length, holes included: the largest index plus 1.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Tells whether it has no members; a list that a manifest holds has some.
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
        self.tensors.get(self.position(index)?)
    }

    /// Returns the place in wire order of the member at `index`, as [`Manifest::entry`] takes it.
    #[must_use]
    pub fn position(&self, index: usize) -> Option<usize> {
        self.members.position(index)
    }

    /// Iterates over the members by index, `None` for each hole.
    pub fn iter(&self) -> impl Iterator<Item = Option<TensorView<'frame>>> + use<'frame, 'store> {
        let tensors = self.tensors;
        self.members
            .iter()
            .map(move |position| tensors.get(position?))
    }

    /// Iterates over the members with their indices, in ascending order and without the holes.
    pub fn present(
        &self,
    ) -> impl Iterator<Item = (usize, TensorView<'frame>)> + use<'frame, 'store> {
        let tensors = self.tensors;
        self.members
            .present()
            .filter_map(move |(index, position)| Some((index, tensors.get(position)?)))
    }
}

impl fmt::Debug for TensorList<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorList")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
