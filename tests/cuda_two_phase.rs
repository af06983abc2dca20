//! A message in two phases: the metadata first, then each payload straight into pinned memory, from where the
//! device copies it. The host copies each byte once in all.
#![cfg(feature = "cuda")]

#[path = "cuda_sim/given.rs"]
mod given;
mod simulated;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use tensorwire::DType;
use tensorwire::cuda::{Cuda, Landing};
use tensorwire::device::{Device as _, DeviceError as _, ErrorKind, Landing as _};
use tensorwire::error::CastError;
use tensorwire::message::Decoder;
use tensorwire::transport::Wait;

use given::{Given, SLOT_BYTES, SLOTS, device_bytes, frames, open};

/// Small and large tensors, more than the ring holds, an empty one and a bool that is none among them.
fn message() -> Vec<Given> {
    let mut given = vec![
        Given::new("timestep", DType::Int64, &[1]),
        Given::new("latents", DType::BFloat16, &[1, 16, 30, 52]),
        Given::new("none", DType::Float32, &[0, 4]),
        Given::new("mask", DType::Bool, &[77]),
        Given::new("embeds", DType::Float32, &[77, 64]),
        Given::new("scale", DType::Float64, &[]),
    ];
    given[3].bytes[70] = 2;
    assert!(payload_bytes(&given) > 4 * SLOTS * SLOT_BYTES);
    given
}

fn payload_bytes(given: &[Given]) -> usize {
    given.iter().map(|given| given.bytes.len()).sum()
}

/// Where payload bytes were put, and how many.
#[derive(Default)]
struct Copies {
    bytes: usize,
    pinned: usize,
}

impl Copies {
    /// Notes that the host has put `len` bytes at the start of `room`.
    fn note(&mut self, room: &[u8], len: usize) {
        self.bytes += len;
        let is_pinned = !simulated::scripted() || simulated::is_pinned(&room[..len]);
        self.pinned += usize::from(is_pinned) * len;
    }
}

/// What holds of a message that has landed, whichever way its payloads came.
fn assert_landed(cuda: &Cuda, landing: Landing, given: &[Given], copies: &Copies, staged: u64) {
    // Each byte was put once by the host, and just where the device copies it from: no other pinned
    // memory is there but the ring, and the device copies from pinned memory alone.
    let bytes = payload_bytes(given);
    assert_eq!((copies.bytes, copies.pinned), (bytes, bytes));
    let tensors = landing.finish().unwrap();
    for (given, tensor) in given.iter().zip(tensors.iter()) {
        given.assert_is(tensor);
    }
    let (index, byte) = (70, 2);
    let error = CastError::InvalidBool { index, byte };
    assert_eq!(tensors.get(3).unwrap().view::<bool>().err(), Some(error));
    // As many slots as the bytes need: each was filled once.
    let taken = cuda.statistics().taken - staged;
    let needed = bytes.div_ceil(SLOT_BYTES) as u64;
    assert!((needed..needed + 2).contains(&taken), "{taken} of {needed}");
    // The ring is all the pinned memory there is.
    if simulated::scripted() {
        assert_eq!(simulated::live().pinned, 1);
    }
    drop(tensors);
}

/// Reads the payloads from `from` into the landing's room.
fn read_payloads(landing: &mut Landing, from: &mut TcpStream, copies: &mut Copies) {
    while landing.missing() > 0 {
        let room = landing.room(Wait::Forever).unwrap();
        let read = from.read(room).unwrap();
        assert!(read > 0, "the peer stopped half way");
        copies.note(room, read);
        landing.filled(read).unwrap();
    }
}

fn read_metadata(from: &mut TcpStream) -> Vec<u8> {
    let mut len = [0; 4];
    from.read_exact(&mut len).unwrap();
    let mut metadata = vec![0; u32::from_le_bytes(len).try_into().unwrap()];
    from.read_exact(&mut metadata).unwrap();
    metadata
}

fn send(to: &mut TcpStream, frames: &[Vec<u8>], piece: usize) {
    let metadata = &frames[0];
    let len = u32::try_from(metadata.len()).unwrap();
    to.write_all(&len.to_le_bytes()).unwrap();
    to.write_all(metadata).unwrap();
    for payload in &frames[1..] {
        for piece in payload.chunks(piece) {
            to.write_all(piece).unwrap();
        }
    }
}

