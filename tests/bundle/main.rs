//! A message in one buffer: read where it lies, written where it is sent from.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod malformed;
mod properties;

#[cfg(feature = "alloc")]
use tensorwire::bundle::encode_to_vec;
use tensorwire::bundle::{
    ALIGNMENT, Bundle, ENTRY_LEN, Error, ErrorKind, HEADER_LEN, Index, MAGIC, VERSION, encode_into,
    encoded_len, lend,
};
use tensorwire::{Message, Storage};

/// A bundle of `frames`, whatever the buffer held before.
fn bundle_of<F: AsRef<[u8]>>(frames: &[F]) -> Vec<u8> {
    let length = encoded_len(frames.iter().map(|frame| frame.as_ref().len())).unwrap();
    let mut buffer = vec![0xa5; length];
    assert_eq!(encode_into(frames, &mut buffer).unwrap().len(), length);
    buffer
}

fn frames_of(bytes: &[u8]) -> Result<Vec<&[u8]>, Error> {
    Ok(Bundle::decode(bytes)?.frames().collect())
}

/// Three frames, the second of no bytes: table up to 72, frames at 128, 192 and 192, 262 bytes.
fn sample() -> Vec<u8> {
    let payload: Vec<u8> = (0..70).collect();
    bundle_of(&[b"metadata".as_slice(), b"", &payload])
}

/// A file in `tests/data/bundle`, written by another implementation.
fn golden(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bundle");
    std::fs::read(format!("{folder}/{name}.bundle")).unwrap()
}

/// The frames of a recorded message.
fn recorded(name: &str) -> Vec<Vec<u8>> {
    let lines = common::lines("tensors.jsonl");
    let line = lines.iter().find(|line| line["name"] == name).unwrap();
    common::frames(line)
}

#[test]
fn a_bundle_is_what_the_drawing_says_field_by_field() {
    let bytes = golden("three-frames");
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(bytes.len(), 262);
    assert_eq!((&bytes[..8], MAGIC), (&b"TWBUNDLE"[..], *b"TWBUNDLE"));
    assert_eq!((u32_at(8), VERSION), (1, 1));
    assert_eq!(u32_at(12), 3);
    assert_eq!(u64_at(16), 262);
    assert_eq!((HEADER_LEN, ENTRY_LEN, ALIGNMENT), (24, 16, 64));
    assert_eq!((u64_at(24), u64_at(32)), (128, 8));
    assert_eq!((u64_at(40), u64_at(48)), (192, 0));
    assert_eq!((u64_at(56), u64_at(64)), (192, 70));
    assert_eq!(bytes[72..128], [0; 56]);
    assert_eq!(bytes[128..136], *b"metadata");
    assert_eq!(bytes[136..192], [0; 56]);
    assert!(bytes[192..].iter().copied().eq(0..70));

    let bundle = Bundle::decode(&bytes).unwrap();
    assert_eq!((bundle.len(), bundle.is_empty()), (3, false));
    assert_eq!(bundle.bytes(), bytes);
    assert_eq!(bundle.frame(0), Some(&b"metadata"[..]));
    assert_eq!(bundle.frame(1), Some(&[][..]));
    assert_eq!(bundle.frame(2), Some(&bytes[192..]));
    assert_eq!((bundle.frame(3), bundle.frame(usize::MAX)), (None, None));
    let index = bundle.index();
    assert_eq!((index.len(), index.is_empty()), (3, false));
    assert_eq!(index.total_len(), 262);
    assert!(index.ranges().eq([128..136, 192..192, 192..262]));
    assert_eq!((index.range(2), index.range(3)), (Some(192..262), None));
}

