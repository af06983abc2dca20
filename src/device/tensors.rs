//! The tensors of one message, on a device.

use alloc::vec::Vec;

use super::DeviceTensor;

/// The tensors of one message, on a device, in wire order.
///
/// # Examples
///
/// ```
/// use tensorwire::device::{Device, DeviceTensor, host};
/// use tensorwire::message::{Message, Storage};
/// use tensorwire::transport::Wait;
///
/// let frames: [&[u8]; 4] = [
///     br#"{"tensor_descriptors":[
///         {"field_name":"mask","shape":[2],"dtype":"bool"},
///         {"field_name":"embeds","shape":[1],"dtype":"uint8","list_index":0},
///         {"field_name":"embeds","shape":[1],"dtype":"uint8","list_index":2}]}"#,
///     &[0, 1],
///     &[7],
///     &[9],
/// ];
/// let mut storage = Storage::<4>::new();
/// let message = Message::decode(&frames, &mut storage)?;
/// let tensors = host::Host::new().upload_message(&message, &host::Stream, Wait::Configured)?;
///
/// assert_eq!(tensors.len(), 3);
/// let mask = tensors.tensor("mask").ok_or("no mask")?;
/// assert_eq!(mask.info().shape(), [2]);
/// // None stood at index 1.
/// let embeds = tensors.list("embeds").map(|(index, tensor)| (index, tensor.bytes()));
/// assert!(embeds.eq([(0, &[7][..]), (2, &[9])]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tensors<T> {
    tensors: Vec<T>,
}

impl<T> Tensors<T> {
    /// Takes the tensors of a message, in wire order: for a device of one's own.
    #[must_use]
    pub const fn new(tensors: Vec<T>) -> Self {
        Self { tensors }
    }

    /// Returns the number of tensors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Iterates over them, in wire order.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.tensors.iter()
    }

    /// Returns the tensor at `index` in wire order.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.tensors.get(index)
    }

    /// Returns all of them, in wire order.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.tensors
    }
}

impl<T: DeviceTensor> Tensors<T> {
    /// Finds the plain tensor of this name; names compare unescaped.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&T> {
        let mut tensors = self.tensors.iter();
        tensors.find(|tensor| {
            let info = tensor.info();
            info.list_index().is_none() && info.name() == name
        })
    }

    /// Iterates over the members of the list of this name, with their indices, in wire order.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u32, &'a T)> {
        self.tensors.iter().filter_map(move |tensor| {
            let info = tensor.info();
            let index = info.list_index()?;
            (info.name() == name).then_some((index, tensor))
        })
    }
}

impl<T> IntoIterator for Tensors<T> {
    type Item = T;
    type IntoIter = alloc::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Tensors<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.iter()
    }
}
