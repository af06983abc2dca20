//! A message and how to decode it, from the bytes of a fuzz input.
//!
//! ```text
//! byte 0    bits 0-2  which limit is made small, 0 for none
//!           bit  3    strict JSON
//!           bits 4-5  dtypes: oldest, with complex, all, all
//!           bit  6    payloads at odd addresses
//!           bit  7    how the frames follow
//! rest      bit 7 clear: the metadata alone; payloads are made up to fit it
//!           bit 7 set: frames, each after its length (u16, little-endian);
//!           the last takes what is left
//! ```
//!
//! So `0` (0x30) and a metadata text is a case with the default options.

use tensorwire::dtype::Generation;
use tensorwire::message::Decoder;
use tensorwire::{Limits, Options};

/// The options byte for default options and payloads that fit.
pub const DEFAULT: u8 = b'0';

/// The bit that says that all frames follow.
pub const FRAMED: u8 = 0x80;

/// Payloads are made up for messages of at most this size.
const MADE_UP_BYTES: usize = 1 << 16;

/// A message and how to decode it.
#[derive(Debug)]
pub struct Case {
    pub frames: Vec<Frame>,
    pub limits: Limits,
    pub strict: bool,
    pub generation: Generation,
}

impl Case {
    /// `None` only for no bytes.
    pub fn read(data: &[u8]) -> Option<Self> {
        let (&flags, rest) = data.split_first()?;
        let limits = match flags & 7 {
            0 => Limits::new(),
            1 => Limits::new().with_metadata_bytes(128),
            2 => Limits::new().with_descriptors(2),
            3 => Limits::new().with_rank(2),
            4 => Limits::new().with_depth(5),
            5 => Limits::new().with_name_bytes(4),
            6 => Limits::new().with_list_index(2),
            _ => Limits::new().with_tensor_bytes(64),
        };
        let mut case = Self {
            frames: Vec::new(),
            limits,
            strict: flags & 8 != 0,
            generation: match flags >> 4 & 3 {
                0 => Generation::Oldest,
                1 => Generation::Complex,
                _ => Generation::Extended,
            },
        };
        let shift = usize::from(flags >> 6 & 1);
        if flags & FRAMED == 0 {
            case.frames.push(Frame::new(rest, 0));
            case.make_up_payloads(shift);
        } else {
            case.split_frames(rest, shift);
        }
        Some(case)
    }

    pub fn options(&self) -> Options {
        Options::new()
            .with_limits(self.limits)
            .with_strict_json(self.strict)
            .with_generation(self.generation)
    }

    fn make_up_payloads(&mut self, shift: usize) {
        let mut decoder = Decoder::with_options(self.options());
        let Ok(metadata) = decoder.decode_metadata(self.frames[0].as_ref()) else {
            return;
        };
        if metadata.tensor_bytes() > MADE_UP_BYTES {
            return;
        }
        let mut next: u8 = 0;
        let payloads: Vec<_> = metadata
            .descriptors()
            .map(|descriptor| {
                // Mostly valid as bool.
                let bytes: Vec<u8> = (0..descriptor.byte_len())
                    .map(|_| {
                        next = next.wrapping_mul(5).wrapping_add(3);
                        if descriptor.dtype().size() == 1 {
                            next >> 2 & 1
                        } else {
                            next
                        }
                    })
                    .collect();
                Frame::new(&bytes, shift)
            })
            .collect();
        self.frames.extend(payloads);
    }

    fn split_frames(&mut self, bytes: &[u8], shift: usize) {
        let mut rest = bytes;
        while let Some((length, tail)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_le_bytes(*length));
            let (frame, tail) = tail.split_at_checked(length).unwrap_or((tail, &[]));
            let shift = if self.frames.is_empty() { 0 } else { shift };
            self.frames.push(Frame::new(frame, shift));
            rest = tail;
        }
    }
}

/// What [`Case::read`] reads as these frames; `None` if one is too long.
pub fn framed<F: AsRef<[u8]>>(flags: u8, frames: &[F]) -> Option<Vec<u8>> {
    let mut bytes = vec![flags | FRAMED];
    for frame in frames {
        let frame = frame.as_ref();
        bytes.extend(u16::try_from(frame.len()).ok()?.to_le_bytes());
        bytes.extend(frame);
    }
    Some(bytes)
}

/// A frame that starts where it is told to, past an address of good alignment.
#[derive(Clone, Debug)]
pub struct Frame {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Frame {
    /// `shift` bytes past a multiple of 16.
    pub fn new(bytes: &[u8], shift: usize) -> Self {
        let buffer = vec![0xa5; bytes.len() + 15 + shift];
        let to_aligned = buffer.as_ptr().addr().wrapping_neg() % 16;
        let mut frame = Self {
            start: to_aligned + shift,
            len: bytes.len(),
            buffer,
        };
        frame.buffer[frame.start..][..frame.len].copy_from_slice(bytes);
        frame
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.start..][..self.len]
    }
}
