//! Looking at what was received: decoded in place, and compared with what it must be.

use serde::{Deserialize, Serialize};
use tensorwire::dtype::DType;
use tensorwire::error::{CastError, DecodeError};
use tensorwire::tensor::Element;
use tensorwire::transport::{Frames, zmq};
use tensorwire::{Decoder, Message, TensorView};

use half::bf16;

use crate::formula;
use crate::measure::{self, Timing};
use crate::plan::{self, Size};

/// What was received, and the room to look at it: all of it is used again for the next message.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) message: zmq::Message,
    decoder: Decoder,
    scratch: Scratch,
}

/// What one received message cost, and whether it was as it should be.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Receipt {
    pub(crate) index: u64,
    pub(crate) bytes: usize,
    pub(crate) tensors: usize,
    /// Tensors at addresses where their elements cannot be seen in place.
    pub(crate) misaligned: usize,
    /// What was copied for that, in bytes.
    pub(crate) realigned_bytes: usize,
    pub(crate) timing: Timing,
    /// How it differed from what it should be.
    pub(crate) fault: Option<String>,
}

impl Inbox {
    /// Decodes what was received, timed, and gives it with the room to compare it.
    pub(crate) fn decode(&mut self) -> Result<Opened<'_>, DecodeError> {
        let (message, timing) = measure::decode(&mut self.decoder, self.message.frames())?;
        Ok(Opened {
            message,
            timing,
            bytes: self.message.byte_count(),
            scratch: &mut self.scratch,
        })
    }
}

/// A message that was decoded.
pub(crate) struct Opened<'a> {
    pub(crate) message: Message<'a, 'a, zmq::Frame>,
    timing: Timing,
    bytes: usize,
    scratch: &'a mut Scratch,
}

impl Opened<'_> {
    /// Compares all that is in it with what the plan says.
    pub(crate) fn compare(self, expected: plan::Message, size: Size, index: u64) -> Receipt {
        let mut receipt = Receipt {
            index,
            bytes: self.bytes,
            tensors: self.message.len(),
            misaligned: self.message.cost().misaligned(),
            realigned_bytes: 0,
            timing: self.timing,
            fault: None,
        };
        if self.message.len() != expected.tensors().len() {
            receipt.fault = Some(format!("{} tensors", self.message.len()));
            return receipt;
        }
        for tensor in expected.tensors() {
            let view = match tensor.list_index {
                None => self.message.tensor(tensor.name),
                Some(index) => self
                    .message
                    .list(tensor.name)
                    .and_then(|list| list.get(usize::try_from(index).unwrap_or(usize::MAX))),
            };
            let compared = match view {
                None => Err("absent".to_owned()),
                Some(view) => {
                    if !view.is_aligned() {
                        receipt.realigned_bytes += view.bytes().len();
                    }
                    same(&view, tensor, size, index, self.scratch)
                }
            };
            if let Err(how) = compared {
                receipt.fault = Some(format!("{}: {how}", tensor.name));
                return receipt;
            }
        }
        receipt
    }
}

/// Whether the tensor is the planned one, and how it differs if not.
fn same(
    view: &TensorView<'_>,
    tensor: &plan::Tensor,
    size: Size,
    index: u64,
    scratch: &mut Scratch,
) -> Result<(), String> {
    if view.dtype() != tensor.dtype {
        return Err(format!("{}, not {}", view.dtype(), tensor.dtype));
    }
    if !view.dims().eq(tensor.shape(size).iter().copied()) {
        return Err("another shape".to_owned());
    }
    let numbers = scratch.numbers(view).map_err(|error| error.to_string())?;
    match formula::first_difference(numbers, tensor.start(index)) {
        None => Ok(()),
        Some((at, expected)) => Err(format!("byte {at} is not {expected:#04x}")),
    }
}

/// Room for the elements of tensors that came misaligned.
#[derive(Default)]
struct Scratch {
    halves: Vec<bf16>,
    floats: Vec<f32>,
}

impl Scratch {
    /// The bytes of the elements as a stage would compute with them: as numbers,
    /// in place where they are aligned, else copied.
    fn numbers<'a>(&'a mut self, view: &TensorView<'a>) -> Result<&'a [u8], CastError> {
        match view.dtype() {
            DType::BFloat16 => aligned(view, &mut self.halves).map(bytemuck::cast_slice),
            DType::Float32 => aligned(view, &mut self.floats).map(bytemuck::cast_slice),
            _ => Ok(view.bytes()),
        }
    }
}

fn aligned<'a, T: Element + Default>(
    view: &TensorView<'a>,
    scratch: &'a mut Vec<T>,
) -> Result<&'a [T], CastError> {
    if !view.is_aligned() && scratch.len() < view.element_count() {
        scratch.resize(view.element_count(), T::default());
    }
    view.as_slice_or_copy(scratch)
}
