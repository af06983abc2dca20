//! Writing a bundle: into the caller's buffer, into a vector, into a file.

use core::fmt;
use core::iter::FusedIterator;
use core::slice;

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "std")]
use std::io;

use zerocopy::FromBytes;
#[cfg(feature = "alloc")]
use zerocopy::IntoBytes;

#[cfg(feature = "alloc")]
use super::ALIGNMENT;
use super::{Entry, Error, ErrorKind, Header, MAGIC, VERSION, aligned, table_end};
use crate::convert::to_u64;

/// Returns how many bytes a bundle of frames of these lengths takes.
///
/// # Errors
///
/// [`NoFrames`](ErrorKind::NoFrames), [`TooLarge`](ErrorKind::TooLarge),
/// [`TooManyFrames`](ErrorKind::TooManyFrames).
///
/// # Examples
///
/// ```
/// assert_eq!(tensorwire::bundle::encoded_len([8, 7])?, 128 + 7);
/// # Ok::<(), tensorwire::bundle::Error>(())
/// ```
pub fn encoded_len<I>(lengths: I) -> Result<usize, Error>
where
    I: IntoIterator<Item = usize>,
{
    Ok(Measure::of(lengths)?.total_len)
}

/// Writes a bundle of `frames` to the start of `buffer`, and returns it.
///
/// Each byte of it is written, whatever was there before.
///
/// # Errors
///
/// As [`lend`]; then nothing was written.
///
/// # Examples
///
/// ```
/// use tensorwire::bundle::{Bundle, encode_into};
///
/// let mut buffer = [0xa5; 256];
/// let bytes = encode_into(&["metadata", "payload"], &mut buffer)?;
/// assert!(Bundle::decode(bytes)?.frames().eq(["metadata".as_bytes(), b"payload"]));
/// # Ok::<(), tensorwire::bundle::Error>(())
/// ```
pub fn encode_into<'b, F: AsRef<[u8]>>(
    frames: &[F],
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], Error> {
    let places = lend(frames.iter().map(|frame| frame.as_ref().len()), buffer)?;
    let total_len = places.total_len();
    for (place, frame) in places.zip(frames) {
        let frame = frame.as_ref();
        if frame.len() != place.len() {
            return Err(CHANGED);
        }
        place.copy_from_slice(frame);
    }
    buffer.get_mut(..total_len).ok_or(CHANGED)
}

/// Writes header, table and padding to the start of `buffer`, and lends out each frame's place.
///
/// The frames are then written where they will be sent from, in any order. A
/// place that is not filled keeps what `buffer` held there: fill each of them.
/// The bundle is the first [`Places::total_len`] bytes.
///
/// The lengths are asked for twice, by a clone of the iterator.
///
/// # Errors
///
/// As [`encoded_len`]; [`BufferTooSmall`](ErrorKind::BufferTooSmall). Then
/// nothing was written. [`LengthsChanged`](ErrorKind::LengthsChanged) if the clone
/// gives other lengths.
///
/// # Examples
///
/// ```
/// use tensorwire::bundle::{Bundle, lend};
///
/// let mut buffer = [0; 256];
/// for (place, value) in lend([3, 0, 2], &mut buffer)?.zip(1..) {
///     place.fill(value);
/// }
/// let bundle = Bundle::decode(&buffer[..194])?;
/// assert!(bundle.frames().eq([&[1, 1, 1][..], &[], &[3, 3]]));
/// # Ok::<(), tensorwire::bundle::Error>(())
/// ```
pub fn lend<I>(lengths: I, buffer: &mut [u8]) -> Result<Places<'_>, Error>
where
    I: IntoIterator<Item = usize>,
    I::IntoIter: Clone,
{
    let mut lengths = lengths.into_iter();
    let measure = Measure::of(lengths.clone())?;
    let capacity = buffer.len();
    let Some(bundle) = buffer.get_mut(..measure.total_len) else {
        let needed = measure.total_len;
        let kind = ErrorKind::BufferTooSmall { needed, capacity };
        return Err(Error::new(kind, 0));
    };
    let (header, rest) = Header::mut_from_prefix(bundle).map_err(|_| CHANGED)?;
    *header = measure.header();
    let table = <[Entry]>::mut_from_prefix_with_elems(rest, measure.frames);
    let (table, mut rest) = table.map_err(|_| CHANGED)?;
    let body = measure.table_end;
    let mut end = measure.table_end;
    for entry in &mut *table {
        let place = Place::after(end, lengths.next().ok_or(CHANGED)?)?;
        *entry = place.entry();
        // From the end of the table, which `rest` starts at.
        let padding = end.checked_sub(body).zip(place.start.checked_sub(body));
        let padding = padding.and_then(|(from, to)| rest.get_mut(from..to));
        padding.ok_or(CHANGED)?.fill(0);
        end = place.end;
    }
    if end != measure.total_len || lengths.next().is_some() {
        return Err(CHANGED);
    }
    let first = aligned(body).and_then(|start| start.checked_sub(body));
    rest = first
        .and_then(|first| rest.get_mut(first..))
        .ok_or(CHANGED)?;
    Ok(Places {
        entries: table.iter(),
        rest,
        total_len: measure.total_len,
    })
}

