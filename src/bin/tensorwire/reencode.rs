//! `reencode`: a message decoded, and written again.

use std::fs;
use std::path::Path;

use tensorwire::Decoder;
use tensorwire::message::{CONTROL_MARKER, encode_to_vec};

use crate::args::ReencodeArguments;
use crate::exit::{Done, Failure};
use crate::frames;
use crate::inspect;
use crate::message::Seen;
use crate::record;

pub(crate) fn run(arguments: &ReencodeArguments) -> Result<Done, Failure> {
    let loaded = frames::load(&arguments.input)?;
    let frames = loaded.frames();
    let mut decoder = Decoder::new();
    let seen = Seen::look(&frames, &mut decoder);
    let seen = seen.map_err(|fault| Failure::Malformed(inspect::explained(fault, &frames)))?;
    let (first, second);
    let mut again: Vec<&[u8]> = Vec::new();
    match &seen {
        Seen::Tensors { tensors, scalars } => {
            let encoded = encode_to_vec(tensors, scalars);
            first = encoded.map_err(|error| Failure::Could(format!("cannot encode: {error}")))?;
            again.push(&first);
            again.extend(tensors.iter().map(tensorwire::TensorView::bytes));
        }
        Seen::Transfer { control, .. } => {
            second = control.to_vec();
            again.extend([CONTROL_MARKER, &second]);
        }
    }
    write(&arguments.out, &again)?;
    Ok(Done::Whole)
}

/// Writes the frames into the folder, which holds no others afterwards.
fn write(folder: &Path, frames: &[&[u8]]) -> Result<(), Failure> {
    let path = |index: usize| folder.join(format!("frame{index:03}.bin"));
    record::make_folder(folder)?;
    let left = path(frames.len());
    if left.exists() {
        return Err(Failure::Could(format!(
            "{} is of another message: remove it, or give another --out",
            left.display()
        )));
    }
    for (index, frame) in frames.iter().enumerate() {
        let path = path(index);
        fs::write(&path, frame).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(())
}
