//! `.npz`: an archive of numpy's arrays, a member `NAME.npy` for each.
//!
//! What numpy has no place for stands in members of its own, as JSON text: in Python,
//! `json.loads(archive["tensorwire.scalar_fields"].item())`.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use tensorwire::json::Value;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::content::{Content, Place, Tensor, fault, flat_names, shown, unflatten};
use super::npy::{self, Elements};
use super::source::{Bytes, Sink, Stop};
use super::target::Target;
use crate::exit::Failure;
use crate::json;

/// The array with the scalars: a JSON object.
const SCALARS: &str = "tensorwire.scalar_fields";

/// The array with the names of the lists: a JSON array.
const LISTS: &str = "tensorwire.lists";

/// What makes a member an array.
const SUFFIX: &str = ".npy";

/// The longest name that a member can have: it is to fit into 65535 bytes with all that an archive
/// says of the member besides, which is less than a hundred.
const NAME_LIMIT: usize = 65_400;

/// The longest JSON text that is read.
const TEXT_LIMIT: usize = 64 << 20;

/// The tensors and scalars of an archive, in its order.
///
/// # Errors
///
/// [`Failure::Malformed`]; [`Failure::Could`] for members that are no tensors.
pub(super) fn read<R: Read + Seek>(reader: R) -> Result<(Content, ZipArchive<R>), Failure> {
    let mut archive = ZipArchive::new(reader).map_err(failure)?;
    if archive.has_duplicate_names() {
        return Err(fault(
            "DuplicateName",
            0,
            "npz: two members of the archive have one name".to_owned(),
        ));
    }
    // Members that share their bytes make much of little.
    if archive.has_overlapping_files().map_err(failure)? {
        return Err(fault(
            "Overlap",
            0,
            "npz: members of the archive share bytes".to_owned(),
        ));
    }
    let (mut tensors, mut scalars, mut lists) = (Vec::new(), None, None);
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(failure)?;
        let total = member.size();
        let name = member.name().map_err(failure)?.into_owned();
        let name = array_name(&name, member.compression())?;
        let header = npy::read(&mut member, &format!("array {}", shown(name)))?;
        let skip = header.length;
        match name {
            LISTS => lists = Some(text(&mut member, &header, name)?),
            SCALARS => scalars = Some(text(&mut member, &header, name)?),
            _ => tensors.push(header.tensor(name, total, Place::Member { index, skip })?),
        }
    }
    let lists = lists.as_deref().map(names).transpose()?.unwrap_or_default();
    unflatten(&mut tensors, &lists)?;
    let text = scalars.unwrap_or_else(|| "{}".to_owned());
    let scalars = Value::parse(text.as_bytes())
        .ok()
        .and_then(|value| value.as_object().ok());
    let scalars = scalars.ok_or_else(|| bad_text(SCALARS))?;
    Ok((Content::new(tensors, scalars), archive))
}

/// What the array in a member of this name is called, if it is one that is read.
fn array_name(member: &str, compression: CompressionMethod) -> Result<&str, Failure> {
    let Some(name) = member.strip_suffix(SUFFIX) else {
        return Err(Failure::Could(format!(
            "member {} is no array, as its name does not end in {SUFFIX}; leave it out",
            shown(member)
        )));
    };
    if name.contains('\0') {
        // numpy would read the name as it is up to there.
        let text = format!("npz: the name of array {} holds a NUL", shown(name));
        return Err(fault("InvalidName", 0, text));
    }
    if !matches!(
        compression,
        CompressionMethod::Stored | CompressionMethod::Deflated
    ) {
        return Err(Failure::Could(format!(
            "array {} is compressed by {compression}, which is not read; in Python: numpy.savez_compressed",
            shown(name)
        )));
    }
    Ok(name)
}

/// The text of a member that holds one.
fn text(member: &mut dyn Read, header: &npy::Header, name: &str) -> Result<String, Failure> {
    let (Elements::Text(length @ ..=TEXT_LIMIT), []) = (header.elements, &*header.shape) else {
        return Err(bad_text(name));
    };
    let mut text = Vec::new();
    // One more, and so as far as the checksum.
    let read = member.take(length as u64 + 1).read_to_end(&mut text);
    let whole = read.is_ok_and(|read| read == length);
    whole
        .then_some(text)
        .and_then(|text| String::from_utf8(text).ok())
        .ok_or_else(|| bad_text(name))
}