#[test]
fn golden_bundles_hold_the_frames_they_were_made_of_and_are_written_alike() {
    let table_full: Vec<Vec<u8>> = (0..10_u8)
        .map(|count| vec![count; usize::from(count)])
        .collect();
    let three = vec![b"metadata".to_vec(), vec![], (0..70).collect()];
    let cases: &[(&str, Vec<Vec<u8>>)] = &[
        ("empty-frame", vec![vec![]]),
        ("error-reply", recorded("error-reply")),
        ("last-frame-empty", vec![b"x".to_vec(), vec![]]),
        ("mixed", recorded("mixed")),
        ("table-full", table_full),
        ("three-frames", three),
    ];
    for (name, frames) in cases {
        let bytes = golden(name);
        assert_eq!(frames_of(&bytes).unwrap(), *frames, "{name}");
        assert!(bundle_of(frames) == bytes, "{name}");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bundle");
    let files = std::fs::read_dir(folder).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|end| end == "bundle")
    });
    assert_eq!(files.count(), cases.len());
}

#[test]
fn the_message_decoder_takes_the_frames_of_every_recorded_message() {
    let mut storage = Box::new(Storage::<300>::new());
    let mut again = Box::new(Storage::<300>::new());
    for line in common::lines("tensors.jsonl") {
        let frames = common::frames(&line);
        let bytes = bundle_of(&frames);
        let bundle = Bundle::decode(&bytes).unwrap();
        let mut room = [&[][..]; 300];
        let read = bundle.frames_in(&mut room).unwrap();
        let message = Message::decode(read, &mut storage).unwrap();
        let sent = Message::decode(&frames, &mut again).unwrap();
        assert_eq!(message.len(), sent.len());
        for (read, sent) in message.tensors().zip(sent.tensors()) {
            assert!(read.name() == sent.name() && read.bytes() == sent.bytes());
        }
    }
}

#[test]
fn storage_that_is_too_small_is_refused_and_left_alone() {
    let bytes = sample();
    let bundle = Bundle::decode(&bytes).unwrap();
    let mut storage = [&b"mine"[..]; 2];
    let error = bundle.frames_in(&mut storage).unwrap_err();
    let (needed, capacity) = (3, 2);
    assert_eq!(error.kind(), ErrorKind::StorageFull { needed, capacity });
    assert_eq!(storage, [b"mine"; 2]);
    let mut storage = [&b"mine"[..]; 4];
    assert_eq!(bundle.frames_in(&mut storage).unwrap().len(), 3);
    assert_eq!(storage[3], b"mine");
}

#[test]
fn the_iterators_give_the_frames_from_both_ends() {
    let bytes = sample();
    let bundle = Bundle::decode(&bytes).unwrap();
    let mut frames = bundle.frames();
    assert_eq!((frames.len(), frames.clone().count()), (3, 3));
    assert_eq!(frames.next_back(), Some(&bytes[192..]));
    assert_eq!(frames.next(), Some(&b"metadata"[..]));
    assert_eq!((frames.len(), frames.next_back()), (1, Some(&[][..])));
    assert_eq!((frames.next(), frames.next_back()), (None, None));
    let backwards: Vec<_> = bundle.index().ranges().rev().collect();
    assert_eq!(backwards, [192..262, 192..192, 128..136]);
    assert!(bundle.into_iter().eq(&bundle));
    assert_eq!(format!("{bundle:?}"), "Bundle { len: 3, total_len: 262 }");
    assert_eq!(format!("{:?}", bundle.frames()), "Frames { len: 3 }");
}

