//! Bundles, piece by piece.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use tensorwire::bundle::{
    ALIGNMENT, Error, ErrorKind, HEADER_LEN, Index, MAGIC, VERSION, encoded_len,
};
use tensorwire::message::{CONTROL_MARKER, MessageKind, classify, encode_to_vec};
use tensorwire::{Decoder, Limits};

use super::content::{Content, Place, Tensor, fault};
use super::source::{Bytes, Sink, Stop, head, reading};
use crate::exit::{Failure, Fault};
use crate::message::NEITHER;

/// The tensors and scalars of a file of `total` bytes.
pub(super) fn read<R: Read + Seek>(reader: &mut R, total: u64) -> Result<Content, Failure> {
    let malformed = |error: Error| Failure::Malformed(error.into());
    // No file that could be mapped is longer.
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    let start = head(reader, HEADER_LEN, total)?;
    let table = Index::len_from_header(&start, length).map_err(malformed)?;
    let bytes = head(reader, table, total)?;
    let index = Index::decode(&bytes, length).map_err(malformed)?;
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
    if message.len() != ranges.len() {
        // The library says it; what is in the frames does not come to it.
        let payloads = vec![&b""[..]; ranges.len()];
        let attached = message.attach(&payloads).map(drop);
        return Err(attached.map_or_else(
            |error| Failure::Malformed(error.into()),
            |()| fault("FrameCount", 0, "another number of frames".to_owned()),
        ));
    }
    let mut tensors = Vec::with_capacity(message.len());
    for (descriptor, range) in message.descriptors().zip(ranges) {
        let tensor = Tensor::of(&descriptor, Place::At(range.start as u64));
        let (expected, actual) = (tensor.byte_len(), range.len());
        if actual != expected {
            let start = range.start;
            let text = format!(
                "{tensor}: frame of {actual} bytes where the shape says {expected} at byte {start} of the bundle"
            );
            return Err(fault("FrameLength", start as u64, text));
        }
        tensors.push(tensor);
    }
    Ok(Content::new(tensors, message.scalars()))
}

/// Looks at what lies between the frames.
fn check_padding<R: Read + Seek>(
    reader: &mut R,
    table: usize,
    index: Index<'_>,
) -> Result<(), Failure> {
    let mut end = table;
    for range in index.ranges() {
        let gap = frame(reader, &(end..range.start))?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let found = gap.get(at).copied().unwrap_or_default();
            let kind = ErrorKind::NonZeroPadding { found };
            let text = format!("bundle: {kind} at byte {}", end + at);
            return Err(fault("NonZeroPadding", (end + at) as u64, text));
        }
        end = range.end;
    }
    Ok(())
}

fn frame<R: Read + Seek>(reader: &mut R, range: &Range<usize>) -> Result<Vec<u8>, Failure> {
    let limit = Limits::new().metadata_bytes();
    if range.len() > limit {
        // As the library says it of metadata in memory.
        let length = range.len();
        let text = format!("metadata of {length} bytes where {limit} are allowed at byte 0");
        return Err(fault("MetadataLimit", 0, text));
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
    let mut end = HEADER_LEN + lengths.len() * tensorwire::bundle::ENTRY_LEN;
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
