//! `convert`: tensors from one kind of file to another.

use std::path::Path;

use crate::args::ConvertArguments;
use crate::exit::{Done, Failure};
use crate::frames::Loaded;
use crate::output::Output;

pub(crate) fn run(arguments: &ConvertArguments, _: &mut Output) -> Result<Done, Failure> {
    Err(unknown(&arguments.input))
}

/// The message that the tensors of a file make, for `send`.
///
/// # Errors
///
/// [`Failure::Usage`] for a file of no kind that is known, by its name and its bytes.
pub(crate) fn message_of(path: &Path, _: Vec<u8>) -> Result<Loaded, Failure> {
    Err(unknown(path))
}

fn unknown(path: &Path) -> Failure {
    Failure::Usage(format!(
        "{} is neither a bundle nor a .safetensors, .npy or .npz file",
        path.display()
    ))
}