#[test]
fn in_an_aligned_buffer_every_frame_is_aligned() {
    #[repr(align(64))]
    struct Aligned([u8; 4096]);

    let frames: Vec<Vec<u8>> = (0..20_u8)
        .map(|length| vec![length; usize::from(length) * 7])
        .collect();
    let mut buffer = Aligned([0xa5; 4096]);
    let bytes = encode_into(&frames, &mut buffer.0).unwrap();
    let bundle = Bundle::decode(bytes).unwrap();
    assert!(bundle.frames().eq(&frames));
    for (frame, range) in bundle.frames().zip(bundle.index().ranges()) {
        assert_eq!(frame.as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!(range.start % ALIGNMENT, 0);
    }
    // Anywhere else they are read as well.
    let mut shifted = vec![0; bytes.len() + 1];
    shifted[1..].copy_from_slice(bytes);
    assert!(Bundle::decode(&shifted[1..]).unwrap().frames().eq(&frames));
}

#[test]
fn a_larger_buffer_keeps_what_follows_the_bundle() {
    let mut buffer = [0xa5; 300];
    let frames: [&[u8]; 3] = [b"metadata", b"", &(0..70).collect::<Vec<u8>>()];
    let bytes = encode_into(&frames, &mut buffer).unwrap();
    assert!(*bytes == *sample());
    assert_eq!(buffer[262..], [0xa5; 38]);
}

#[test]
fn a_buffer_that_is_too_small_is_refused_and_left_alone() {
    let frames: [&[u8]; 2] = [b"metadata", b"payload"];
    let needed = encoded_len([8, 7]).unwrap();
    assert_eq!(needed, 135);
    for capacity in 0..needed {
        let mut buffer = vec![0xa5; capacity];
        let kind = ErrorKind::BufferTooSmall { needed, capacity };
        for error in [
            encode_into(&frames, &mut buffer).unwrap_err(),
            lend([8, 7], &mut buffer).map(|_| ()).unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.offset()), (kind, 0));
            let text = format!("bundle of 135 bytes for a buffer of {capacity}");
            assert_eq!(error.to_string(), text);
        }
        assert!(buffer.iter().all(|byte| *byte == 0xa5));
    }
}

#[test]
fn no_frames_and_lengths_past_any_buffer_are_refused() {
    let huge = usize::try_from(isize::MAX).unwrap();
    let cases: &[(&[usize], ErrorKind)] = &[
        (&[], ErrorKind::NoFrames),
        (&[usize::MAX], ErrorKind::TooLarge),
        (&[huge], ErrorKind::TooLarge),
        (&[huge - 63], ErrorKind::TooLarge),
        (&[huge / 2, huge / 2], ErrorKind::TooLarge),
        (&[usize::MAX, 1], ErrorKind::TooLarge),
        (&[usize::MAX - 63, 1], ErrorKind::TooLarge),
        (&[usize::MAX / 2, usize::MAX / 2, 2], ErrorKind::TooLarge),
    ];
    let mut buffer = [0xa5; 256];
    for (lengths, kind) in cases {
        let lengths = lengths.iter().copied();
        let error = encoded_len(lengths.clone()).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (*kind, 0));
        assert_eq!(lend(lengths, &mut buffer).map(|_| ()), Err(error));
        assert_eq!(buffer, [0xa5; 256]);
    }
    // The most there can be: 64 bytes before the frame.
    assert_eq!(encoded_len([huge - 64]), Ok(huge));
}

#[test]
fn lent_places_are_where_the_frames_are_read() {
    let lengths = [3, 0, 64, 65, 0];
    let mut buffer = [0xa5; 1000];
    let mut places = lend(lengths, &mut buffer).unwrap();
    let total = places.total_len();
    assert_eq!(
        (places.len(), Ok(total)),
        (5, encoded_len(lengths.into_iter()))
    );
    assert_eq!(
        format!("{places:?}"),
        format!("Places {{ len: 5, total_len: {total} }}")
    );
    // All of them at once, and filled in another order.
    let mut lent: Vec<_> = places.by_ref().collect();
    assert_eq!((places.len(), places.next()), (0, None));
    assert!(lent.iter().map(|place| place.len()).eq(lengths));
    for (place, value) in lent.iter_mut().zip(1..=5_u8).rev() {
        place.fill(value);
    }
    let expected: [&[u8]; 5] = [&[1; 3], &[], &[3; 64], &[4; 65], &[]];
    assert_eq!(frames_of(&buffer[..total]).unwrap(), expected);
    assert!(bundle_of(&expected) == buffer[..total]);
    assert!(buffer[total..].iter().all(|byte| *byte == 0xa5));
}

