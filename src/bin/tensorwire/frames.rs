//! Messages in files: frame by frame, or as bundles.

use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use tensorwire::bundle::{ALIGNMENT, Bundle, MAGIC};

use crate::args::Input;
use crate::exit::{Failure, Fault};

/// The frames of one message, read from somewhere.
#[derive(Debug)]
pub(crate) struct Loaded {
    buffers: Vec<Vec<u8>>,
    /// Where each frame lies: in which buffer, and where there.
    places: Vec<(usize, Range<usize>)>,
}

impl Loaded {
    /// Takes a message whose frames are apart.
    pub(crate) fn from_frames(buffers: Vec<Vec<u8>>) -> Self {
        let places = buffers
            .iter()
            .enumerate()
            .map(|(index, buffer)| (index, 0..buffer.len()));
        Self {
            places: places.collect(),
            buffers,
        }
    }

    /// Takes a message whose frames lie in these buffers, each in the one and the range given.
    pub(crate) const fn from_places(
        buffers: Vec<Vec<u8>>,
        places: Vec<(usize, Range<usize>)>,
    ) -> Self {
        Self { buffers, places }
    }

    /// Takes a bundle apart, which is moved to where its frames are aligned.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn from_bundle(mut buffer: Vec<u8>) -> Result<Self, Fault> {
        let bundle = Bundle::decode(&buffer)?;
        let mut ranges: Vec<_> = bundle.index().ranges().collect();
        let length = buffer.len();
        buffer.reserve_exact(ALIGNMENT);
        let shift = buffer.as_ptr().align_offset(ALIGNMENT);
        if shift < ALIGNMENT {
            buffer.resize(length + shift, 0);
            buffer.copy_within(..length, shift);
            for range in &mut ranges {
                *range = range.start + shift..range.end + shift;
            }
        }
        Ok(Self {
            places: ranges.into_iter().map(|range| (0, range)).collect(),
            buffers: vec![buffer],
        })
    }

    /// How many bytes the frames have in all.
    pub(crate) fn byte_len(&self) -> usize {
        self.places.iter().map(|(_, range)| range.len()).sum()
    }

    /// The frames, in order.
    pub(crate) fn frames(&self) -> Vec<&[u8]> {
        let frame = |(index, range): &(usize, Range<usize>)| {
            let buffer = self.buffers.get(*index)?;
            buffer.get(range.clone())
        };
        self.places
            .iter()
            .map(|place| frame(place).unwrap_or_default())
            .collect()
    }
}

/// Reads the message that the arguments name.
///
/// # Errors
///
/// [`Failure::Could`] for what cannot be read, [`Failure::Malformed`] for a bundle that is none.
pub(crate) fn load(input: &Input) -> Result<Loaded, Failure> {
    let dash = Path::new("-");
    if let Some(path) = &input.bundle {
        return Loaded::from_bundle(read(path)?).map_err(Failure::Malformed);
    }
    match input.frames.as_slice() {
        [path] if path == dash => Loaded::from_bundle(read(path)?).map_err(Failure::Malformed),
        paths if paths.iter().any(|path| path == dash) => Err(Failure::Usage(
            "- is a whole bundle on stdin, and cannot stand among frame files".to_owned(),
        )),
        paths => {
            let buffers = paths.iter().map(|path| read(path));
            Ok(Loaded::from_frames(buffers.collect::<Result<_, _>>()?))
        }
    }
}

/// Reads a whole file, or stdin.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path != Path::new("-") {
        return fs::read(path).map_err(|error| Failure::file("read", path, &error));
    }
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::Could(format!("cannot read stdin: {error}")))?;
    Ok(bytes)
}

/// Whether these bytes are meant to be a bundle.
pub(crate) fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwire::bundle;

    #[test]
    fn frames_of_a_bundle_are_aligned_wherever_it_was_read_to() {
        for length in [0, 1, 63, 64, 5000] {
            let payload = vec![7; length];
            let bytes = bundle::encode_to_vec(&[&b"metadata"[..], &payload]).unwrap();
            let loaded = Loaded::from_bundle(bytes).unwrap();
            assert_eq!(loaded.frames(), [&b"metadata"[..], &payload]);
            assert!(
                loaded
                    .frames()
                    .iter()
                    .all(|frame| frame.as_ptr().addr() % ALIGNMENT == 0)
            );
        }
    }
}
