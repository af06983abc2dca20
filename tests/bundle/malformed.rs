//! Every spelling but one is refused, by name and number.

use tensorwire::bundle::{Bundle, ErrorKind, HEADER_LEN, Index};

use crate::{bundle_of, frames_of, sample};

type Edit = fn(&mut Vec<u8>);

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

// The kinds by their numbers, so that the rows of the table stay short.

const fn truncated(expected: u64, actual: usize) -> ErrorKind {
    ErrorKind::Truncated { expected, actual }
}

const fn trailing(expected: u64, actual: usize) -> ErrorKind {
    ErrorKind::TrailingBytes { expected, actual }
}

const fn frame_count(limit: usize, actual: u32) -> ErrorKind {
    ErrorKind::FrameCount { limit, actual }
}

const fn frame_length(limit: u64, actual: u64) -> ErrorKind {
    ErrorKind::FrameLength { limit, actual }
}

const fn frame_offset(expected: u64, actual: u64) -> ErrorKind {
    ErrorKind::FrameOffset { expected, actual }
}

const fn total_length(expected: u64, actual: u64) -> ErrorKind {
    ErrorKind::TotalLength { expected, actual }
}

/// (name, what is done to the sample of three frames, expected kind, expected offset)
///
/// Its table ends at 72; its frames lie at 128..136, 192..192 and 192..262.
const MALFORMED: &[(&str, Edit, ErrorKind, usize)] = &[
    ("nothing", |x| x.clear(), truncated(24, 0), 0),
    ("half a header", |x| x.truncate(23), truncated(24, 23), 23),
    ("a header alone", |x| x.truncate(24), truncated(262, 24), 24),
    ("half a table", |x| x.truncate(60), truncated(262, 60), 60),
    (
        "last byte missing",
        |x| x.truncate(261),
        truncated(262, 261),
        261,
    ),
    (
        "another format",
        |x| x[..8].copy_from_slice(b"\x93NUMPY\x01\0"),
        ErrorKind::BadMagic,
        0,
    ),
    (
        "one letter of the magic",
        |x| x[7] = b'F',
        ErrorKind::BadMagic,
        7,
    ),
    (
        "byte order of the version",
        |x| x[8..12].copy_from_slice(&[0, 0, 0, 1]),
        ErrorKind::UnknownVersion {
            actual: 0x0100_0000,
        },
        8,
    ),
    (
        "version 0",
        |x| x[8] = 0,
        ErrorKind::UnknownVersion { actual: 0 },
        8,
    ),
    (
        "version 2",
        |x| x[8] = 2,
        ErrorKind::UnknownVersion { actual: 2 },
        8,
    ),
    ("a byte after it", |x| x.push(0), trailing(262, 263), 262),
    ("total length of 0", |x| put(x, 16, 0), trailing(0, 262), 0),
    (
        "total length too small",
        |x| put(x, 16, 261),
        trailing(261, 262),
        261,
    ),
    (
        "total length too large",
        |x| put(x, 16, 263),
        truncated(263, 262),
        262,
    ),
    (
        "total length of all ones",
        |x| put(x, 16, u64::MAX),
        truncated(u64::MAX, 262),
        262,
    ),
    ("no frames", |x| x[12] = 0, ErrorKind::NoFrames, 12),
    (
        "a header of no frames",
        |x| {
            x.truncate(24);
            x[12] = 0;
            put(x, 16, 24)
        },
        ErrorKind::NoFrames,
        12,
    ),
    (
        "a header of one frame",
        |x| {
            x.truncate(24);
            x[12] = 1;
            put(x, 16, 24)
        },
        frame_count(0, 1),
        12,
    ),
    (
        "one frame more than there is room for",
        |x| x[12] = 15,
        frame_count(14, 15),
        12,
    ),
    (
        "2^32 - 1 frames",
        |x| x[12..16].fill(0xff),
        frame_count(14, u32::MAX),
        12,
    ),
    (
        "as many frames as there is room for",
        |x| x[12] = 14,
        frame_offset(256, 128),
        24,
    ),
    ("one frame less", |x| x[12] = 2, frame_offset(64, 128), 24),
    (
        "first frame inside the table",
        |x| put(x, 24, 64),
        frame_offset(128, 64),
        24,
    ),
    (
        "first frame after a gap",
        |x| put(x, 24, 192),
        frame_offset(128, 192),
        24,
    ),
    (
        "not at a multiple of 64",
        |x| put(x, 24, 129),
        frame_offset(128, 129),
        24,
    ),
    (
        "offset of all ones",
        |x| put(x, 24, u64::MAX),
        frame_offset(128, u64::MAX),
        24,
    ),
    (
        "offset past 2^32",
        |x| put(x, 24, 128 + (1 << 32)),
        frame_offset(128, 128 + (1 << 32)),
        24,
    ),
    (
        "second frame over the first",
        |x| put(x, 40, 128),
        frame_offset(192, 128),
        40,
    ),
    (
        "second frame at 0",
        |x| put(x, 40, 0),
        frame_offset(192, 0),
        40,
    ),
    (
        "out of order",
        |x| {
            put(x, 24, 192);
            put(x, 40, 128)
        },
        frame_offset(128, 192),
        24,
    ),
    (
        "third frame a step on",
        |x| put(x, 56, 256),
        frame_offset(192, 256),
        56,
    ),
    (
        "first frame into the second",
        |x| put(x, 32, 65),
        frame_offset(256, 192),
        40,
    ),
    (
        "first frame of the rest",
        |x| put(x, 32, 134),
        frame_offset(320, 192),
        40,
    ),
    (
        "first frame past the end",
        |x| put(x, 32, 135),
        frame_length(134, 135),
        32,
    ),
    (
        "length of all ones",
        |x| put(x, 32, u64::MAX),
        frame_length(134, u64::MAX),
        32,
    ),
    (
        "length that wraps to the start",
        |x| put(x, 32, u64::MAX - 127),
        frame_length(134, u64::MAX - 127),
        32,
    ),
    (
        "length that wraps to the place of the next",
        |x| put(x, 32, 8_u64.wrapping_sub(256)),
        frame_length(134, u64::MAX - 247),
        32,
    ),
    (
        "length past 2^32",
        |x| put(x, 32, 8 + (1 << 32)),
        frame_length(134, 8 + (1 << 32)),
        32,
    ),
    (
        "length of 2^63",
        |x| put(x, 32, 1 << 63),
        frame_length(134, 1 << 63),
        32,
    ),
    (
        "empty frame made longer",
        |x| put(x, 48, 1),
        frame_offset(256, 192),
        56,
    ),
    (
        "last frame past the end",
        |x| put(x, 64, 71),
        frame_length(70, 71),
        64,
    ),
    (
        "last frame shorter",
        |x| put(x, 64, 69),
        total_length(261, 262),
        16,
    ),
    (
        "last frame empty",
        |x| put(x, 64, 0),
        total_length(192, 262),
        16,
    ),
    (
        "place of an empty last frame past the end",
        |x| {
            x.truncate(136);
            x[12] = 2;
            put(x, 16, 136);
            put(x, 24, 64);
            put(x, 32, 72);
            put(x, 40, 192);
            put(x, 48, 0)
        },
        total_length(192, 136),
        16,
    ),
    (
        "padded at the end",
        |x| {
            x.push(0);
            put(x, 16, 263)
        },
        total_length(262, 263),
        16,
    ),
    (
        "first byte of padding after the table",
        |x| x[72] = 1,
        ErrorKind::NonZeroPadding { found: 1 },
        72,
    ),
    (
        "last byte of padding after the table",
        |x| x[127] = 0x80,
        ErrorKind::NonZeroPadding { found: 0x80 },
        127,
    ),
    (
        "two bytes of padding",
        |x| {
            x[191] = 1;
            x[140] = 2
        },
        ErrorKind::NonZeroPadding { found: 2 },
        140,
    ),
    (
        "last byte of padding after a frame",
        |x| x[191] = 0xff,
        ErrorKind::NonZeroPadding { found: 0xff },
        191,
    ),
];

