//! `reencode`: a message decoded, and written again.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process;

use tensorwire::Decoder;
use tensorwire::message::{CONTROL_MARKER, encode_to_vec};

use crate::args::ReencodeArguments;
use crate::exit::{Done, Failure};
use crate::frames;
use crate::inspect;
use crate::message::Seen;
use crate::output::note;
use crate::record;
use crate::safe_text;
use crate::signal;

pub(crate) fn run(arguments: &ReencodeArguments) -> Result<Done, Failure> {
    let done = reencode(arguments);
    done.map_err(|failure| inspect::explained(failure, &arguments.input))
}

fn reencode(arguments: &ReencodeArguments) -> Result<Done, Failure> {
    let loaded = frames::load(&arguments.input)?;
    let frames = loaded.frames();
    let mut decoder = Decoder::new();
    let seen = Seen::look(&frames, &mut decoder).map_err(Failure::Malformed)?;
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
    write(&arguments.out, &again)
}

/// Writes the frames into the folder, which holds no others afterwards.
///
/// None of them has its name before all are on the disk.
fn write(folder: &Path, frames: &[&[u8]]) -> Result<Done, Failure> {
    signal::watch()?;
    record::make_folder(folder)?;
    // As wide as the last, so that the names come in order where they are listed.
    let width = frames.len().saturating_sub(1).to_string().len().max(3);
    let names = (0..frames.len()).map(|index| format!("frame{index:0width$}.bin"));
    let names: Vec<_> = names.collect();
    if let Some(left) = left_of_another(folder, &names)? {
        return Err(Failure::Could(format!(
            "{} is of another message: remove it, or give another --out",
            left.display()
        )));
    }
    let mut drafts = Drafts(Vec::new());
    for (name, frame) in names.iter().zip(frames) {
        if signal::interrupted() {
            let folder = safe_text::path(folder);
            note(&format!("interrupted: {folder} is as it was"));
            return Ok(Done::Interrupted);
        }
        let path = folder.join(name);
        let draft = folder.join(format!(".tensorwire-{}-{name}.part", process::id()));
        let writing = |error| Failure::file("write", &path, &error);
        let mut file = File::create_new(&draft).map_err(writing)?;
        drafts.0.push(draft);
        file.write_all(frame).map_err(writing)?;
    }
    for (draft, name) in drafts.0.iter().zip(&names) {
        let path = folder.join(name);
        fs::rename(draft, &path).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(Done::Whole)
}

/// The first frame in the folder that is none of these.
fn left_of_another(folder: &Path, names: &[String]) -> Result<Option<PathBuf>, Failure> {
    let reading = |error| Failure::file("read", folder, &error);
    let mut left = None;
    for entry in fs::read_dir(folder).map_err(reading)? {
        let name = entry.map_err(reading)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let digits = name
            .strip_prefix("frame")
            .and_then(|rest| rest.strip_suffix(".bin"));
        let is_frame = digits.is_some_and(|digits| {
            digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        // They are in order.
        if is_frame
            && names
                .binary_search_by(|known| known.as_str().cmp(name))
                .is_err()
        {
            left = left.into_iter().chain([name.to_owned()]).min();
        }
    }
    Ok(left.map(|name| folder.join(name)))
}

/// Files that have not got their names yet; what has none in the end is removed.
struct Drafts(Vec<PathBuf>);

impl Drop for Drafts {
    fn drop(&mut self) {
        for draft in &self.0 {
            // It has another name if all went well.
            let _ = fs::remove_file(draft);
        }
    }
}
