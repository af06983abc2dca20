//! `.safetensors`, piece by piece.

use std::io::{Read, Seek};

use tensorwire::interop::safetensors::{Entry, Error, Index, PREFIX_LEN, Plan, WriteError};

use super::content::{Content, Place, Tensor};
use super::source::{Bytes, Sink, Stop, head};
use crate::exit::{Failure, Fault};

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(
            &error.kind(),
            error.offset(),
            format!("safetensors: {error}"),
        )
    }
}

/// The tensors and scalars of a file of `total` bytes.
pub(super) fn read<R: Read + Seek>(reader: &mut R, total: u64) -> Result<Content, Failure> {
    let malformed = |error: Error| Failure::Malformed(error.into());
    let mut bytes = head(reader, PREFIX_LEN, total)?;
    let length = Index::len_from_prefix(&bytes, total).map_err(malformed)?;
    bytes = head(reader, length, total)?;
    let index = Index::decode(&bytes, total).map_err(malformed)?;
    let place = |entry: &Entry<'_>| Place::At(entry.range().start);
    let tensor = |entry| Tensor::of(&Entry::descriptor(entry), place(entry));
    let tensors = index.entries().iter().map(tensor).collect();
    Ok(Content::new(tensors, index.scalars()))
}

fn plan(content: &Content) -> Result<Plan, Failure> {
    let plan = Plan::new(content.descriptors()?, &content.scalars());
    plan.map_err(|error| refusal(error, &content.tensors))
}

fn refusal(error: WriteError, tensors: &[Tensor]) -> Failure {
    let tensor = error.tensor().and_then(|index| tensors.get(index));
    let Some(tensor) = tensor else {
        return Failure::Could(error.to_string());
    };
    Failure::Could(match error {
        WriteError::Clash { .. } => {
            format!(
                "{tensor} would have the name that a list or a member of one has; rename it first"
            )
        }
        WriteError::ReservedName { .. } => {
            format!("{tensor} has the name that the file keeps its texts under; rename it first")
        }
        WriteError::UnsupportedDType { dtype, .. } => {
            format!(
                "{tensor} is {dtype}, which .safetensors does not have; convert to .npz instead"
            )
        }
        error => format!("{tensor}: {error}"),
    })
}

/// Writes the file.
pub(super) fn write<R: Read + Seek>(
    content: &Content,
    bytes: &mut Bytes<R>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let plan = plan(content)?;
    sink.put(plan.header())?;
    for tensor in plan
        .order()
        .iter()
        .filter_map(|&index| content.tensors.get(index))
    {
        bytes.copy(tensor, sink)?;
    }
    Ok(())
}