#[test]
fn every_malformation_is_named_with_its_byte_and_numbers() {
    for (name, edit, kind, offset) in MALFORMED {
        let mut bytes = sample();
        edit(&mut bytes);
        let error = Bundle::decode(&bytes).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (*kind, *offset), "{name}");
        assert!(error.offset() <= bytes.len(), "{name}");
    }
}

#[test]
fn every_kind_of_a_peers_faults_is_in_the_table() {
    let name = |kind: &ErrorKind| {
        let text = format!("{kind:?}");
        text.split(' ').next().unwrap().to_string()
    };
    let found: std::collections::BTreeSet<_> =
        MALFORMED.iter().map(|(_, _, kind, _)| name(kind)).collect();
    let all = [
        "BadMagic",
        "FrameCount",
        "FrameLength",
        "FrameOffset",
        "NoFrames",
        "NonZeroPadding",
        "TotalLength",
        "TrailingBytes",
        "Truncated",
        "UnknownVersion",
    ];
    assert!(found.iter().eq(all.iter()), "{found:?}");
}

#[test]
fn errors_say_what_and_where() {
    let texts = [
        ("nothing", "truncated: 0 bytes of 24 at byte 0"),
        (
            "one letter of the magic",
            "not the magic of a bundle at byte 7",
        ),
        ("version 2", "unknown version 2 at byte 8"),
        (
            "a byte after it",
            "263 bytes where the bundle has 262 at byte 262",
        ),
        ("no frames", "bundle without frames at byte 12"),
        (
            "2^32 - 1 frames",
            "4294967295 frames where the table has room for 14 at byte 12",
        ),
        (
            "not at a multiple of 64",
            "frame at offset 129 where 128 is its place at byte 24",
        ),
        (
            "last frame past the end",
            "frame of 71 bytes where 70 are left at byte 64",
        ),
        (
            "last frame shorter",
            "total length 262 where the frames reach 261 at byte 16",
        ),
        (
            "last byte of padding after a frame",
            "padding of 0xff at byte 191",
        ),
    ];
    for (name, text) in texts {
        let mut cases = MALFORMED.iter();
        let (_, edit, ..) = cases.find(|(other, ..)| *other == name).unwrap();
        let mut bytes = sample();
        edit(&mut bytes);
        assert_eq!(Bundle::decode(&bytes).unwrap_err().to_string(), text);
    }
    assert!(size_of::<tensorwire::bundle::Error>() <= 32);
}

