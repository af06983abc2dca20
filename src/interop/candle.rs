//! Tensors as [`candle_core`] tensors, and messages from them.
//!
//! candle owns its tensors, and makes one on the host only of a vector of its own. So both ways are copies: one from the frame
//! to the tensor, one from the tensor to the payload. [`to_tensor`] reads a frame at any alignment.
//!
//! candle has ten of our dtypes:
//!
//! | candle | here |
//! |---|---|
//! | `F16`, `BF16`, `F32`, `F64` | `float16`, `bfloat16`, `float32`, `float64` |
//! | `F8E4M3` | `float8_e4m3fn` |
//! | `U8`, `U32` | `uint8`, `uint32` |
//! | `I16`, `I32`, `I64` | `int16`, `int32`, `int64` |
//!
//! All others are refused, with [`CandleError::NoDType`]: nothing is cast unasked. A `bool` mask that may be read as
//! `uint8` is so by [`TensorView::from_bytes`] over its bytes. candle's `F8E8M0`, `F6E2M3`, `F6E3M2` and `F4` hold bytes that candle
//! itself does not give out, and are refused with [`CandleError::NoWireDType`].
//!
//! # Examples
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use tensorwire::interop::candle::{to_parts, to_tensor};
//! use tensorwire::message::Scalar;
//! use tensorwire::Decoder;
//!
//! // Out of a model ...
//! let latents = Tensor::new(&[[1.0_f32, 2.0], [3.0, 4.0]], &Device::Cpu)?;
//! let parts = to_parts([("latents", &latents.t()?)], &[("seed", Scalar::from(42))])?;
//!
//! // ... by way of some transport, into another.
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&parts)?;
//! let received = message.tensor("latents").ok_or("no latents")?;
//! let received = to_tensor(&received, &Device::Cpu)?;
//! assert_eq!(received.to_vec2::<f32>()?, [[1.0, 3.0], [2.0, 4.0]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::error::Error;
use core::fmt;

use alloc::boxed::Box;
use alloc::vec::Vec;

use candle_core::{CpuStorage, Device, Storage, Tensor, WithDType};
use half::{bf16, f16};

use super::elements::Elements;
use crate::device::{Downloaded, TensorInfo};
use crate::dtype::DType;
use crate::error::{CastError, EncodeError};
use crate::json::Str;
use crate::message::ScalarFields;
use crate::tensor::{Descriptor, Element, TensorView};
use crate::transport::{Buffer, Part};

/// Copies a tensor to a candle tensor on `device`.
///
/// # Errors
///
/// [`CandleError::NoDType`]; [`CandleError::Candle`] with what candle says, on a device other than the host above all.
pub fn to_tensor(tensor: &TensorView<'_>, device: &Device) -> Result<Tensor, CandleError> {
    match tensor.dtype() {
        DType::BFloat16 => copy::<bf16>(tensor, device),
        DType::Float16 => copy::<f16>(tensor, device),
        DType::Float32 => copy::<f32>(tensor, device),
        DType::Float64 => copy::<f64>(tensor, device),
        DType::Float8E4M3Fn => {
            let dims = dims(tensor);
            let dtype = candle_core::DType::F8E4M3;
            Ok(Tensor::from_raw_buffer(
                tensor.bytes(),
                dtype,
                &dims,
                device,
            )?)
        }
        DType::Int16 => copy::<i16>(tensor, device),
        DType::Int32 => copy::<i32>(tensor, device),
        DType::Int64 => copy::<i64>(tensor, device),
        DType::UInt8 => copy::<u8>(tensor, device),
        DType::UInt32 => copy::<u32>(tensor, device),
        dtype => Err(CandleError::NoDType(dtype)),
    }
}

fn copy<T: Element + WithDType>(
    tensor: &TensorView<'_>,
    device: &Device,
) -> Result<Tensor, CandleError> {
    Ok(Tensor::from_vec(
        tensor.to_vec::<T>()?,
        dims(tensor),
        device,
    )?)
}

fn dims(tensor: &TensorView<'_>) -> Vec<usize> {
    tensor.shape().dims().collect()
}

/// Copies a candle tensor, from whatever device and in whatever layout, to a payload that is ready to be sent, and says what
/// it is.
///
/// # Errors
///
/// [`CandleError::NoWireDType`], [`CandleError::Candle`].
pub fn to_payload<'a>(
    name: impl Into<Str<'a>>,
    tensor: &Tensor,
) -> Result<(TensorInfo, Buffer), CandleError> {
    let (dtype, payload) = match tensor.dtype() {
        candle_core::DType::BF16 => elements::<bf16>(tensor)?,
        candle_core::DType::F16 => elements::<f16>(tensor)?,
        candle_core::DType::F32 => elements::<f32>(tensor)?,
        candle_core::DType::F64 => elements::<f64>(tensor)?,
        candle_core::DType::F8E4M3 => float8(tensor)?,
        candle_core::DType::I16 => elements::<i16>(tensor)?,
        candle_core::DType::I32 => elements::<i32>(tensor)?,
        candle_core::DType::I64 => elements::<i64>(tensor)?,
        candle_core::DType::U32 => elements::<u32>(tensor)?,
        candle_core::DType::U8 => elements::<u8>(tensor)?,
        dtype => return Err(CandleError::NoWireDType(dtype)),
    };
    let name: Str<'_> = name.into();
    let descriptor = Descriptor::new(name, dtype, tensor.dims())?;
    Ok((TensorInfo::new(&descriptor), payload))
}

