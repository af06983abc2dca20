//! Payloads that are read where they stay.

use tensorwire::device::host::{Host, Landing, Stream};
use tensorwire::device::{Device, DeviceError, ErrorKind, Landing as _};
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use crate::{address, assert_same, frames_of_bytes, metadata_of_bytes};

fn land(host: &Host, metadata: &[u8]) -> Landing {
    let mut decoder = Decoder::new();
    let metadata = decoder.decode_metadata(metadata).unwrap();
    host.land(&metadata, &Stream).unwrap()
}

/// Fills a landing by way of its rooms, at most `piece` bytes at a time.
fn fill(landing: &mut Landing, mut bytes: &[u8], piece: usize) {
    while !bytes.is_empty() {
        assert_eq!(landing.missing(), bytes.len());
        let room = landing.room(Wait::Never).unwrap();
        assert!(!room.is_empty() && room.len() <= bytes.len());
        let len = room.len().min(piece);
        room[..len].copy_from_slice(&bytes[..len]);
        landing.filled(len).unwrap();
        bytes = &bytes[len..];
    }
}

#[test]
fn payloads_land_in_pieces_of_any_size() {
    let lens = [0, 1, 700, 256, 0, 300_001, 0];
    let frames = frames_of_bytes(&lens);
    let payloads = frames[1..].concat();
    for piece in [1, 2, 3, 255, 256, 257, 4096, 100_000, usize::MAX] {
        for batch_bytes in [0, 256, usize::MAX] {
            let host = Host::new().with_batch_bytes(batch_bytes);
            let mut landing = land(&host, &frames[0]);
            fill(&mut landing, &payloads, piece);
            assert_eq!(landing.missing(), 0);
            assert!(landing.room(Wait::Never).unwrap().is_empty());
            assert_same(&landing.finish().unwrap(), &frames);

            let mut landing = land(&host, &frames[0]);
            for bytes in payloads.chunks(piece) {
                landing.copy_from(bytes, Wait::Never).unwrap();
            }
            assert_same(&landing.finish().unwrap(), &frames);
        }
    }
}

#[test]
fn both_ways_of_filling_may_take_turns() {
    let frames = frames_of_bytes(&[10, 500_000, 3]);
    let payloads = frames[1..].concat();
    let mut landing = land(&Host::new(), &frames[0]);
    let (mut rest, mut turn) = (&payloads[..], 0);
    while !rest.is_empty() {
        let now = rest.len().min(1 + turn * 977);
        // Looked at, and then not used: that takes nothing.
        let room = landing.room(Wait::Never).unwrap();
        room.fill(0xee);
        if turn % 3 == 0 {
            landing.filled(0).unwrap();
        }
        if turn % 2 == 0 {
            landing.copy_from(&rest[..now], Wait::Never).unwrap();
            rest = &rest[now..];
        } else {
            let room = landing.room(Wait::Never).unwrap();
            let now = now.min(room.len());
            room[..now].copy_from_slice(&rest[..now]);
            landing.filled(now).unwrap();
            rest = &rest[now..];
        }
        turn += 1;
    }
    assert_same(&landing.finish().unwrap(), &frames);
}

#[test]
fn what_is_read_into_a_room_is_where_the_tensor_stays() {
    let frames = frames_of_bytes(&[5, 600_000, 70]);
    let mut landing = land(&Host::new(), &frames[0]);
    let mut starts = Vec::new();
    for payload in &frames[1..] {
        starts.push(address(landing.room(Wait::Never).unwrap()));
        landing.copy_from(payload, Wait::Never).unwrap();
    }
    let tensors = landing.finish().unwrap();
    let lie = tensors.iter().map(|tensor| address(tensor.bytes()));
    assert!(lie.eq(starts));
}

#[test]
fn a_landing_with_bytes_missing_gives_no_tensors() {
    let frames = frames_of_bytes(&[4, 0, 6]);
    /// (bytes given, bytes missing, the tensor that they are of)
    const CUTS: &[(usize, usize, usize)] = &[(0, 10, 0), (3, 7, 0), (4, 6, 2), (9, 1, 2)];
    for &(given, missing, tensor) in CUTS {
        let mut landing = land(&Host::new(), &frames[0]);
        let payloads = frames[1..].concat();
        landing.copy_from(&payloads[..given], Wait::Never).unwrap();
        assert_eq!(landing.missing(), missing);
        let error = landing.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete { missing });
        assert_eq!(error.tensor(), Some(tensor));
    }
}

#[test]
fn more_bytes_than_are_missing_are_refused_and_none_is_taken() {
    let frames = frames_of_bytes(&[4, 6]);
    let payloads = frames[1..].concat();
    let mut landing = land(&Host::new(), &frames[0]);
    landing.copy_from(&payloads[..3], Wait::Never).unwrap();
    let error = landing.copy_from(&[0; 8], Wait::Never).unwrap_err();
    let (expected, actual) = (7, 8);
    assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    assert_eq!(landing.missing(), 7);

    // Nor are more taken as filled than there was room.
    let error = landing.filled(1).unwrap_err();
    let (expected, actual) = (0, 1);
    assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    assert_eq!(landing.room(Wait::Never).unwrap().len(), 1);
    let error = landing.filled(2).unwrap_err();
    let (expected, actual) = (1, 2);
    assert_eq!(error.kind(), ErrorKind::Length { expected, actual });
    landing.room(Wait::Never).unwrap()[0] = payloads[3];
    landing.filled(1).unwrap();
    // One room is filled once.
    assert!(landing.filled(1).is_err());

    landing.copy_from(&payloads[4..], Wait::Never).unwrap();
    landing.copy_from(&[], Wait::Never).unwrap();
    assert!(landing.copy_from(&[0], Wait::Never).is_err());
    assert_same(&landing.finish().unwrap(), &frames);
}

#[test]
fn a_message_without_a_payload_byte_is_there_at_once() {
    for lens in [&[][..], &[0, 0]] {
        let metadata = metadata_of_bytes(lens);
        let landing = land(&Host::new(), &metadata);
        assert_eq!(landing.missing(), 0);
        assert_eq!(landing.finish().unwrap().len(), lens.len());
    }
}
