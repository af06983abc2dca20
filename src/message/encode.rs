//! Writes the metadata frame, byte for byte as Python's writer does.
//!
//! Payload frames are not written: they are [`TensorView::bytes`], sent from
//! where they lie.
//!
//! [`TensorView::bytes`]: crate::TensorView::bytes

use super::scalar::ScalarFields;
use super::unique;
use crate::error::EncodeError;
use crate::json::writer::Writer;
use crate::tensor::Descriptor;
#[cfg(feature = "alloc")]
use crate::tensor::TensorView;

/// No tensors, for a message of scalars alone, as error replies are.
pub const NO_TENSORS: &[Descriptor<'static>] = &[];

/// Returns the length in bytes of the metadata frame for these tensors and scalars.
///
/// # Errors
///
/// As [`encode_into`], but for [`EncodeError::BufferTooSmall`].
pub fn encoded_len<'t, T, S>(tensors: T, scalars: &S) -> Result<usize, EncodeError>
where
    T: IntoIterator<Item: AsRef<Descriptor<'t>>, IntoIter: Clone>,
    S: ScalarFields + ?Sized,
{
    let mut writer = Writer::new(&mut []);
    put_metadata(&mut writer, tensors.into_iter(), scalars)?;
    Ok(writer.len())
}

/// Writes the metadata frame for these tensors and scalars to the start of
/// `buffer`, and gives that part of it.
///
/// `tensors` are [`TensorView`](crate::TensorView)s, or [`Descriptor`]s of
/// payloads that are elsewhere: a slice of them, or what a message that was
/// received iterates over. The payload frames follow in the same order.
///
/// A reader's [`Limits`](crate::Limits) are its own: a rank over 64, a list index
/// over 4096, a name over 1024 bytes, scalars nested deeper than 126 levels or
/// metadata over 1 MiB are written, and refused by a reader with the default caps.
///
/// # Errors
///
/// - [`EncodeError::BufferTooSmall`] with the length needed; then `buffer` holds
///   zeros, which is no message.
/// - [`EncodeError::DuplicateField`], [`EncodeError::DuplicateListIndex`],
///   [`EncodeError::MixedField`]: no reader could tell the tensors apart.
/// - [`EncodeError::InvalidName`]: a lone surrogate, which no reader takes for a name.
/// - [`EncodeError::ScalarsNotAnObject`], and [`EncodeError::KeyType`] and
///   [`EncodeError::Serialize`] for serialized scalars.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
/// use tensorwire::message::{Scalar, encode_into};
///
/// let timesteps = [999.0_f32, 500.0];
/// let tensors = [TensorView::from_slice("timesteps", &[2], &timesteps)?];
/// let scalars = [("seed", Scalar::from(42))];
/// let mut buffer = [0; 256];
/// let metadata = encode_into(&tensors, &scalars, &mut buffer)?;
/// assert_eq!(
///     metadata,
///     br#"{"tensor_descriptors":[{"field_name":"timesteps","shape":[2],"dtype":"float32","list_index":-1}],"scalar_fields":{"seed":42}}"#,
/// );
/// let frames = [&*metadata, tensors[0].bytes()];
/// # assert_eq!(frames[1].len(), 8);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
pub fn encode_into<'b, 't, T, S>(
    tensors: T,
    scalars: &S,
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], EncodeError>
where
    T: IntoIterator<Item: AsRef<Descriptor<'t>>, IntoIter: Clone>,
    S: ScalarFields + ?Sized,
{
    let mut writer = Writer::new(buffer);
    let result = put_metadata(&mut writer, tensors.into_iter(), scalars);
    if let Err(error) = result {
        writer.blank();
        return Err(error);
    }
    writer.finish()
}

/// Returns the metadata frame for these tensors and scalars, in a new vector of just its length.
///
/// # Errors
///
/// As [`encoded_len`]; and [`EncodeError::BufferTooSmall`] if a serialized value
/// writes more the second time that it is asked.
#[cfg(feature = "alloc")]
pub fn encode_to_vec<'t, T, S>(tensors: T, scalars: &S) -> Result<alloc::vec::Vec<u8>, EncodeError>
where
    T: IntoIterator<Item: AsRef<Descriptor<'t>>, IntoIter: Clone>,
    S: ScalarFields + ?Sized,
{
    let tensors = tensors.into_iter();
    let mut buffer = alloc::vec![0; encoded_len(tensors.clone(), scalars)?];
    // A `Serialize` may write less the second time.
    let length = encode_into(tensors, scalars, &mut buffer)?.len();
    buffer.truncate(length);
    Ok(buffer)
}

/// Returns the frames of a message in order: the metadata, then the bytes of each tensor.
///
/// Without `alloc` they are written down as an array.
///
/// # Examples
///
/// ```
/// use tensorwire::TensorView;
/// use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
///
/// let tensors = [TensorView::from_slice("mask", &[3], &[true, false, true])?];
/// let metadata = encode_to_vec(&tensors, &NO_SCALARS)?;
/// assert_eq!(frames(&metadata, &tensors), [&metadata[..], &[1, 0, 1]]);
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
#[cfg(feature = "alloc")]
#[must_use]
pub fn frames<'a>(metadata: &'a [u8], tensors: &[TensorView<'a>]) -> alloc::vec::Vec<&'a [u8]> {
    core::iter::once(metadata)
        .chain(tensors.iter().map(TensorView::bytes))
        .collect()
}

fn put_metadata<'t, T, S>(
    writer: &mut Writer<'_>,
    tensors: T,
    scalars: &S,
) -> Result<(), EncodeError>
where
    T: Iterator<Item: AsRef<Descriptor<'t>>> + Clone,
    S: ScalarFields + ?Sized,
{
    unique::check(tensors.clone())?;
    for (index, tensor) in tensors.clone().enumerate() {
        if tensor.as_ref().name().decoded_len().is_err() {
            return Err(EncodeError::InvalidName { index });
        }
    }
    writer.put_raw(br#"{"tensor_descriptors":["#);
    for (index, tensor) in tensors.enumerate() {
        if index > 0 {
            writer.put_raw(b",");
        }
        put_descriptor(writer, tensor.as_ref());
    }
    writer.put_raw(br#"],"scalar_fields":"#);
    scalars.put(writer)?;
    writer.put_raw(b"}");
    Ok(())
}

fn put_descriptor(writer: &mut Writer<'_>, tensor: &Descriptor<'_>) {
    writer.put_raw(br#"{"field_name":"#);
    writer.put_str(tensor.name());
    writer.put_raw(b",");
    put_shape_and_dtype(writer, tensor);
    writer.put_raw(br#","list_index":"#);
    match tensor.list_index() {
        Some(index) => writer.put_u64(index.into()),
        None => writer.put_raw(b"-1"),
    }
    writer.put_raw(b"}");
}

/// Writes these two members of a descriptor, which a manifest has too.
pub(crate) fn put_shape_and_dtype(writer: &mut Writer<'_>, tensor: &Descriptor<'_>) {
    writer.put_raw(br#""shape":["#);
    for (index, dim) in tensor.shape().dims().enumerate() {
        if index > 0 {
            writer.put_raw(b",");
        }
        writer.put_usize(dim);
    }
    writer.put_raw(br#"],"dtype":""#);
    writer.put_raw(tensor.dtype().name().as_bytes());
    writer.put_raw(b"\"");
}