/// The places of a bundle's frames, in order, to be filled.
///
/// Lent by [`lend`].
#[must_use = "a place that is not filled keeps what the buffer held"]
pub struct Places<'b> {
    entries: slice::Iter<'b, Entry>,
    /// From the next frame's start to the end of the bundle.
    rest: &'b mut [u8],
    total_len: usize,
}

impl Places<'_> {
    /// Returns the length of the whole bundle in bytes.
    #[must_use]
    pub const fn total_len(&self) -> usize {
        self.total_len
    }
}

impl fmt::Debug for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places")
            .field("len", &self.len())
            .field("total_len", &self.total_len)
            .finish()
    }
}

impl<'b> Iterator for Places<'b> {
    type Item = &'b mut [u8];

    fn next(&mut self) -> Option<&'b mut [u8]> {
        let length = usize::try_from(self.entries.next()?.length.get()).ok()?;
        let (place, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(length)?;
        // After the last frame there is no padding.
        let padding = aligned(length)?.checked_sub(length)?.min(rest.len());
        self.rest = rest.get_mut(padding..)?;
        Some(place)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl ExactSizeIterator for Places<'_> {}

impl FusedIterator for Places<'_> {}

/// Writes a bundle of `frames` into a new vector.
///
/// Each frame is asked for its bytes several times, and has to give the same.
///
/// # Errors
///
/// As [`encoded_len`].
///
/// # Examples
///
/// ```
/// use tensorwire::bundle::{Bundle, encode_to_vec};
///
/// let bytes = encode_to_vec(&["metadata", "payload"])?;
/// assert_eq!(Bundle::decode(&bytes)?.len(), 2);
/// # Ok::<(), tensorwire::bundle::Error>(())
/// ```
#[cfg(feature = "alloc")]
pub fn encode_to_vec<F: AsRef<[u8]>>(frames: &[F]) -> Result<Vec<u8>, Error> {
    let measure = Measure::of(frames.iter().map(|frame| frame.as_ref().len()))?;
    let mut bytes = Vec::with_capacity(measure.total_len);
    let sink = |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok::<(), Error>(())
    };
    measure.write(frames, sink, core::convert::identity)?;
    Ok(bytes)
}

/// Writes a bundle of `frames` to `writer`, without a second copy of it in memory.
///
/// Returns how many bytes that were. `writer` is not flushed. Header and table
/// come in pieces of up to 1 KiB, a frame and the padding before it in one each.
/// Each frame is asked for its bytes several times, and has to give the same.
///
/// # Errors
///
/// `InvalidInput` with an [`Error`] inside, as [`encoded_len`]; then nothing
/// was written. Otherwise the writer's own, in the middle of the bundle.
///
/// # Examples
///
/// ```
/// use std::fs::{self, File};
///
/// use tensorwire::bundle::{Bundle, write_to};
///
/// let path = std::env::temp_dir().join(format!("tensorwire-{}.bundle", std::process::id()));
/// let frames: [&[u8]; 2] = [br#"{"tensor_descriptors":[]}"#, &[7; 100]];
/// assert_eq!(write_to(&frames, File::create(&path)?)?, 128 + 100);
///
/// let bytes = fs::read(&path)?; // or a map of it
/// fs::remove_file(&path)?;
/// assert!(Bundle::decode(&bytes)?.frames().eq(frames));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
pub fn write_to<F: AsRef<[u8]>, W: io::Write>(frames: &[F], mut writer: W) -> io::Result<u64> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let measure = Measure::of(frames.iter().map(|frame| frame.as_ref().len())).map_err(invalid)?;
    measure.write(frames, |part| writer.write_all(part), invalid)?;
    Ok(to_u64(measure.total_len))
}

