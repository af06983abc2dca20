//! The two ends of a connection, and the ways to move messages between them.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::hint::black_box;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use tensorwire::message::{Scalar, encode_into};
use tensorwire::transport::zmq::{Context, DEFAULT_COPY_BELOW, Message, Pull, Push};
use tensorwire::transport::{Caps, Frames, Part, RecvFrames, SendFrames, Wait};
use tensorwire::{Message as Decoded, Storage, TensorView};

/// Where the ends find each other.
pub(crate) const SCHEMES: [&str; 3] = ["inproc", "ipc", "tcp"];

/// A message of one tensor. Its bytes are shared, so that sending one costs no
/// contestant the making of the payload.
#[derive(Clone)]
pub(crate) struct Sample {
    metadata: Arc<Vec<u8>>,
    payload: Arc<[u8]>,
    dims: [usize; 2],
}

impl Sample {
    pub(crate) fn new(bytes: usize) -> Self {
        let dims = if bytes.is_multiple_of(1024) {
            [bytes / 1024, 1024]
        } else {
            [1, bytes]
        };
        // Written to, so that the pages are there.
        let payload = vec![0xa5; bytes].into();
        let mut sample = Self {
            metadata: Arc::new(Vec::new()),
            payload,
            dims,
        };
        let mut metadata = vec![0; ROOM];
        let len = sample.encode(&mut metadata).len();
        metadata.truncate(len);
        sample.metadata = Arc::new(metadata);
        sample
    }

    fn encode<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        let tensor = TensorView::from_slice("latents", &self.dims, &self.payload);
        encode_into(&[tensor.unwrap()], &scalars(), buffer).unwrap()
    }

    /// The frames as they go over the wire.
    pub(crate) fn frames(&self) -> [&[u8]; 2] {
        [&self.metadata, &self.payload]
    }
}

fn scalars() -> [(&'static str, Scalar<'static>); 5] {
    [
        ("request_id", "wan-test-001".into()),
        ("seed", 42.into()),
        ("guidance_scale", 7.5.into()),
        ("num_inference_steps", 50.into()),
        (
            "prompt",
            "A cat walks on the grass, realistic style.".into(),
        ),
    ]
}

/// Enough for the metadata of one tensor.
const ROOM: usize = 1024;

/// How many messages may wait.
#[derive(Clone, Copy)]
pub(crate) struct HighWater(pub(crate) u32);

/// Sends to the other end and receives from it.
pub(crate) trait End: Send {
    fn send(&mut self, sample: &Sample);
    /// Receives a message like `sample`.
    fn recv(&mut self, sample: &Sample);
}

/// A way to move messages: makes the two ends.
pub(crate) type Way = fn(&Endpoints, HighWater) -> [Box<dyn End>; 2];

/// What the endpoints of one connection are called; one each way.
pub(crate) struct Endpoints([String; 2]);

impl Endpoints {
    /// Of the connection `number`, which no other one in this process has.
    pub(crate) fn new(scheme: &str, folder: &Path, number: usize) -> Self {
        Self(["there", "back"].map(|way| match scheme {
            "tcp" => "tcp://127.0.0.1:*".to_owned(),
            "ipc" => format!("ipc://{}/{number}-{way}", folder.display()),
            _ => format!("inproc://{number}-{way}"),
        }))
    }
}

fn check<F: AsRef<[u8]>>(frames: &[F], sample: &Sample) {
    let lengths: [usize; 2] = std::array::from_fn(|index| frames[index].as_ref().len());
    assert_eq!(frames.len(), 2);
    assert_eq!(lengths, sample.frames().map(<[u8]>::len));
}

// ---- bare libzmq ----

/// As a careful user of libzmq would: small frames copied, large ones lent with
/// the count of references as the hint, and nothing else.
struct Bare {
    push: zmq::Socket,
    pull: zmq::Socket,
    frames: Vec<BareFrame>,
}

/// So that both ways are checked by the same code.
struct BareFrame(zmq::Message);

impl AsRef<[u8]> for BareFrame {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(crate) fn bare(endpoints: &Endpoints, HighWater(mark): HighWater) -> [Box<dyn End>; 2] {
    let context = zmq::Context::new();
    let socket = |kind| {
        // What the transport sets by default.
        let socket = context.socket(kind).unwrap();
        let frame_bytes = i64::try_from(Caps::new().frame_bytes()).unwrap();
        socket.set_maxmsgsize(frame_bytes).unwrap();
        socket.set_rcvhwm(mark as i32).unwrap();
        socket.set_sndhwm(mark as i32).unwrap();
        socket.set_linger(30_000).unwrap();
        socket.set_immediate(false).unwrap();
        socket.set_rcvtimeo(30_000).unwrap();
        socket.set_sndtimeo(30_000).unwrap();
        socket
    };
    let pulls = endpoints.0.each_ref().map(|endpoint| {
        let pull = socket(zmq::PULL);
        pull.bind(endpoint).unwrap();
        pull
    });
    let pushes = pulls.each_ref().map(|pull| {
        let push = socket(zmq::PUSH);
        let endpoint = pull.get_last_endpoint().unwrap().unwrap();
        push.connect(&endpoint).unwrap();
        push
    });
    let ([there, back], [push_there, push_back]) = (pulls, pushes);
    [(push_there, back), (push_back, there)].map(|(push, pull)| -> Box<dyn End> {
        let frames = Vec::new();
        Box::new(Bare { push, pull, frames })
    })
}

impl End for Bare {
    fn send(&mut self, sample: &Sample) {
        let metadata = sample.metadata.as_slice();
        self.push.send(metadata, zmq::SNDMORE).unwrap();
        let payload = &*sample.payload;
        if payload.len() < DEFAULT_COPY_BELOW {
            self.push.send(payload, 0).unwrap();
        } else {
            lend(&mut self.push, &sample.payload);
        }
    }

