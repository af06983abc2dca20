//! Tensor messages in one buffer.

use alloc::vec::Vec;
use core::fmt;

use super::choices::Choose;
use super::mutation::{self, Needs};
use super::shown::Shown;
use super::{Generated, NearlyValid, Parameters, TensorMessage};
use crate::bundle::{ALIGNMENT, ENTRY_LEN, ErrorKind, HEADER_LEN, VERSION, encode_to_vec};

/// A valid tensor message as a [bundle](crate::bundle).
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::Decoder;
/// use tensorwire::bundle::Bundle;
/// use tensorwire::testing::BundledMessage;
///
/// let sent = BundledMessage::arbitrary(&mut Unstructured::new(b"\x04from a fuzzer"))?;
/// let bundle = Bundle::decode(sent.bytes())?;
/// let frames: Vec<_> = bundle.frames().collect();
/// let mut decoder = Decoder::new();
/// sent.message().compare(&decoder.decode(&frames)?)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct BundledMessage {
    bytes: Vec<u8>,
    message: TensorMessage,
}

impl BundledMessage {
    /// Returns the bundle.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the message that is in it.
    #[must_use]
    pub const fn message(&self) -> &TensorMessage {
        &self.message
    }
}

impl fmt::Debug for BundledMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundledMessage")
            .field("bytes", &Shown(&self.bytes))
            .field("message", &self.message)
            .finish()
    }
}

/// What is wrong with a nearly valid bundle.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum BundleMutation {
    /// A bit of the magic is another one.
    BadMagic,
    /// There are more frames than the bundle has room for.
    FrameCount,
    /// The last frame reaches a byte past the end.
    FrameLength,
    /// The first frame lies further on than it has to.
    FrameOffset,
    /// There are no frames.
    NoFrames,
    /// A byte of the padding is not zero.
    NonZeroPadding,
    /// The bundle says that it goes on after its last frame, and does.
    TotalLength,
    /// A byte follows.
    TrailingBytes,
    /// The last byte is not there.
    Truncated,
    /// A version that nobody knows.
    UnknownVersion,
}

impl Generated for BundledMessage {
    type Mutation = BundleMutation;
    type ErrorKind = ErrorKind;

    const MUTATIONS: &'static [BundleMutation] = &[
        BundleMutation::Truncated,
        BundleMutation::BadMagic,
        BundleMutation::FrameCount,
        BundleMutation::FrameLength,
        BundleMutation::FrameOffset,
        BundleMutation::NoFrames,
        BundleMutation::NonZeroPadding,
        BundleMutation::TotalLength,
        BundleMutation::TrailingBytes,
        BundleMutation::UnknownVersion,
    ];

    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self {
        let message = TensorMessage::generate(choices, parameters);
        // A handful of frames in memory make a bundle.
        let bytes = encode_to_vec(&message.frames()).unwrap_or_default();
        Self { bytes, message }
    }

    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self> {
        let all = (Self::MUTATIONS, BundleMutation::Truncated);
        let needs = |_| Needs::NOTHING;
        let (mutation, parameters) = mutation::choose(all, needs, choices, parameters);
        let (bytes, kind) = Self::generate(choices, &parameters).mutated(mutation, choices);
        NearlyValid::new(alloc::vec![bytes], mutation, kind)
    }
}

impl BundledMessage {
    fn mutated(self, mutation: BundleMutation, choices: &mut dyn Choose) -> (Vec<u8>, ErrorKind) {
        let frames = self.message.tensors().len().saturating_add(1);
        let last = self.message.frames().last().map_or(0, |frame| frame.len());
        let mut bytes = self.bytes;
        let len = bytes.len();
        let total = u64::try_from(len).unwrap_or(u64::MAX);
        let table_end = frames.saturating_mul(ENTRY_LEN).saturating_add(HEADER_LEN);
        let kind = match mutation {
            BundleMutation::BadMagic => {
                let at = choices.up_to(7);
                put(&mut bytes, at, b"?");
                ErrorKind::BadMagic
            }
            BundleMutation::FrameCount => {
                let actual = u32::MAX;
                put(&mut bytes, FRAMES_OFFSET, &actual.to_le_bytes());
                let room = len.saturating_sub(HEADER_LEN);
                let limit = room.checked_div(ENTRY_LEN).unwrap_or(0);
                ErrorKind::FrameCount { limit, actual }
            }
            BundleMutation::FrameLength => {
                let limit = u64::try_from(last).unwrap_or(u64::MAX);
                let actual = limit.saturating_add(1);
                let at = table_end.saturating_sub(size_of::<u64>());
                put(&mut bytes, at, &actual.to_le_bytes());
                ErrorKind::FrameLength { limit, actual }
            }
            BundleMutation::FrameOffset => {
                let expected = table_end.next_multiple_of(ALIGNMENT);
                let expected = u64::try_from(expected).unwrap_or(u64::MAX);
                let actual = expected.saturating_add(1);
                put(&mut bytes, HEADER_LEN, &actual.to_le_bytes());
                ErrorKind::FrameOffset { expected, actual }
            }
            BundleMutation::NoFrames => {
                put(&mut bytes, FRAMES_OFFSET, &[0; 4]);
                ErrorKind::NoFrames
            }
            BundleMutation::NonZeroPadding => {
                // The table's end is 8 past a multiple of 16: there is some.
                let found = 0x80;
                put(&mut bytes, table_end, &[found]);
                ErrorKind::NonZeroPadding { found }
            }
            BundleMutation::TotalLength => {
                let actual = total.saturating_add(1);
                put(&mut bytes, TOTAL_LEN_OFFSET, &actual.to_le_bytes());
                bytes.push(0);
                ErrorKind::TotalLength {
                    expected: total,
                    actual,
                }
            }
            BundleMutation::TrailingBytes => {
                bytes.push(0);
                ErrorKind::TrailingBytes {
                    expected: total,
                    actual: bytes.len(),
                }
            }
            BundleMutation::Truncated => {
                bytes.pop();
                ErrorKind::Truncated {
                    expected: total,
                    actual: bytes.len(),
                }
            }
            BundleMutation::UnknownVersion => {
                let actual = VERSION.saturating_add(1);
                put(&mut bytes, VERSION_OFFSET, &actual.to_le_bytes());
                ErrorKind::UnknownVersion { actual }
            }
        };
        (bytes, kind)
    }
}

/// Puts `new` into `bytes`, from `at` on.
fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (byte, &new) in bytes.iter_mut().skip(at).zip(new) {
        *byte = new;
    }
}

/// Where the fields of the header lie.
const VERSION_OFFSET: usize = 8;
const FRAMES_OFFSET: usize = 12;
const TOTAL_LEN_OFFSET: usize = 16;