/// What the lengths of the frames add up to.
#[derive(Clone, Copy)]
struct Measure {
    frames: usize,
    table_end: usize,
    total_len: usize,
}

impl Measure {
    fn of<I: IntoIterator<Item = usize>>(lengths: I) -> Result<Self, Error> {
        let large = Error::new(ErrorKind::TooLarge, 0);
        let (mut frames, mut end) = (0_u32, 0);
        for length in lengths {
            // From the first frame's start, which is a multiple of the alignment.
            end = Place::after(end, length)?.end;
            let more = frames.checked_add(1);
            frames = more.ok_or(Error::new(ErrorKind::TooManyFrames, 0))?;
        }
        if frames == 0 {
            return Err(Error::new(ErrorKind::NoFrames, 0));
        }
        let frames = usize::try_from(frames).map_err(|_| large)?;
        let table_end = table_end(frames).ok_or(large)?;
        let total_len = aligned(table_end).and_then(|start| start.checked_add(end));
        match total_len {
            Some(total_len) if isize::try_from(total_len).is_ok() => Ok(Self {
                frames,
                table_end,
                total_len,
            }),
            _ => Err(large),
        }
    }

    fn header(&self) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION.into(),
            // It was counted as one.
            frames: u32::try_from(self.frames).unwrap_or(u32::MAX).into(),
            total_len: to_u64(self.total_len).into(),
        }
    }

    /// Hands the bundle to `sink`, piece by piece.
    #[cfg(feature = "alloc")]
    fn write<F: AsRef<[u8]>, E>(
        &self,
        frames: &[F],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
        error: impl Fn(Error) -> E,
    ) -> Result<(), E> {
        sink(self.header().as_bytes())?;
        let mut end = self.table_end;
        for chunk in frames.chunks(CHUNK) {
            let mut table = [Entry::default(); CHUNK];
            for (entry, frame) in table.iter_mut().zip(chunk) {
                let place = Place::after(end, frame.as_ref().len()).map_err(&error)?;
                *entry = place.entry();
                end = place.end;
            }
            let table = table.get(..chunk.len()).unwrap_or_default();
            sink(table.as_bytes())?;
        }
        let mut end = self.table_end;
        for frame in frames {
            let frame = frame.as_ref();
            let place = Place::after(end, frame.len()).map_err(&error)?;
            let padding = place.start.checked_sub(end);
            let padding = padding.and_then(|padding| [0; ALIGNMENT].get(..padding));
            sink(padding.unwrap_or_default())?;
            sink(frame)?;
            end = place.end;
        }
        if end == self.total_len {
            Ok(())
        } else {
            Err(error(CHANGED))
        }
    }
}

/// Where a frame goes.
struct Place {
    start: usize,
    end: usize,
}

impl Place {
    /// The place of a frame of `length` bytes after what ends at `end`.
    fn after(end: usize, length: usize) -> Result<Self, Error> {
        let place = aligned(end).and_then(|start| {
            let end = start.checked_add(length)?;
            Some(Self { start, end })
        });
        place.ok_or(Error::new(ErrorKind::TooLarge, 0))
    }

    fn entry(&self) -> Entry {
        Entry {
            offset: to_u64(self.start).into(),
            // `start` is not past `end`.
            length: to_u64(self.end.saturating_sub(self.start)).into(),
        }
    }
}

/// The lengths are the caller's code, which may say one thing now and another later.
const CHANGED: Error = Error::new(ErrorKind::LengthsChanged, 0);

/// Entries that are written at once: 1 KiB.
#[cfg(feature = "alloc")]
const CHUNK: usize = 64;
