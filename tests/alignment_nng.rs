//! Tensors are read out of real NNG bodies, wherever NNG put them.
//!
//! Frames lie at multiples of 64 from the start of the body, so they are aligned
//! as the body is. What that comes to, for each protocol and transport and over
//! bodies of many lengths, is measured, shown with `--nocapture`, and held
//! against the table in the documentation of the `nng` transport. Every view is
//! read in every way there is, against the bytes that were sent.

#![cfg(feature = "nng")]

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bytemuck::NoUninit;
use half::bf16;
use tensorwire::bundle;
use tensorwire::error::CastError;
use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec};
use tensorwire::tensor::Element;
use tensorwire::transport::nng::{Context, Message};
use tensorwire::transport::{Frames, RecvFrames, SendFrames};
use tensorwire::{DType, TensorView};

/// (protocol, what divides every address over inproc, ipc, tcp): the table of the docs.
const TABLE: &[(&str, [usize; 3])] = &[
    ("PUSH to PULL", [16, 16, 16]),
    ("PAIR, version 0", [16, 16, 16]),
    ("PAIR, version 1", [4, 4, 4]),
    ("PUB to SUB", [16, 16, 16]),
    ("REQ to REP", [4, 4, 4]),
    ("REP to REQ", [4, 4, 4]),
];

#[test]
fn frames_are_aligned_as_the_documentation_says() {
    let mut measured = vec![[0; 3]; TABLE.len()];
    for (column, scheme) in ["inproc", "ipc", "tcp"].into_iter().enumerate() {
        for (row, alignment) in measure(scheme).into_iter().enumerate() {
            measured[row][column] = alignment;
        }
    }
    let mut shown = String::from("protocol          inproc  ipc  tcp\n");
    for ((name, _), [inproc, ipc, tcp]) in TABLE.iter().zip(&measured) {
        writeln!(shown, "{name:<18}{inproc:>5}{ipc:>5}{tcp:>5}").unwrap();
    }
    println!("{shown}");
    let documented: Vec<_> = TABLE.iter().map(|(_, row)| *row).collect();
    assert_eq!(measured, documented, "\n{shown}");
    let docs = include_str!("../src/transport/nng/mod.rs");
    for (name, [inproc, ipc, tcp]) in TABLE {
        let row = format!("//! | {name} | {inproc} | {ipc} | {tcp} |\n");
        assert!(docs.contains(&row), "{row}");
    }
}

