//! Bundles, piece by piece.

use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use tensorwire::bundle::{
    ALIGNMENT, ENTRY_LEN, Error, ErrorKind, HEADER_LEN, Index, MAGIC, VERSION, encoded_len,
};
use tensorwire::error::DecodeErrorKind;
use tensorwire::message::{CONTROL_MARKER, MessageKind, classify, encode_to_vec};
use tensorwire::{Decoder, Limits};

use super::content::{Content, Place, Tensor};
use super::source::{Bytes, Sink, Stop, head, reading};
use crate::exit::{Failure, Fault};
use crate::message::NEITHER;

/// The tensors and scalars of a file of `total` bytes.
pub(super) fn read<R: Read + Seek>(reader: &mut R, total: u64) -> Result<Content, Failure> {
    let fault = |error: Error| Failure::Malformed(error.into());
    // No file that could be mapped is longer.
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    let start = head(reader, HEADER_LEN, total)?;
    let table = Index::len_from_header(&start, length).map_err(fault)?;
    // A sparse file has room for a table of any length, and costs nothing.
    let frames = table.saturating_sub(HEADER_LEN) / ENTRY_LEN;
    let limit = Limits::new().descriptors();
    if frames.saturating_sub(1) > limit {
        let kind = DecodeErrorKind::DescriptorLimit { limit };
        let text = format!("bundle of {frames} frames: {kind} at byte {FRAMES_OFFSET}");
        return Err(malformed(&kind, FRAMES_OFFSET, text));
    }
    let bytes = head(reader, table, total)?;
    let index = Index::decode(&bytes, length).map_err(fault)?;
    check_padding(reader, bytes.len(), index)?;
    let mut ranges = index.ranges();
    let metadata = frame(reader, &ranges.next().unwrap_or_default())?;
    if metadata == CONTROL_MARKER {
        return Err(Failure::Could(
            "the bundle is a control message, which has no tensors; tensorwire inspect shows it"
                .to_owned(),
        ));
    }
    let mut decoder = Decoder::new();
    let message = decoder.decode_metadata(&metadata).map_err(|error| {
        let fault = Fault::from(error);
        Failure::Malformed(match classify(&[&metadata]) {
            MessageKind::Other => fault.with_hint(NEITHER),
            _ => fault,
        })
    })?;
    let (expected, actual) = (message.len(), ranges.len());
    if actual != expected {
        // The library says it, and where; what is in the frames does not come to it.
        let payloads = vec![&b""[..]; actual];
        let kind = DecodeErrorKind::FrameCount { expected, actual };
        let attached = message.attach(&payloads).map(drop);
        return Err(attached.map_or_else(
            |error| Failure::Malformed(error.into()),
            |()| malformed(&kind, 0, kind.to_string()),
        ));
    }
    let mut tensors = Vec::with_capacity(message.len());
    for (descriptor, range) in message.descriptors().zip(ranges) {
        let tensor = Tensor::of(&descriptor, Place::At(range.start as u64));
        let (expected, actual) = (tensor.byte_len(), range.len());
        if actual != expected {
            let kind = DecodeErrorKind::FrameLength { expected, actual };
            let start = range.start;
            let text = format!("{tensor}: {kind} at byte {start} of the bundle");
            return Err(malformed(&kind, start, text));
        }
        tensors.push(tensor);
    }
    Ok(Content::new(tensors, message.scalars()))
}

/// Where the number of frames lies.
const FRAMES_OFFSET: usize = 12;

/// Looks at what lies between the frames.
fn check_padding<R: Read + Seek>(
    reader: &mut R,
    table: usize,
    index: Index<'_>,
) -> Result<(), Failure> {
    let mut end = table;
    for range in index.ranges() {
        let gap = frame(reader, &(end..range.start))?;
        if let Some((at, &found)) = (end..).zip(&gap).find(|&(_, &byte)| byte != 0) {
            let kind = ErrorKind::NonZeroPadding { found };
            return Err(malformed(&kind, at, format!("bundle: {kind} at byte {at}")));
        }
        end = range.end;
    }
    Ok(())
}