fn elements<T: Element + Send + WithDType>(
    tensor: &Tensor,
) -> Result<(DType, Buffer), CandleError> {
    let elements = tensor.flatten_all()?.to_vec1::<T>()?;
    Ok((<T as Element>::DTYPE, Elements::into_buffer(elements)))
}

/// The type of these elements is of a crate that candle does not give out: they are taken where candle keeps them.
fn float8(tensor: &Tensor) -> Result<(DType, Buffer), CandleError> {
    let tensor = tensor.to_device(&Device::Cpu)?.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let elements = match &*storage {
        Storage::Cpu(CpuStorage::F8E4M3(elements)) => layout
            .contiguous_offsets()
            .and_then(|(start, end)| elements.get(start..end)),
        _ => None,
    };
    let elements = elements.ok_or(CandleError::NoWireDType(candle_core::DType::F8E4M3))?;
    let bytes: Vec<u8> = elements.iter().map(|element| element.to_bits()).collect();
    Ok((DType::Float8E4M3Fn, Buffer::from(bytes)))
}

/// Makes a message of candle tensors, each copied once: the metadata with `scalars`, then a payload for each tensor.
///
/// # Errors
///
/// As [`to_payload`]; [`CandleError::Encode`] as of [`encode_to_vec`](crate::message::encode_to_vec), two tensors of one name above all.
pub fn to_parts<'a, N, S>(
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    scalars: &S,
) -> Result<Vec<Part<'static>>, CandleError>
where
    N: Into<Str<'a>>,
    S: ScalarFields + ?Sized,
{
    let tensors = tensors.into_iter();
    let payloads = tensors.map(|(name, tensor)| to_payload(name, tensor));
    let payloads = Downloaded::new(payloads.collect::<Result<_, _>>()?)?;
    Ok(payloads.into_parts(scalars)?)
}

/// A tensor is none of candle's, or one of candle's has no place in a message.
#[derive(Debug)]
#[non_exhaustive]
pub enum CandleError {
    /// candle failed.
    Candle(Box<candle_core::Error>),
    /// The tensor's bytes are no elements of its dtype.
    Cast(CastError),
    /// No message can be made of the tensors.
    Encode(EncodeError),
    /// candle has no such dtype.
    NoDType(DType),
    /// A message has no such dtype, or candle does not give its bytes out.
    NoWireDType(candle_core::DType),
}

impl fmt::Display for CandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Candle(error) => error.fmt(f),
            Self::Cast(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
            Self::NoDType(dtype) => write!(f, "candle has no {dtype}"),
            Self::NoWireDType(dtype) => {
                write!(f, "candle's {} cannot be sent", dtype.as_str())
            }
        }
    }
}

impl Error for CandleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Candle(error) => Some(error),
            Self::Cast(error) => Some(error),
            Self::Encode(error) => Some(error),
            Self::NoDType(_) | Self::NoWireDType(_) => None,
        }
    }
}

impl From<candle_core::Error> for CandleError {
    fn from(error: candle_core::Error) -> Self {
        Self::Candle(Box::new(error))
    }
}

impl From<CastError> for CandleError {
    fn from(error: CastError) -> Self {
        Self::Cast(error)
    }
}

