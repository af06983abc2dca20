//! Reading: what is in a file, and then the bytes of its tensors, piece by piece.

use std::io::{self, Read, Seek, SeekFrom};

use zip::ZipArchive;

use super::content::{Content, Place, Tensor, fault};
use super::{bundle, npy, npz, safetensors};
use crate::args::Format;
use crate::exit::Failure;
use crate::signal;

/// Why a conversion ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(Failure),
    /// By Ctrl-C.
    Interrupted,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What takes bytes.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop>;
}

/// A file that is read: what is in it, and the way to the tensors' bytes.
pub(super) struct Source<R> {
    pub(super) content: Content,
    pub(super) bytes: Bytes<R>,
}

/// The way to the tensors' bytes.
pub(super) enum Bytes<R> {
    Archive(Box<ZipArchive<R>>),
    File(R),
}

impl<R: Read + Seek> Source<R> {
    /// Reads what is in a file, but for the tensors' bytes.
    ///
    /// `name` is the tensor's where the format has no names.
    ///
    /// # Errors
    ///
    /// [`Failure::Malformed`], or [`Failure::Could`] for what no message can hold.
    pub(super) fn open(mut reader: R, format: Format, name: &str) -> Result<Self, Failure> {
        let total = reader.seek(SeekFrom::End(0)).map_err(reading)?;
        let content = match format {
            Format::Bundle => bundle::read(&mut reader, total)?,
            Format::Npy => npy::content(&mut reader, total, name)?,
            Format::Npz => {
                let (content, archive) = npz::read(reader)?;
                let bytes = Bytes::Archive(Box::new(archive));
                return Ok(Self { content, bytes });
            }
            Format::Safetensors => safetensors::read(&mut reader, total)?,
        };
        let bytes = Bytes::File(reader);
        Ok(Self { content, bytes })
    }
}

impl<R: Read + Seek> Bytes<R> {
    /// Hands the bytes of a tensor on, a piece at a time.
    ///
    /// # Errors
    ///
    /// A file that has become shorter meanwhile; a member that ends early, or does not match its
    /// checksum; and what `sink` says.
    pub(super) fn copy(&mut self, tensor: &Tensor, sink: &mut dyn Sink) -> Result<(), Stop> {
        match (self, tensor.place) {
            (Self::Archive(archive), Place::Member { index, skip }) => {
                let mut member = archive.by_index(index).map_err(npz::failure)?;
                let skipped = io::copy(&mut (&mut member).take(skip), &mut io::sink());
                skipped.map_err(|error| in_tensor(tensor, &error))?;
                pass(&mut member, tensor, sink)?;
                // The checksum is looked at when the end is.
                let mut rest = [0];
                match member.read(&mut rest) {
                    Ok(0) => Ok(()),
                    Ok(_) => Err(fault(
                        "TrailingBytes",
                        skip,
                        format!("{tensor}: bytes follow its array"),
                    )
                    .into()),
                    Err(error) => Err(in_tensor(tensor, &error).into()),
                }
            }
            (Self::File(file), Place::At(start)) => {
                file.seek(SeekFrom::Start(start)).map_err(reading)?;
                pass(file, tensor, sink)
            }
            _ => Err(Failure::Could(format!("{tensor} has no bytes")).into()),
        }
    }
}

/// Hands on as many bytes as the tensor has.
fn pass(reader: &mut dyn Read, tensor: &Tensor, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut piece = vec![0; tensor.byte_len().min(PIECE)];
    let mut left = tensor.byte_len();
    while left > 0 {
        if signal::interrupted() {
            return Err(Stop::Interrupted);
        }
        let length = left.min(PIECE);
        let piece = piece.get_mut(..length).unwrap_or_default();
        let read = reader.read_exact(piece);
        read.map_err(|error| in_tensor(tensor, &error))?;
        sink.put(piece)?;
        left -= length;
    }
    Ok(())
}

/// How much is in memory at a time.
const PIECE: usize = 1 << 20;

/// The first `length` bytes of a file of `total`, or all of it.
pub(super) fn head<R: Read + Seek>(
    reader: &mut R,
    length: usize,
    total: u64,
) -> Result<Vec<u8>, Failure> {
    let length = total.min(length as u64);
    let mut bytes = Vec::new();
    reader.seek(SeekFrom::Start(0)).map_err(reading)?;
    reader
        .take(length)
        .read_to_end(&mut bytes)
        .map_err(reading)?;
    Ok(bytes)
}

pub(super) fn reading(error: io::Error) -> Failure {
    Failure::Could(format!("cannot read: {error}"))
}

/// What is wrong with the bytes of a tensor.
fn in_tensor(tensor: &Tensor, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => fault(
            "Bytes",
            0,
            format!("{tensor}: its bytes are damaged: {error}"),
        ),
        _ => Failure::Could(format!("cannot read {tensor}: {error}")),
    }
}