/// The bytes of a frame or of the padding before one, no more than metadata may have.
fn frame<R: Read + Seek>(reader: &mut R, range: &Range<usize>) -> Result<Vec<u8>, Failure> {
    let (limit, actual) = (Limits::new().metadata_bytes(), range.len());
    if actual > limit {
        // At byte 0 of it, as of metadata in memory.
        let kind = DecodeErrorKind::MetadataLimit { limit, actual };
        return Err(malformed(&kind, 0, format!("{kind} at byte 0")));
    }
    let mut bytes = Vec::new();
    reader
        .seek(SeekFrom::Start(range.start as u64))
        .map_err(reading)?;
    reader
        .take(range.len() as u64)
        .read_to_end(&mut bytes)
        .map_err(reading)?;
    Ok(bytes)
}

fn malformed(kind: &impl fmt::Debug, offset: usize, text: String) -> Failure {
    Failure::Malformed(Fault::new(kind, offset, text))
}

/// Frame 0 of the message, which a reader with the default limits takes.
///
/// # Errors
///
/// [`Failure::Could`], with the tensor that is too much.
pub(super) fn metadata(content: &Content) -> Result<Vec<u8>, Failure> {
    let refuse = |index: Option<usize>, text: String| {
        let tensor = index.and_then(|index| content.tensors.get(index));
        let name = tensor
            .map(|tensor| format!("{tensor}: "))
            .unwrap_or_default();
        Failure::Could(format!(
            "{name}no message can hold this: {text}; leave it out, or keep it as .safetensors or .npz"
        ))
    };
    // No two descriptors may be of one tensor, which takes long to find out of very many.
    let (count, limit) = (content.tensors.len(), Limits::new().descriptors());
    if count > limit {
        return Err(refuse(
            None,
            format!("{count} tensors where {limit} are allowed"),
        ));
    }
    let metadata = encode_to_vec(content.descriptors()?, &content.scalars());
    let metadata = metadata.map_err(|error| refuse(None, error.to_string()))?;
    let decoded = Decoder::new().decode_metadata(&metadata).map(drop);
    decoded.map_err(|error| refuse(error.descriptor(), error.kind().to_string()))?;
    Ok(metadata)
}

/// Writes the bundle.
pub(super) fn write<R: Read + Seek>(
    content: &Content,
    bytes: &mut Bytes<R>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let metadata = metadata(content)?;
    let sizes = content.tensors.iter().map(Tensor::byte_len);
    let lengths: Vec<_> = std::iter::once(metadata.len()).chain(sizes).collect();
    let (header, starts) = header(&lengths)?;
    let mut end = header.len();
    sink.put(&header)?;
    let mut starts = starts.into_iter();
    let mut pad = |sink: &mut dyn Sink, length: usize| {
        let start = starts.next().unwrap_or(end);
        let padding = [0; ALIGNMENT];
        let gap = padding.get(..start - end).unwrap_or_default();
        end = start + length;
        sink.put(gap)
    };
    pad(sink, metadata.len())?;
    sink.put(&metadata)?;
    for tensor in &content.tensors {
        pad(sink, tensor.byte_len())?;
        bytes.copy(tensor, sink)?;
    }
    Ok(())
}

/// Header and table, and where each frame starts.
fn header(lengths: &[usize]) -> Result<(Vec<u8>, Vec<usize>), Failure> {
    // Whether it fits is what this finds out: no sum below is more.
    let total = encoded_len(lengths.iter().copied());
    let total = total.map_err(|error| Failure::Could(error.to_string()))?;
    let frames = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend(frames.to_le_bytes());
    header.extend((total as u64).to_le_bytes());
    let mut starts = Vec::with_capacity(lengths.len());
    let mut end = HEADER_LEN + lengths.len() * ENTRY_LEN;
    for &length in lengths {
        let start = end.next_multiple_of(ALIGNMENT);
        header.extend((start as u64).to_le_bytes());
        header.extend((length as u64).to_le_bytes());
        starts.push(start);
        end = start + length;
    }
    // The library has the last word on what it reads.
    let checked = Index::decode(&header, total).map(drop);
    checked.map_err(|error| Failure::Malformed(Fault::from(error)))?;
    Ok((header, starts))
}
