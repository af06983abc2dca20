//! Writes a manifest, byte for byte as Python's writer does.

use core::iter::Enumerate;
use core::ops::Range;

use super::entry::Entry;
use crate::error::EncodeError;
use crate::json::writer::{self, Writer};
use crate::message::encode::put_shape_and_dtype;
use crate::message::unique;
use crate::tensor::Descriptor;

/// Returns the length in bytes of the manifest of these entries.
///
/// # Errors
///
/// As [`encode_into`], but for [`EncodeError::BufferTooSmall`].
pub fn encoded_len<'t, T>(entries: T) -> Result<usize, EncodeError>
where
    T: IntoIterator<Item: AsRef<Entry<'t>>, IntoIter: Clone>,
{
    let entries = entries.into_iter().map(|entry| *entry.as_ref());
    check(entries.clone())?;
    Ok(writer::length(|writer| put_manifest(writer, entries)))
}

/// Writes the manifest of these entries to the start of `buffer`, and gives that part of it.
///
/// For tensors whose places are given: of a manifest that was received, or of
/// payloads that were put into the slot by other means. A
/// [`Plan`](super::Plan) finds places itself.
///
/// Entries whose offsets ascend are checked in one pass; one that starts
/// before an earlier one ends is compared with all before it.
///
/// # Errors
///
/// As [`Plan::new`](super::Plan::new) and
/// [`Plan::encode_into`](super::Plan::encode_into), and
/// [`EncodeError::Overlap`] for two tensors that share bytes.
///
/// # Examples
///
/// ```
/// use tensorwire::transfer::manifest::{Entry, encode_into};
/// use tensorwire::{DType, Descriptor};
///
/// let member = Descriptor::new("skip", DType::Bool, &[3])?.with_list_index(2);
/// let mut buffer = [0; 128];
/// assert_eq!(
///     encode_into([Entry::new(member, 4096)?], &mut buffer)?,
///     br#"{"skip":[{"offset":4096,"shape":[3],"dtype":"bool","list_index":2}]}"#,
/// );
/// # Ok::<(), tensorwire::error::EncodeError>(())
/// ```
pub fn encode_into<'b, 't, T>(entries: T, buffer: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError>
where
    T: IntoIterator<Item: AsRef<Entry<'t>>, IntoIter: Clone>,
{
    let entries = entries.into_iter().map(|entry| *entry.as_ref());
    check(entries.clone())?;
    writer::write(buffer, |writer| put_manifest(writer, entries))
}

/// Writes the manifest of entries that have been checked.
pub(super) fn put_manifest<'t>(writer: &mut Writer<'_>, entries: impl Iterator<Item = Entry<'t>>) {
    writer.put_raw(b"{");
    let mut previous: Option<Descriptor<'t>> = None;
    for entry in entries {
        let descriptor = entry.descriptor();
        match previous {
            Some(previous) if previous.name() == descriptor.name() => writer.put_raw(b","),
            other => {
                writer.put_raw(if other.is_some() { b"]," } else { b"" });
                writer.put_str(descriptor.name());
                writer.put_raw(b":[");
            }
        }
        put_entry(writer, &entry);
        previous = Some(descriptor);
    }
    writer.put_raw(if previous.is_some() { b"]}" } else { b"}" });
}

fn put_entry(writer: &mut Writer<'_>, entry: &Entry<'_>) {
    let descriptor = entry.descriptor();
    writer.put_raw(br#"{"offset":"#);
    writer.put_usize(entry.offset());
    writer.put_raw(b",");
    put_shape_and_dtype(writer, &descriptor);
    if let Some(index) = descriptor.list_index() {
        writer.put_raw(br#","list_index":"#);
        writer.put_u64(index.into());
    }
    writer.put_raw(b"}");
}

fn check<'t>(entries: impl Iterator<Item = Entry<'t>> + Clone) -> Result<(), EncodeError> {
    check_names(entries.clone())?;
    let mut end = 0;
    for (index, entry) in entries.clone().enumerate() {
        let range = entry.range();
        if range.is_empty() {
            continue;
        }
        if range.start < end {
            let mut before = entries.clone().take(index).map(|other| other.range());
            let shares = |other: Range<usize>| {
                !other.is_empty() && other.start < range.end && range.start < other.end
            };
            if let Some(other) = before.position(shares) {
                return Err(EncodeError::Overlap { index, other });
            }
        }
        end = end.max(range.end);
    }
    Ok(())
}

/// Refuses tensors that no reader could tell apart, or whose manifest is not one of Python's.
pub(super) fn check_names<'t, T>(tensors: T) -> Result<(), EncodeError>
where
    T: Iterator<Item: AsRef<Descriptor<'t>>> + Clone,
{
    unique::check(tensors.clone())?;
    for (index, tensor) in tensors.clone().enumerate() {
        if tensor.as_ref().name().decoded_len().is_err() {
            return Err(EncodeError::InvalidName { index });
        }
    }
    let runs = Runs {
        tensors: tensors.enumerate(),
        previous: None,
    };
    unique::check(runs.clone()).map_err(|error| match error {
        EncodeError::DuplicateField { index } => EncodeError::ScatteredList {
            index: runs.clone().nth(index).map_or(index, |run| run.index),
        },
        other => other,
    })
}

/// The first of all neighbours of one name, as if it were a plain tensor.
#[derive(Clone)]
struct Runs<'t, T> {
    tensors: Enumerate<T>,
    previous: Option<Descriptor<'t>>,
}

struct Run<'t> {
    index: usize,
    descriptor: Descriptor<'t>,
}

impl<'t, T: Iterator<Item: AsRef<Descriptor<'t>>>> Iterator for Runs<'t, T> {
    type Item = Run<'t>;

    fn next(&mut self) -> Option<Run<'t>> {
        for (index, tensor) in self.tensors.by_ref() {
            let descriptor = tensor.as_ref().without_list_index();
            let previous = self.previous.replace(descriptor);
            if previous.is_none_or(|previous| previous.name() != descriptor.name()) {
                return Some(Run { index, descriptor });
            }
        }
        None
    }
}

impl<'t> AsRef<Descriptor<'t>> for Run<'t> {
    fn as_ref(&self) -> &Descriptor<'t> {
        &self.descriptor
    }
}