#[test]
fn payloads_of_a_byte_stream_land_in_pinned_slots() {
    simulated::test("payloads_of_a_byte_stream_land_in_pinned_slots", || {
        let (cuda, stream) = open();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let given = message();
        let frames = frames(&given);
        const PIECES: &[usize] = &[1000, 333, 1 << 20];
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut to = TcpStream::connect(address).unwrap();
                for &piece in PIECES {
                    send(&mut to, &frames, piece);
                }
            });
            let mut from = listener.accept().unwrap().0;
            let mut decoder = Decoder::new();
            for _ in PIECES {
                let metadata = read_metadata(&mut from);
                let metadata = decoder.decode_metadata(&metadata).unwrap();
                let (staged, mut copies) = (cuda.statistics().taken, Copies::default());
                let mut landing = cuda.land(&metadata, &stream).unwrap();
                read_payloads(&mut landing, &mut from, &mut copies);
                assert_landed(&cuda, landing, &given, &copies, staged);
            }
        });
    });
}

#[test]
fn a_peer_that_stops_half_way_costs_nothing() {
    simulated::test("a_peer_that_stops_half_way_costs_nothing", || {
        let (cuda, stream) = open();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let given = message();
        let mut frames = frames(&given);
        let last = frames.pop().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut to = TcpStream::connect(address).unwrap();
                send(&mut to, &frames, 1000);
            });
            let mut from = listener.accept().unwrap().0;
            let mut decoder = Decoder::new();
            let metadata = read_metadata(&mut from);
            let metadata = decoder.decode_metadata(&metadata).unwrap();
            let mut landing = cuda.land(&metadata, &stream).unwrap();
            let mut read = 1;
            while read > 0 {
                read = from.read(landing.room(Wait::Forever).unwrap()).unwrap();
                landing.filled(read).unwrap();
            }
            assert_eq!(landing.missing(), last.len());
            let missing = last.len();
            let error = landing.finish().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Incomplete { missing });
            assert_eq!(error.tensor(), Some(5));
        });
        if simulated::scripted() {
            simulated::settle();
        }
        cuda.context().synchronize().unwrap();
        cuda.poll().unwrap();
        assert_eq!((device_bytes(), cuda.statistics().in_use), (0, 0));
    });
}

#[cfg(feature = "zmq")]
#[test]
fn payloads_of_a_zmq_message_land_in_pinned_slots() {
    use given::calls;
    use tensorwire::transport::{Frames as _, RecvFrames as _, SendFrames as _, zmq};

    simulated::test("payloads_of_a_zmq_message_land_in_pinned_slots", || {
        let (cuda, stream) = open();
        let context = zmq::Context::new();
        let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
        let mut push = context.push().connect(pull.endpoint()).unwrap();
        let given = message();
        let frames = frames(&given);
        let lent: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        let mut decoder = Decoder::new();
        let mut received = zmq::Message::default();
        for _ in 0..3 {
            push.send(&lent).unwrap();
            pull.recv_into(&mut received).unwrap();
            // The payloads are there already, but where they go is said by the metadata alone.
            let (staged, mut copies) = (cuda.statistics().taken, Copies::default());
            let metadata = decoder.decode_metadata(received.frame(0).unwrap()).unwrap();
            let mut landing = cuda.land(&metadata, &stream).unwrap();
            let before = calls("cuMemcpyHtoDAsync_v2");
            for index in 0..metadata.len() {
                let mut payload = received.frame(index + 1).unwrap();
                while !payload.is_empty() {
                    let room = landing.room(Wait::Forever).unwrap();
                    let len = room.len().min(payload.len());
                    let (now, rest) = payload.split_at(len);
                    room[..len].copy_from_slice(now);
                    copies.note(room, len);
                    landing.filled(len).unwrap();
                    payload = rest;
                }
            }
            // The next message may come where this one was.
            received = zmq::Message::default();
            if simulated::scripted() {
                let slots = cuda.statistics().taken - staged;
                let copies = calls("cuMemcpyHtoDAsync_v2") - before;
                // One for each slot, and one more where the memory that bytes go to changes: small, large, small, large, small.
                assert!((slots..=slots + 4).contains(&copies), "{copies} of {slots}");
            }
            assert_landed(&cuda, landing, &given, &copies, staged);
        }
    });
}
