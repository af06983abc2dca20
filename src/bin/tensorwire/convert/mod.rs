//! `convert`: tensors from one kind of file to another.
//!
//! ```text
//!  bundle, .safetensors, .npy, .npz --- source ---> content: names, dtypes, shapes, places; scalars
//!                                          \            |
//!                                           \           v
//!                                  bytes, 1 MiB at a time ---> target: bundle, .safetensors, .npz
//! ```
//!
//! No tensor is ever in memory as a whole. The target has another name until it is whole.

mod bundle;
mod content;
mod npy;
mod npz;
mod progress;
mod safetensors;
mod source;
mod target;

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::Path;

use crate::args::{ConvertArguments, Format};
use crate::exit::{Done, Failure};
use crate::frames::{Loaded, is_bundle};
use crate::output::note;
use crate::{safe_text, signal, table};
use content::Place;
use progress::Progress;
use source::{Bytes, Sink, Source, Stop};
use target::Target;

pub(crate) fn run(arguments: &ConvertArguments) -> Result<Done, Failure> {
    let (input, output) = (&arguments.input, &arguments.output);
    let to = arguments.to.or_else(|| by_name(output));
    let to = to.ok_or_else(|| {
        Failure::Usage(format!(
            "{} ends in none of .bundle, .safetensors and .npz; say what it is to be with --to",
            output.display()
        ))
    })?;
    if to == Format::Npy {
        return Err(Failure::Usage(
            ".npy holds one array and no name, and is only read; write .npz instead".to_owned(),
        ));
    }
    let (file, start) = open(input)?;
    let from = arguments
        .from
        .or_else(|| by_name(input))
        .or_else(|| by_magic(&start));
    let from = from.ok_or_else(|| unknown(input, "; say what it is with --from"))?;
    signal::watch()?;
    let done = convert(file, from, &name_of(input), output, to);
    let output = safe_text::path(output);
    match done {
        Ok(text) => {
            note(&format!("wrote {text} to {output}"));
            Ok(Done::Whole)
        }
        Err(Stop::Failed(failure)) => Err(failure.of_file(input)),
        Err(Stop::Interrupted) => {
            note(&format!("interrupted: {output} is as it was"));
            Ok(Done::Interrupted)
        }
    }
}

/// Opens a file that can be read to and fro, and reads its first bytes.
fn open(path: &Path) -> Result<(File, Vec<u8>), Failure> {
    let reading = |error| Failure::file("read", path, &error);
    // Before it is opened: opening a pipe waits for whoever writes to it.
    let kind = fs::metadata(path).map_err(reading)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(Failure::Could(format!(
            "{} is a pipe or a device, and convert goes to and fro in what it reads; save it as a file first",
            path.display()
        )));
    }
    let mut file = File::open(path).map_err(reading)?;
    let mut start = Vec::new();
    let read = (&mut file).take(8).read_to_end(&mut start);
    read.map_err(reading)?;
    Ok((file, start))
}

/// Writes the file, and says what is in it.
fn convert(
    file: File,
    from: Format,
    name: &str,
    output: &Path,
    to: Format,
) -> Result<String, Stop> {
    let Source { content, mut bytes } = Source::open(file, from, name)?;
    let size = content.byte_len();
    let mut target = Target::create(output, Progress::new(size))?;
    match to {
        Format::Bundle => bundle::write(&content, &mut bytes, &mut target)?,
        Format::Safetensors => safetensors::write(&content, &mut bytes, &mut target)?,
        Format::Npy | Format::Npz => npz::write(&content, &mut bytes, &mut target)?,
    }
    if signal::interrupted() {
        return Err(Stop::Interrupted);
    }
    target.finish()?;
    let count = table::count(content.tensors.len() as u64, "tensor");
    let size = table::bytes(usize::try_from(size).unwrap_or(usize::MAX));
    Ok(format!("{count}, {size}"))
}

/// The message that the tensors of a file make, for `send`: `bytes` are the file.
///
/// The tensors stay where they lie in it, but for members of archives, which may be deflated.
///
/// # Errors
///
/// [`Failure::Usage`] for a file of no kind that is known, by its name and its bytes; what is
/// wrong with it; and what no message can hold.
pub(crate) fn message_of(path: &Path, bytes: Vec<u8>) -> Result<Loaded, Failure> {
    let format = by_name(path)
        .or_else(|| by_magic(&bytes))
        .ok_or_else(|| unknown(path, ""))?;
    let source = Source::open(Cursor::new(bytes), format, &name_of(path))?;
    let metadata = bundle::metadata(&source.content)?;
    let mut places = vec![(0, 0..metadata.len())];
    let mut buffers = vec![metadata];
    let tensors = &source.content.tensors;
    match source.bytes {
        Bytes::File(file) => {
            for tensor in tensors {
                let Place::At(start) = tensor.place else {
                    continue;
                };
                // Within the file, which is in memory.
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                places.push((1, start..start.saturating_add(tensor.byte_len())));
            }
            buffers.push(file.into_inner());
        }
        mut archive @ Bytes::Archive(_) => {
            for tensor in tensors {
                let mut member = Member(Vec::new());
                match archive.copy(tensor, &mut member) {
                    Ok(()) => {}
                    Err(Stop::Failed(failure)) => return Err(failure),
                    Err(Stop::Interrupted) => return Err(Failure::Could("interrupted".to_owned())),
                }
                places.push((buffers.len(), 0..member.0.len()));
                buffers.push(member.0);
            }
        }
    }
    Ok(Loaded::from_places(buffers, places))
}

/// A tensor out of an archive: grows as its bytes come, whatever it said.
struct Member(Vec<u8>);

impl Sink for Member {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// What a file is that can be read again, by its bytes and its name.
pub(crate) fn format_of(path: &Path) -> Option<Format> {
    let (_, start) = open(path).ok()?;
    by_magic(&start).or_else(|| by_name(path))
}

/// What the name of a file says it is.
fn by_name(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "bundle" => Some(Format::Bundle),
        "npy" => Some(Format::Npy),
        "npz" => Some(Format::Npz),
        "safetensors" => Some(Format::Safetensors),
        _ => None,
    }
}

/// What the first bytes of a file say it is; those of .safetensors say nothing.
fn by_magic(bytes: &[u8]) -> Option<Format> {
    if is_bundle(bytes) {
        Some(Format::Bundle)
    } else if bytes.starts_with(npy::MAGIC) {
        Some(Format::Npy)
    } else if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        // An archive of no members is its end alone.
        Some(Format::Npz)
    } else {
        None
    }
}

/// What the tensor is called of a file that has no name for it.
fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn unknown(path: &Path, next: &str) -> Failure {
    Failure::Usage(format!(
        "{} is neither a bundle nor a .safetensors, .npy or .npz file{next}",
        path.display()
    ))
}