#[test]
fn lengths_that_change_between_two_looks_are_refused() {
    use std::cell::Cell;

    /// Gives the lengths of the first list once, then those of the second.
    fn changing<'a>(
        calls: &'a Cell<usize>,
        lists: [&'a [usize]; 2],
    ) -> impl Iterator<Item = usize> + Clone + 'a {
        let ends = lists.map(<[usize]>::len);
        (0..usize::MAX).map_while(move |index| {
            let call = calls.replace(calls.get() + 1);
            // The first pass ends with one look past the end.
            let pass = usize::from(call > ends[0]);
            lists[pass].get(index).copied()
        })
    }

    let lists: [[&[usize]; 2]; 4] = [
        [&[8, 7], &[8, 700]],
        [&[8, 7], &[8]],
        [&[8, 7], &[8, 7, 0]],
        [&[8, 7], &[800, 7]],
    ];
    for lists in lists {
        let calls = Cell::new(0);
        let mut buffer = [0xa5; 1000];
        let error = lend(changing(&calls, lists), &mut buffer).unwrap_err();
        let kind = ErrorKind::LengthsChanged;
        assert_eq!((error.kind(), error.offset()), (kind, 0), "{lists:?}");
    }

    /// Longer at each look.
    struct Growing(Cell<usize>);

    impl AsRef<[u8]> for Growing {
        fn as_ref(&self) -> &[u8] {
            self.0.set(self.0.get() + 1);
            &b"metadata"[..self.0.get()]
        }
    }

    let mut buffer = [0xa5; 1000];
    let error = encode_into(&[Growing(Cell::new(0))], &mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LengthsChanged);
    #[cfg(feature = "alloc")]
    {
        let error = encode_to_vec(&[Growing(Cell::new(0))]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LengthsChanged);
    }
}

#[test]
fn a_private_copy_of_the_first_bytes_says_where_the_frames_are() {
    let bytes = sample();
    let total = bytes.len();
    assert_eq!(Index::len_from_header(&bytes[..HEADER_LEN], total), Ok(72));
    // More than the first bytes will do, and the frames need not be there.
    for length in [72, 73, 262] {
        let index = Index::decode(&bytes[..length], total).unwrap();
        assert!(index.ranges().eq([128..136, 192..192, 192..262]));
        assert_eq!(index.check_padding(&bytes), Ok(()));
    }
    let error = Index::decode(&bytes[..71], total).unwrap_err();
    let (expected, actual) = (72, 71);
    assert_eq!(error.kind(), ErrorKind::Truncated { expected, actual });
    assert_eq!(error.offset(), 71);

    // Other padding in the body than in the copy: the body's is what counts.
    let mut other = bytes.clone();
    other[150] = 9;
    let index = Index::decode(&bytes[..72], total).unwrap();
    let error = index.check_padding(&other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NonZeroPadding { found: 9 });
    assert_eq!(error.offset(), 150);
    // A body that is shorter than was said, or longer.
    let error = index.check_padding(&bytes[..200]).unwrap_err();
    let (expected, actual) = (262, 200);
    assert_eq!(error.kind(), ErrorKind::Truncated { expected, actual });
    other[150] = 0;
    other.push(7);
    assert_eq!(index.check_padding(&other), Ok(()));
}

#[cfg(feature = "alloc")]
#[test]
fn a_vector_is_written_like_a_buffer() {
    let counts = [1, 2, 63, 64, 65, 129, 1000];
    for count in counts {
        let frames: Vec<_> = (0..count).map(|length| vec![7; length % 200]).collect();
        let vector = encode_to_vec(&frames).unwrap();
        assert!(vector == bundle_of(&frames));
        assert_eq!(vector.capacity(), vector.len());
    }
    let none: [&[u8]; 0] = [];
    let error = encode_to_vec(&none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoFrames);
}