#[test]
fn every_strict_prefix_is_truncated() {
    let bytes = sample();
    for length in 0..bytes.len() {
        let error = Bundle::decode(&bytes[..length]).unwrap_err();
        let expected = if length < HEADER_LEN { 24 } else { 262 };
        let actual = length;
        assert_eq!(error.kind(), ErrorKind::Truncated { expected, actual });
        assert_eq!(error.offset(), length);
    }
}

#[test]
fn no_byte_of_header_table_and_padding_can_be_another() {
    let sample = sample();
    let offsets = [24..32, 40..48, 56..64];
    let lengths = [32..40, 48..56];
    let mut accepted = 0;
    for at in (0..128).chain(136..192) {
        for change in 1..=255 {
            let mut bytes = sample.clone();
            bytes[at] ^= change;
            match frames_of(&bytes) {
                Err(error) => assert!(error.offset() <= bytes.len()),
                // A longer frame that takes zeros along is another message,
                // and this is its one spelling.
                Ok(frames) => {
                    assert!(lengths.iter().any(|field| field.contains(&at)), "{at}");
                    assert!(!offsets.iter().any(|field| field.contains(&at)), "{at}");
                    assert!(bundle_of(&frames) == bytes, "{at}");
                    accepted += 1;
                }
            }
        }
    }
    // The first frame, of 8 bytes, as one of 0 to 64 bytes; shorter leaves "metadata" as padding.
    assert_eq!(accepted, 64 - 8);
}

#[test]
fn an_index_refuses_what_its_prefix_does_not_show() {
    let bytes = sample();
    for total in [0, 23, 24, 71, 72, 261, 263, usize::MAX] {
        let header = &bytes[..HEADER_LEN];
        let read = Index::len_from_header(header, total).unwrap_err();
        let whole = Index::decode(&bytes, total).unwrap_err();
        assert_eq!(read, whole);
        let kind = match total {
            263.. => ErrorKind::TrailingBytes {
                expected: 262,
                actual: total,
            },
            24.. => ErrorKind::Truncated {
                expected: 262,
                actual: total,
            },
            _ => ErrorKind::Truncated {
                expected: 24,
                actual: total,
            },
        };
        assert_eq!(read.kind(), kind);
    }
    for length in 0..HEADER_LEN {
        let error = Index::len_from_header(&bytes[..length], 262).unwrap_err();
        let (expected, actual) = (24, length);
        assert_eq!(error.kind(), ErrorKind::Truncated { expected, actual });
    }
}

/// Work is bounded by the bytes there are, whatever the numbers say.
#[test]
fn a_header_that_announces_everything_costs_nothing() {
    let mut header = sample();
    header.truncate(HEADER_LEN);
    header[12..16].fill(0xff);
    let start = std::time::Instant::now();
    for total in [u64::MAX, 1 << 62, 24] {
        put(&mut header, 16, total);
        for _ in 0..1000 {
            assert!(Bundle::decode(&header).is_err());
        }
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(1));
}
