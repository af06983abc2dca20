//! A writer that knows the channel, and does not keep to the format.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ::iceoryx2::node::{Node, NodeBuilder};
use ::iceoryx2::port::publisher::Publisher;
use ::iceoryx2::prelude::{
    Alignment, Config, Path as SystemPath, SemanticString, SignalHandlingMode, ipc_threadsafe,
};

use tensorwire::Decoder;
use tensorwire::bundle;
use tensorwire::transport::iceoryx2::{Builder, Error, Message, Receiver, Sender};
use tensorwire::transport::{
    Caps, ErrorKind, Frames, Observed, RecvFrames, SendFrames, TransportError,
};

use super::channels::Folder;
use super::unique_name;
use crate::copied;

type Block = [u8; 64];

/// A publisher of iceoryx2's own on a channel.
struct Raw {
    publisher: Publisher<ipc_threadsafe::Service, [Block], ()>,
    _node: Node<ipc_threadsafe::Service>,
}

/// Where the bytes lie that were sent.
#[derive(Clone, Copy)]
struct Sent(*mut u8, usize);

// SAFETY: an address; whoever writes there says so below.
unsafe impl Send for Sent {}

impl Sent {
    /// Writes after sending, as nobody may.
    fn write(self, at: usize, byte: u8) {
        assert!(at < self.1);
        // SAFETY: `write_volatile` asks for a valid address: it is within a sample of
        // a publisher that is still there.
        unsafe { self.0.add(at).write_volatile(byte) };
    }
}

impl Raw {
    fn open(folder: &Folder, name: &str) -> Self {
        let mut config = Config::default();
        let root = SystemPath::new(folder.0.to_str().unwrap().as_bytes()).unwrap();
        config.global.set_root_path(&root);
        let user = std::fs::metadata("/proc/self").unwrap().uid();
        let prefix = format!("tw_{user}_");
        config.global.prefix = prefix.as_str().try_into().unwrap();
        let node = NodeBuilder::new()
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .config(&config)
            .create()
            .unwrap();
        let service = node
            .service_builder(&name.try_into().unwrap())
            .publish_subscribe::<[Block]>()
            .payload_alignment(Alignment::new(64).unwrap())
            .open()
            .unwrap();
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(1 << 14)
            .create()
            .unwrap();
        Self {
            publisher,
            _node: node,
        }
    }

    /// Sends `bytes`, and zeros up to whole blocks.
    fn send(&self, bytes: &[u8]) -> Sent {
        let mut sample = self
            .publisher
            .loan_slice_uninit(bytes.len().div_ceil(64))
            .unwrap()
            .write_from_fn(|_| [0; 64]);
        let payload = sample.payload_mut().as_flattened_mut();
        payload[..bytes.len()].copy_from_slice(bytes);
        let sent = Sent(payload.as_mut_ptr(), payload.len());
        assert_eq!(sample.send().unwrap(), 1);
        sent
    }
}

struct Attacked {
    folder: Folder,
    name: String,
    sender: Sender,
    receiver: Receiver,
}

fn attacked(caps: Caps) -> Attacked {
    let folder = Folder::new();
    let name = unique_name();
    let channel = Builder::new(&name).directory(&folder.0).caps(caps);
    let sender = channel.clone().sender().unwrap();
    let receiver = channel.receiver().unwrap();
    Attacked {
        folder,
        name,
        sender,
        receiver,
    }
}

fn good() -> Vec<u8> {
    bundle::encode_to_vec(&["metadata".as_bytes(), b"payload", &[7; 200]]).unwrap()
}

/// A good bundle with some bytes replaced.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut bundle = good();
    bundle[at..at + bytes.len()].copy_from_slice(bytes);
    bundle
}

#[test]
fn what_is_no_bundle_is_refused_and_the_next_message_is_intact() {
    let mut at = attacked(Caps::new());
    let raw = Raw::open(&at.folder, &at.name);
    let huge = u64::MAX.to_le_bytes();
    let cases = [
        ("zeros", vec![0; 64]),
        ("noise", vec![0xa5; 6400]),
        ("other version", with(8, &[2])),
        ("no frames", with(12, &[0, 0, 0, 0])),
        ("many frames", with(12, &[0xff; 4])),
        ("total too small", with(16, &100_u64.to_le_bytes())),
        ("total too large", with(16, &1000_u64.to_le_bytes())),
        ("total huge", with(16, &huge)),
        ("offset into the table", with(24, &[0; 8])),
        ("offset huge", with(24, &huge)),
        ("length huge", with(32, &huge)),
        ("length into the next frame", with(32, &[65])),
        ("last length one less", with(64, &[199])),
        ("frames overlap", with(40, &128_u64.to_le_bytes())),
        ("cut", good()[..128].to_vec()),
        ("trailing block", [good(), vec![0; 64]].concat()),
    ];
    let mut message = Message::default();
    for (number, (name, bytes)) in (1..).zip(&cases) {
        raw.send(bytes);
        let Err(error) = at.receiver.recv_into(&mut message) else {
            panic!("{name}: {message:?}")
        };
        assert!(matches!(error, Error::Malformed(_)), "{name}: {error}");
        assert_eq!(error.kind(), ErrorKind::Malformed, "{name}");
        assert!(message.frames().is_empty(), "{name}");
        assert_eq!(at.receiver.counters().refused_malformed, number, "{name}");

        at.sender.send(&[b"good", name.as_bytes()]).unwrap();
        at.receiver.recv_into(&mut message).unwrap();
        assert_eq!(copied(&message), [b"good", name.as_bytes()], "{name}");
    }
    // Nothing of it is kept: the raw writer has all its places.
    raw.send(&good());
    at.receiver.recv_into(&mut message).unwrap();
    assert_eq!(message.frame(2), Some(&[7; 200][..]));
    // Padding is none of the receiver's business.
    raw.send(&with(100, &[1]));
    at.receiver.recv_into(&mut message).unwrap();
    assert_eq!(message.frame(1), Some(&b"payload"[..]));
}

