//! Whatever is a bundle is the one spelling of its frames, and all else is refused in bounds.
//!
//! ```text
//! byte 0    bits 0-1  0, 3  the rest is the bundle
//!                     1     so it is, with magic, version and total length put right
//!                     2     the rest is frames, each after its length (u16,
//!                           little-endian); the last takes what is left
//! ```

use tensorwire::bundle::{
    ALIGNMENT, Bundle, ErrorKind, HEADER_LEN, Index, encode_into, encode_to_vec, encoded_len, lend,
};

/// The rest of an input is a bundle.
pub const AS_IT_IS: u8 = b'0';

/// So it is, but for what would have it refused at once.
pub const PUT_RIGHT: u8 = b'1';

/// The rest of an input is frames.
pub const FRAMES: u8 = b'2';

pub fn run(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else {
        return;
    };
    match flags & 3 {
        1 => {
            let mut bytes = rest.to_vec();
            let total = (bytes.len() as u64).to_le_bytes();
            for (at, field) in [(0, &b"TWBUNDLE\x01\0\0\0"[..]), (16, &total)] {
                if let Some(place) = bytes.get_mut(at..at + field.len()) {
                    place.copy_from_slice(field);
                }
            }
            bundle(&bytes);
        }
        2 => frames(&split(rest)),
        _ => bundle(rest),
    }
}

/// Arbitrary bytes are read as a naive reader reads them.
fn bundle(bytes: &[u8]) {
    let whole = Bundle::decode(bytes);
    let header = &bytes[..bytes.len().min(HEADER_LEN)];
    // As a reader of shared memory does it.
    let index = Index::len_from_header(header, bytes.len())
        .and_then(|length| Index::decode(&bytes[..length], bytes.len()))
        .and_then(|index| index.check_padding(bytes).map(|()| index));
    match (whole, naive(bytes)) {
        (Ok(bundle), Some(expected)) => {
            assert!(bundle.frames().eq(expected.iter().copied()));
            assert!(bundle.frames().rev().eq(expected.iter().copied().rev()));
            assert_eq!((bundle.len(), bundle.bytes()), (expected.len(), bytes));
            let ranges = index.unwrap().ranges();
            assert!(ranges.clone().all(|range| range.start % ALIGNMENT == 0));
            assert!(ranges.map(|range| &bytes[range]).eq(expected));
            let mut room = vec![&[][..]; bundle.len()];
            let read = bundle.frames_in(&mut room).unwrap();
            frames(read);
            let none = bundle.frames_in(&mut room[1..]).unwrap_err();
            assert!(matches!(none.kind(), ErrorKind::StorageFull { .. }));
        }
        (Err(error), None) => {
            assert!(error.offset() <= bytes.len());
            assert!(error.to_string().ends_with(&error.offset().to_string()));
            assert_eq!(index.unwrap_err(), error);
        }
        (ours, naive) => panic!("{ours:?} where a naive reader has {naive:?}"),
    }
}

/// Frames are written as a naive writer writes them, all ways alike.
fn frames(frames: &[&[u8]]) {
    let lengths = frames.iter().map(|frame| frame.len());
    if frames.is_empty() {
        let kind = encoded_len(lengths).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::NoFrames);
        return;
    }
    let expected = written(frames);
    let total = expected.len();
    assert_eq!(encoded_len(lengths.clone()), Ok(total));
    assert_eq!(encode_to_vec(frames).unwrap(), expected);

    let mut buffer = vec![0xa5; total + 3];
    assert_eq!(encode_into(frames, &mut buffer).unwrap(), expected);
    assert_eq!(buffer[total..], [0xa5; 3]);

    let mut lent = vec![0x5a; total];
    let mut places = lend(lengths.clone(), &mut lent).unwrap();
    assert_eq!((places.len(), places.total_len()), (frames.len(), total));
    for (place, frame) in places.by_ref().zip(frames) {
        place.copy_from_slice(frame);
    }
    assert!(places.next().is_none());
    assert_eq!(lent, expected);

    let mut small = vec![0xa5; total - 1];
    let error = encode_into(frames, &mut small).unwrap_err();
    let (needed, capacity) = (total, total - 1);
    assert_eq!(error.kind(), ErrorKind::BufferTooSmall { needed, capacity });
    assert!(small.iter().all(|byte| *byte == 0xa5));
    let decoded = Bundle::decode(&expected).unwrap();
    assert!(decoded.frames().eq(frames.iter().copied()));
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length));
        let (frame, tail) = tail.split_at_checked(length).unwrap_or((tail, &[]));
        frames.push(frame);
        rest = tail;
    }
    frames
}

/// The frames of `bytes`, if writing these gives the same bytes again.
fn naive(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let number = |at: usize| {
        let bytes: [u8; 8] = bytes.get(at..at + 8)?.try_into().unwrap();
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let count = u32::from_le_bytes(bytes.get(12..16)?.try_into().unwrap());
    let mut frames = Vec::new();
    for index in 0..usize::try_from(count).unwrap() {
        // `None` where the table ends, whatever the count says.
        let start = number(24 + 16 * index)?;
        let end = start.checked_add(number(32 + 16 * index)?)?;
        frames.push(bytes.get(start..end)?);
    }
    (count > 0 && written(&frames) == bytes).then_some(frames)
}

/// A bundle by the drawing, and in no hurry.
fn written(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; 24 + 16 * frames.len()];
    for (index, frame) in frames.iter().enumerate() {
        while !bytes.len().is_multiple_of(64) {
            bytes.push(0);
        }
        let entry = 24 + 16 * index;
        let start = bytes.len() as u64;
        bytes[entry..entry + 8].copy_from_slice(&start.to_le_bytes());
        bytes[entry + 8..entry + 16].copy_from_slice(&(frame.len() as u64).to_le_bytes());
        bytes.extend(*frame);
    }
    let total = bytes.len() as u64;
    bytes[..8].copy_from_slice(b"TWBUNDLE");
    bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&(frames.len() as u32).to_le_bytes());
    bytes[16..24].copy_from_slice(&total.to_le_bytes());
    bytes
}