fn bad_text(name: &str) -> Failure {
    fault(
        "BadEntry",
        0,
        format!("npz: array {name} does not hold the JSON that it has to"),
    )
}

fn names(text: &str) -> Result<BTreeSet<String>, Failure> {
    let array = Value::parse(text.as_bytes())
        .ok()
        .and_then(|value| value.as_array().ok());
    let name = |value: Value<'_>| {
        value
            .as_str()
            .ok()?
            .to_cow()
            .ok()
            .map(|name| name.into_owned())
    };
    let names = array.and_then(|array| array.iter().map(name).collect());
    names.ok_or_else(|| bad_text(LISTS))
}

/// Writes the archive, its members stored as they are.
pub(super) fn write<R: Read + Seek>(
    content: &Content,
    bytes: &mut Bytes<R>,
    target: &mut Target,
) -> Result<(), Stop> {
    let (names, lists) = flat_names(&content.tensors)?;
    // Before anything is written.
    let mut headers = Vec::with_capacity(names.len());
    let known: BTreeSet<_> = names.iter().map(String::as_str).collect();
    for (tensor, name) in content.tensors.iter().zip(&names) {
        check_name(tensor, name, &known)?;
        headers.push(npy::of(tensor)?);
    }
    let mut archive = Archive {
        path: target.path().to_owned(),
        writer: ZipWriter::new(target),
    };
    let scalars = content.scalars();
    if !scalars.is_empty() {
        archive.put_text(SCALARS, scalars.as_value().raw())?;
    }
    if !lists.is_empty() {
        let lists: Vec<_> = lists.iter().map(|name| json::string(name)).collect();
        archive.put_text(LISTS, &format!("[{}]", lists.join(",")))?;
    }
    for ((tensor, name), header) in content.tensors.iter().zip(&names).zip(headers) {
        archive.start(name, header.len() as u64 + tensor.byte_len() as u64)?;
        archive.put(&header)?;
        bytes.copy(tensor, &mut archive)?;
    }
    let Archive { path, writer } = archive;
    let finished = writer.finish();
    finished.map_err(|error| writing(&path, error))?;
    Ok(())
}

fn check_name(tensor: &Tensor, name: &str, known: &BTreeSet<&str>) -> Result<(), Failure> {
    // numpy finds an array by the name of its member as well.
    let member = name.strip_suffix(SUFFIX);
    let why = if member.is_some_and(|name| known.contains(name) || name == SCALARS || name == LISTS)
    {
        "has a name under which numpy finds another array; rename it, or convert to .safetensors"
    } else if name == SCALARS || name == LISTS {
        "has a name that the archive keeps something else under; rename it first"
    } else if name.contains('\0') {
        "has a NUL in its name, at which numpy's ends; rename it, or convert to .safetensors"
    } else if name.len() > NAME_LIMIT - SUFFIX.len() {
        "has a name that is too long for an archive; rename it, or convert to .safetensors"
    } else {
        return Ok(());
    };
    Err(Failure::Could(format!("{tensor} {why}")))
}

/// An archive that is written, and its last member.
struct Archive<'t> {
    path: PathBuf,
    writer: ZipWriter<&'t mut Target>,
}

impl Archive<'_> {
    fn start(&mut self, name: &str, length: u64) -> Result<(), Stop> {
        // As numpy does, with no time of day, so that the same message makes the same file.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(length >= u64::from(u32::MAX));
        let started = self.writer.start_file(format!("{name}{SUFFIX}"), options);
        started.map_err(|error| writing(&self.path, error).into())
    }

    fn put_text(&mut self, name: &str, text: &str) -> Result<(), Stop> {
        let header = npy::header(&format!("|S{}", text.len()), &[]);
        self.start(name, header.len() as u64 + text.len() as u64)?;
        self.put(&header)?;
        self.put(text.as_bytes())
    }
}

impl Sink for Archive<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let written = self.writer.write_all(bytes);
        written.map_err(|error| Failure::file("write", &self.path, &error).into())
    }
}

fn writing(path: &Path, error: ZipError) -> Failure {
    Failure::file("write", path, &error.into())
}

/// What is wrong with an archive.
pub(super) fn failure(error: ZipError) -> Failure {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            super::source::reading(error)
        }
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Failure::Could(
            "npz: the archive is encrypted, which is not read; decrypt it first".to_owned(),
        ),
        error => fault("Archive", 0, format!("npz: {error}")),
    }
}