impl From<EncodeError> for CandleError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const CPU: Device = Device::Cpu;

    /// Bytes that are elements of every dtype, at an odd address.
    fn odd(bytes: &[u8], target: &mut Vec<u8>) -> usize {
        target.clear();
        target.resize(64, 0);
        let shift = usize::from(target.as_ptr().addr().is_multiple_of(2));
        target[shift..][..bytes.len()].copy_from_slice(bytes);
        shift
    }

    #[test]
    fn ten_dtypes_go_to_candle_and_back_at_any_address() {
        let bytes: Vec<u8> = (0..48).map(|byte| byte % 60).collect();
        let mut room = Vec::new();
        let shift = odd(&bytes, &mut room);
        let bytes = &room[shift..][..48];
        let mut known = 0;
        for &dtype in DType::ALL {
            let shape = [3, 16 / dtype.size()];
            let tensor = TensorView::from_bytes("x", dtype, &shape, bytes).unwrap();
            let there = match to_tensor(&tensor, &CPU) {
                Ok(there) => there,
                Err(error) => {
                    assert!(matches!(error, CandleError::NoDType(found) if found == dtype));
                    assert_eq!(error.to_string(), std::format!("candle has no {dtype}"));
                    continue;
                }
            };
            known += 1;
            assert_eq!(there.dims(), shape);
            let (info, payload) = to_payload("x", &there).unwrap();
            assert_eq!((info.dtype(), info.shape()), (dtype, &shape[..]));
            assert_eq!(payload.as_ref(), bytes, "{dtype}");
        }
        assert_eq!(known, 10);
    }

    #[test]
    fn elements_have_the_same_value_on_both_sides() {
        let elements = [bf16::from_f32(0.5), bf16::NAN];
        let tensor = TensorView::from_slice("x", &[2], &elements).unwrap();
        let there = to_tensor(&tensor, &CPU).unwrap().to_vec1::<bf16>().unwrap();
        assert!(there[0].to_f32() == 0.5 && there[1].is_nan());
        let tensor = TensorView::from_bytes("x", DType::Float8E4M3Fn, &[2], &[0x7e, 0x38]).unwrap();
        let there = to_tensor(&tensor, &CPU).unwrap();
        let there = there.to_dtype(candle_core::DType::F32).unwrap();
        assert_eq!(there.to_vec1::<f32>().unwrap(), [448.0, 1.0]);
    }

    #[test]
    fn scalars_empty_tensors_and_other_layouts_are_copied_in_order() {
        let scalar = TensorView::from_slice("x", &[], &[7_i64]).unwrap();
        let there = to_tensor(&scalar, &CPU).unwrap();
        assert_eq!(there.to_scalar::<i64>().unwrap(), 7);
        assert_eq!(to_payload("x", &there).unwrap().1.as_ref(), scalar.bytes());
        let empty = TensorView::from_slice::<f32>("x", &[3, 0], &[]).unwrap();
        let there = to_tensor(&empty, &CPU).unwrap();
        assert_eq!(there.dims(), [3, 0]);
        assert_eq!(to_payload("x", &there).unwrap().0.byte_len(), 0);
        let bytes = [1_u8, 2, 3, 4, 5, 6];
        for dtype in [DType::UInt8, DType::Float8E4M3Fn] {
            let tensor = TensorView::from_bytes("x", dtype, &[2, 3], &bytes).unwrap();
            let there = to_tensor(&tensor, &CPU).unwrap();
            let (info, payload) = to_payload("x", &there.t().unwrap()).unwrap();
            assert_eq!(info.shape(), [3, 2]);
            assert_eq!(payload.as_ref(), [1, 4, 2, 5, 3, 6]);
            let part = there.narrow(0, 1, 1).unwrap().narrow(1, 1, 2).unwrap();
            assert_eq!(to_payload("x", &part).unwrap().1.as_ref(), [5, 6]);
        }
    }

    #[test]
    fn every_dtype_goes_in_any_shape_and_layout() {
        const MAX: usize = isize::MAX.unsigned_abs();
        let deep = [1; 64];
        for (shape, elements) in [
            (&[][..], 1),
            (&[0][..], 0),
            (&[1, 2, 1, 1, 3, 1, 2][..], 12),
            (&deep[..], 1),
            (&[0, MAX / 16][..], 0),
            (&[2, 0, 3][..], 0),
        ] {
            for &dtype in DType::ALL {
                let bytes = std::vec![1; elements * dtype.size()];
                let tensor = TensorView::from_bytes("x", dtype, shape, &bytes).unwrap();
                let there = match to_tensor(&tensor, &CPU) {
                    Err(CandleError::NoDType(_)) => continue,
                    there => there.unwrap(),
                };
                assert_eq!(there.dims(), shape);
                let (info, payload) = to_payload("x", &there).unwrap();
                assert_eq!((info.shape(), payload.as_ref()), (shape, &bytes[..]));
            }
        }
        // Each element once more than it lies there.
        let row: Vec<u8> = (0..24).collect();
        for &dtype in DType::ALL {
            let count = 24 / dtype.size();
            let shape = [1, count];
            let bytes = &row[..count * dtype.size()];
            let tensor = TensorView::from_bytes("x", dtype, &shape, bytes).unwrap();
            let Ok(there) = to_tensor(&tensor, &CPU) else {
                continue;
            };
            let repeated = there.broadcast_as((3, count)).unwrap();
            let (info, payload) = to_payload("x", &repeated).unwrap();
            assert_eq!(info.shape(), [3, count]);
            assert_eq!(payload.as_ref(), bytes.repeat(3), "{dtype}");
        }
    }

    #[test]
    fn two_tensors_of_one_name_make_no_message() {
        let tensor = Tensor::new(&[1_u8], &CPU).unwrap();
        let error = to_parts(
            [("x", &tensor), ("x", &tensor)],
            &crate::message::NO_SCALARS,
        );
        let duplicate = EncodeError::DuplicateField { index: 1 };
        assert!(matches!(error, Err(CandleError::Encode(found)) if found == duplicate));
    }

    #[test]
    fn what_candle_has_alone_is_refused() {
        let dtype = candle_core::DType::F8E8M0;
        let tensor = Tensor::from_raw_buffer(&[1, 2], dtype, &[2], &CPU).unwrap();
        let error = to_payload("x", &tensor).unwrap_err();
        assert!(matches!(error, CandleError::NoWireDType(found) if found == dtype));
        assert_eq!(error.to_string(), "candle's f8e8m0 cannot be sent");
    }
}