/// What divides every address that frames had, by protocol in the order of the table.
fn measure(scheme: &str) -> Vec<usize> {
    let context = Context::new();
    let mut measured = Vec::new();
    {
        let mut pull = context.pull().listen(&endpoint(scheme)).unwrap();
        let mut push = context.push().dial(pull.endpoint()).unwrap();
        measured.push(one_way(&mut push, &mut pull));
    }
    {
        let mut left = context.pair0().listen(&endpoint(scheme)).unwrap();
        let mut right = context.pair0().dial(left.endpoint()).unwrap();
        measured.push(one_way(&mut right, &mut left).min(one_way(&mut left, &mut right)));
    }
    {
        let mut left = context.pair1().listen(&endpoint(scheme)).unwrap();
        let mut right = context.pair1().dial(left.endpoint()).unwrap();
        measured.push(one_way(&mut right, &mut left).min(one_way(&mut left, &mut right)));
    }
    {
        let mut publish = context.publish().listen(&endpoint(scheme)).unwrap();
        let subscribe = context.subscribe().topic(b"");
        let mut subscribe = subscribe.dial(publish.endpoint()).unwrap();
        let mut message = Message::default();
        // What is published before the subscriber is there is lost.
        while subscribe.try_recv_into(&mut message).is_err() {
            publish.send(&[b"first"]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        publish.send(&[b"last of these"]).unwrap();
        while message.frame(0) != Some(b"last of these") {
            subscribe.recv_into(&mut message).unwrap();
        }
        measured.push(one_way(&mut publish, &mut subscribe));
    }
    let mut reply = context.reply().listen(&endpoint(scheme)).unwrap();
    let mut request = context.request().dial(reply.endpoint()).unwrap();
    let (mut there, mut back) = (usize::MAX, usize::MAX);
    for sent in messages() {
        request.send(&sent.frames()).unwrap();
        there = there.min(sent.expect(&reply.recv().unwrap()));
        reply.send(&sent.frames()).unwrap();
        back = back.min(sent.expect(&request.recv().unwrap()));
    }
    measured.extend([there, back]);
    measured
}

fn one_way<T: SendFrames, R: RecvFrames>(tx: &mut T, rx: &mut R) -> usize {
    let mut least = usize::MAX;
    for sent in messages() {
        tx.send(&sent.frames()).unwrap();
        least = least.min(sent.expect(&rx.recv().unwrap()));
    }
    least
}

fn endpoint(scheme: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tensorwire-alignment-{}-{number}", std::process::id());
    match scheme {
        "inproc" => format!("inproc://{name}"),
        "ipc" => format!("ipc://{}", std::env::temp_dir().join(name).display()),
        _ => "tcp://127.0.0.1:0".to_owned(),
    }
}

/// Two tensors of one dtype in a message.
struct Sent {
    dtype: DType,
    metadata: Vec<u8>,
    tensors: [Vec<u8>; 2],
}

/// Messages of several dtypes, in bodies of many lengths: NNG keeps those of a power
/// of two in another way.
fn messages() -> &'static [Sent] {
    static MESSAGES: OnceLock<Vec<Sent>> = OnceLock::new();
    MESSAGES.get_or_init(all_messages)
}

fn all_messages() -> Vec<Sent> {
    let mut messages = Vec::new();
    for dtype in [
        DType::UInt8,
        DType::BFloat16,
        DType::Float32,
        DType::Float64,
        DType::Complex128,
    ] {
        for count in [0, 1, 7, 100, 4097] {
            messages.push(Sent::new(dtype, count));
        }
        for total in [1024, 4096, 65_536] {
            // As long as that all in all.
            let beside = Sent::new(dtype, 0).body_len();
            let mut count = (total - beside) / dtype.size();
            while Sent::new(dtype, count).body_len() > total {
                count -= 1;
            }
            messages.push(Sent::new(dtype, count));
        }
    }
    let powers = messages.iter().filter(|sent| {
        let len = sent.body_len();
        len >= 1024 && len.is_power_of_two()
    });
    assert!(powers.count() >= 8);
    messages
}

impl Sent {
    fn new(dtype: DType, count: usize) -> Self {
        let fill = |len: usize, seed: usize| -> Vec<u8> {
            (0..len).map(|index| (index * 31 + seed) as u8).collect()
        };
        let tensors = [
            fill(3 * dtype.size(), count),
            fill(count * dtype.size(), count + 1),
        ];
        let shapes = [[3], [count]];
        let views = [("head", 0), ("tail", 1)].map(|(name, index)| {
            TensorView::from_bytes(name, dtype, &shapes[index], &tensors[index]).unwrap()
        });
        let metadata = encode_to_vec(&views, &NO_SCALARS).unwrap();
        Self {
            dtype,
            metadata,
            tensors,
        }
    }

    fn frames(&self) -> [&[u8]; 3] {
        [&self.metadata, &self.tensors[0], &self.tensors[1]]
    }

    fn body_len(&self) -> usize {
        let lengths = self.frames().map(<[u8]>::len);
        bundle::encoded_len(lengths).unwrap()
    }

    /// Reads what came in every way, and returns what divides the addresses of all
    /// frames, up to 64.
    fn expect<M: Frames>(&self, received: &M) -> usize {
        let mut decoder = Decoder::new();
        let message = decoder.decode(received.frames()).unwrap();
        for (name, expected) in ["head", "tail"].into_iter().zip(&self.tensors) {
            let view = message.tensor(name).unwrap();
            match self.dtype {
                DType::UInt8 => expect_all::<u8>(&view, expected),
                DType::BFloat16 => expect_all::<bf16>(&view, expected),
                DType::Float32 => expect_all::<f32>(&view, expected),
                DType::Float64 => expect_all::<f64>(&view, expected),
                _ => expect_all::<[f64; 2]>(&view, expected),
            }
        }
        let addresses = received.frames().iter().map(|frame| {
            let address = frame.as_ref().as_ptr().addr();
            1 << address.trailing_zeros().min(6)
        });
        addresses.min().unwrap()
    }
}

fn expect_all<T: Element + NoUninit>(view: &TensorView<'_>, expected: &[u8]) {
    let same = |elements: &[T]| bytemuck::cast_slice::<T, u8>(elements) == expected;
    let bytes = view.bytes();
    assert!(bytes == expected);
    let aligned = bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
    assert_eq!(view.is_aligned(), aligned);
    match view.as_slice::<T>() {
        Ok(elements) => assert!(aligned && same(elements)),
        Err(error) => {
            let (required, actual) = (align_of::<T>(), view.alignment());
            assert_eq!(error, CastError::Misaligned { required, actual });
            assert!(!aligned);
        }
    }
    let copied: Vec<T> = view.elements::<T>().unwrap().collect();
    assert!(same(&copied));
    let mut target = copied;
    target.reverse();
    view.copy_to_slice(&mut target).unwrap();
    assert!(same(&target));
    target.reverse();
    assert!(same(view.as_slice_or_copy(&mut target).unwrap()));
}