    fn recv(&mut self, sample: &Sample) {
        self.frames.clear();
        loop {
            let mut frame = zmq::Message::new();
            self.pull.recv(&mut frame, 0).unwrap();
            let more = frame.get_more();
            self.frames.push(BareFrame(frame));
            if !more {
                break;
            }
        }
        check(&self.frames, sample);
    }
}

/// Sends the last frame of a message without a copy.
fn lend(socket: &mut zmq::Socket, bytes: &Arc<[u8]>) {
    extern "C" fn release(data: *mut c_void, hint: *mut c_void) {
        let bytes = ptr::slice_from_raw_parts(data.cast::<u8>(), hint.addr());
        // SAFETY: `Arc::from_raw` asks for a pointer from `Arc::into_raw` whose
        // count nobody else takes back: these are the address and length of one, and
        // libzmq calls once.
        drop(unsafe { Arc::from_raw(bytes) });
    }
    let len = bytes.len();
    let data = Arc::into_raw(Arc::clone(bytes)).cast::<u8>().cast_mut();
    let hint: *mut c_void = ptr::without_provenance_mut(len);
    let mut message = zmq_sys::zmq_msg_t::default();
    // SAFETY: `zmq_msg_init_data` asks for a fresh `zmq_msg_t`, and for `len` bytes
    // at `data` until it calls `release`, which may be on any thread: the count keeps
    // them, nobody writes to them, and `Arc<[u8]>` is `Send`.
    let status = unsafe {
        zmq_sys::zmq_msg_init_data(&raw mut message, data.cast(), len, Some(release), hint)
    };
    assert_eq!(status, 0);
    // SAFETY: `zmq_msg_send` asks for an initialized message and an open socket
    // that no other thread uses: it is borrowed mutably.
    let status = unsafe { zmq_sys::zmq_msg_send(&raw mut message, socket.as_mut_ptr(), 0) };
    // What was sent leaves an empty message, which needs no closing.
    assert_ne!(status, -1);
}

// ---- the transport ----

/// The transport alone: the metadata is written once, and not read.
struct Ours {
    push: tensorwire::transport::zmq::Socket<Push>,
    pull: tensorwire::transport::zmq::Socket<Pull>,
    message: Message,
    parts: Vec<Part<'static>>,
    lend_from: usize,
}

impl Ours {
    fn pair(endpoints: &Endpoints, HighWater(mark): HighWater, copy_below: usize) -> [Self; 2] {
        let context = Context::new();
        let pulls = endpoints.0.each_ref().map(|endpoint| {
            let pull = context.pull().recv_high_water(mark);
            pull.bind(endpoint).unwrap()
        });
        let pushes = pulls.each_ref().map(|pull| {
            let push = context.push().send_high_water(mark).copy_below(copy_below);
            push.connect(pull.endpoint()).unwrap()
        });
        let ([there, back], [push_there, push_back]) = (pulls, pushes);
        [(push_there, back), (push_back, there)].map(|(push, pull)| Self {
            push,
            pull,
            message: Message::default(),
            parts: Vec::new(),
            lend_from: copy_below,
        })
    }

    fn send_with(&mut self, metadata: &[u8], sample: &Sample) {
        let payload = &*sample.payload;
        if payload.len() < self.lend_from {
            self.push.send(&[metadata, payload]).unwrap();
            return;
        }
        let mut parts = Part::recycle(std::mem::take(&mut self.parts));
        parts.push(Part::from(metadata));
        parts.push(Part::from(sample.payload.clone()));
        self.push.send_parts(&mut parts, Wait::Configured).unwrap();
        self.parts = Part::recycle(parts);
    }
}

impl End for Ours {
    fn send(&mut self, sample: &Sample) {
        self.send_with(&sample.metadata, sample);
    }

    fn recv(&mut self, sample: &Sample) {
        self.pull.recv_into(&mut self.message).unwrap();
        check(self.message.frames(), sample);
    }
}

pub(crate) fn ours(endpoints: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    Ours::pair(endpoints, mark, DEFAULT_COPY_BELOW).map(|end| -> Box<dyn End> { Box::new(end) })
}

/// Every payload is copied.
pub(crate) fn copying(endpoints: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    Ours::pair(endpoints, mark, usize::MAX).map(|end| -> Box<dyn End> { Box::new(end) })
}

/// Every payload is lent.
pub(crate) fn lending(endpoints: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    Ours::pair(endpoints, mark, 0).map(|end| -> Box<dyn End> { Box::new(end) })
}

/// The whole job: the metadata is written for each message, read and checked.
struct Coded {
    end: Ours,
    buffer: Vec<u8>,
    storage: Storage<4>,
}

impl End for Coded {
    fn send(&mut self, sample: &Sample) {
        let metadata = sample.encode(&mut self.buffer);
        self.end.send_with(metadata, sample);
    }

    fn recv(&mut self, sample: &Sample) {
        self.end.recv(sample);
        let frames = self.end.message.frames();
        black_box(Decoded::decode(frames, &mut self.storage).unwrap());
    }
}

pub(crate) fn coded(endpoints: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    Ours::pair(endpoints, mark, DEFAULT_COPY_BELOW).map(|end| -> Box<dyn End> {
        Box::new(Coded {
            end,
            buffer: vec![0; ROOM],
            storage: Storage::new(),
        })
    })
}