#[test]
fn samples_of_nothing_are_passed_over() {
    let mut at = attacked(Caps::new());
    let raw = Raw::open(&at.folder, &at.name);
    let mut message = Message::default();
    for _ in 0..100 {
        raw.send(&[]);
        let error = at.receiver.try_recv_into(&mut message).unwrap_err();
        assert_eq!(error, Error::WouldBlock);
    }
    at.sender.send(&[b"good"]).unwrap();
    raw.send(&[]);
    at.receiver.try_recv_into(&mut message).unwrap();
    assert_eq!(copied(&message), [b"good"]);
}

#[test]
fn a_table_over_the_caps_is_not_even_copied() {
    let mut at = attacked(Caps::new().with_frames(10));
    let raw = Raw::open(&at.folder, &at.name);
    let frames = vec![b""; 10_000];
    let mut bytes = bundle::encode_to_vec(&frames).unwrap();
    // And it lies.
    bytes[24..24 + 16].fill(0xff);
    raw.send(&bytes);
    let error = at.receiver.recv().unwrap_err();
    let refused = error.refused().unwrap();
    assert_eq!((refused.limit(), refused.actual()), (10, 10_000));
}

#[test]
fn what_is_changed_after_sending_changes_no_size_and_no_metadata() {
    let mut at = attacked(Caps::new());
    let raw = Raw::open(&at.folder, &at.name);
    let mut message = Message::default();
    let bytes = good();
    let expected = [&b"metadata"[..], b"payload", &[7; 200]];
    for byte in 0..bytes.len() {
        // Before it is received: refused, or as whole as if it had been sent so.
        let sent = raw.send(&bytes);
        sent.write(byte, !bytes[byte]);
        if at.receiver.recv_into(&mut message).is_ok() {
            assert!(byte >= 72, "byte {byte} is not looked at");
            let lengths: Vec<_> = message.frames().iter().map(|f| f.as_ref().len()).collect();
            assert_eq!(lengths, [8, 7, 200], "byte {byte}");
        }
        // After: the sizes and the metadata stay.
        let sent = raw.send(&bytes);
        at.receiver.recv_into(&mut message).unwrap();
        sent.write(byte, !bytes[byte]);
        for (frame, expected) in message.frames().iter().zip(expected) {
            assert_eq!(frame.as_ref().len(), expected.len(), "byte {byte}");
        }
        assert_eq!(message.frames().len(), 3);
        assert_eq!(message.frame(0), Some(expected[0]), "byte {byte}");
    }
    at.sender.send(&[b"good"]).unwrap();
    at.receiver.recv_into(&mut message).unwrap();
    assert_eq!(copied(&message), [b"good"]);
}

#[test]
fn a_writer_that_never_stops_writing_breaks_nothing() {
    let mut at = attacked(Caps::new());
    let raw = Raw::open(&at.folder, &at.name);
    let metadata =
        br#"{"tensor_descriptors":[{"field_name":"x","shape":[200],"dtype":"uint8","list_index":-1}]}"#;
    let bytes = bundle::encode_to_vec(&[&metadata[..], &[7; 200]]).unwrap();
    let mut sent = raw.send(&bytes);
    let done = Arc::new(AtomicBool::new(false));
    let stop = done.clone();
    // The place is lent again and again: it always writes into the same one.
    let address = sent;
    let writer = thread::spawn(move || {
        let mut state = 1_u32;
        let address = address;
        while !stop.load(Ordering::Relaxed) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            address.write(state as usize >> 8 & 0xff, (state >> 24) as u8);
        }
    });
    let (mut message, mut decoder) = (Message::default(), Decoder::new());
    for _ in 0..20_000 {
        match at.receiver.recv_into(&mut message) {
            Ok(()) => {
                let lengths: usize = message.frames().iter().map(|f| f.as_ref().len()).sum();
                assert!(lengths <= sent.1);
                let frame = message.frame(0).map(<[u8]>::to_vec);
                let _ = decoder
                    .decode(message.frames())
                    .map(|m| m.tensor("x").is_some());
                assert_eq!(message.frame(0).map(<[u8]>::to_vec), frame);
            }
            Err(error) => {
                assert!(matches!(error, Error::Malformed(_)), "{error}");
            }
        }
        message.clear();
        sent = raw.send(&bytes);
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    at.receiver.recv_into(&mut message).ok();
    at.sender.send(&[b"good"]).unwrap();
    at.receiver.recv_into(&mut message).unwrap();
    assert_eq!(copied(&message), [b"good"]);
}
