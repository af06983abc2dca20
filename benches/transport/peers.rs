//! Two processes that unpack each message, pack it again and send it back: one with the Python codec, one with this crate.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tensorwire::TensorView;
use tensorwire::message::{Decoder, encode_into};
use tensorwire::transport::zmq::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use super::common::folder::Folder;
use super::common::size;
use super::common::{SCALARS, python, sample, tiny_sample};

/// The argument that makes this program the process that echoes.
pub(crate) const ECHO: &str = "echo";

/// What ends either process.
const STOP: &[u8] = br#"{"tensor_descriptors":[],"scalar_fields":{"stop":true}}"#;

/// How long one peer works on one kind of message, in turns, and how long a turn is.
const BUDGET: Duration = Duration::from_millis(1500);
const TURN: Duration = Duration::from_millis(100);

/// How many messages are under way at a time.
const WINDOWS: [usize; 2] = [1, 8];

pub(crate) fn run() {
    println!("echo by a process: unpacked, packed and sent back; messages a second");
    println!("  {} bytes of scalars in each", SCALARS.len());
    let (python, arguments) = match python::peer() {
        Ok(peer) => peer,
        Err(reason) => return println!("  SKIP: {reason}"),
    };
    let kinds: [(&str, Vec<Vec<u8>>); 4] = [
        ("1 tensor", one(4 << 10)),
        ("1 tensor", one(1 << 20)),
        ("16 tensors", tiny_sample(16).frames),
        ("4 tensors", sample(4).frames),
    ];
    for scheme in ["ipc", "tcp"] {
        let mut theirs = Peer::start(scheme, "python", |endpoints| {
            let mut command = Command::new(&python);
            command.args(&arguments).arg("echo").args(endpoints);
            command
        });
        let mut ours = Peer::start(scheme, "rust", |endpoints| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.arg(ECHO).args(endpoints);
            command
        });
        for (name, frames) in &kinds {
            let frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
            let bytes = frames.iter().map(|frame| frame.len()).sum();
            for window in WINDOWS {
                let [theirs, ours] = compare([&mut theirs, &mut ours], &frames, window);
                println!(
                    "  {scheme:<4} {name:<10} {:>7}  {window} under way  python {:>6.0}  ours {:>7.0}  {:.1}x",
                    size(bytes),
                    theirs,
                    ours,
                    ours / theirs
                );
            }
        }
        theirs.finish();
        ours.finish();
    }
}

/// A message of one tensor of `bytes` bytes.
fn one(bytes: usize) -> Vec<Vec<u8>> {
    let metadata = format!(
        r#"{{"tensor_descriptors":[{{"field_name":"latents","shape":[{bytes}],"dtype":"uint8","list_index":-1}}],"scalar_fields":{SCALARS}}}"#
    );
    vec![metadata.into_bytes(), vec![0xa5; bytes]]
}

/// Messages a second of each peer: the medians of their turns.
fn compare(mut peers: [&mut Peer; 2], frames: &[&[u8]], window: usize) -> [f64; 2] {
    let mut rates = [Vec::new(), Vec::new()];
    let start = Instant::now();
    while start.elapsed() < 2 * BUDGET {
        for (peer, rates) in peers.iter_mut().zip(&mut rates) {
            rates.push(peer.turn(frames, window));
        }
    }
    rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    })
}

/// A process at work, and the way there and back.
struct Peer {
    process: Child,
    push: Socket<Push>,
    pull: Socket<Pull>,
    message: Message,
    _folder: Folder,
}

impl Peer {
    fn start(scheme: &str, name: &str, command: impl Fn([&str; 2]) -> Command) -> Self {
        let folder = Folder::new();
        let context = Context::new();
        let endpoint = |way| match scheme {
            "tcp" => "tcp://127.0.0.1:*".to_owned(),
            _ => format!("ipc://{}/{name}-{way}", folder.path().display()),
        };
        let push = context.push().bind(&endpoint("in")).unwrap();
        let pull = context.pull().bind(&endpoint("out")).unwrap();
        let mut process = command([push.endpoint(), pull.endpoint()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("READY"), "{name}: {ready}");
        Self {
            process,
            push,
            pull,
            message: Message::default(),
            _folder: folder,
        }
    }

    /// Messages a second.
    fn turn(&mut self, frames: &[&[u8]], window: usize) -> f64 {
        for _ in 0..window {
            self.push.send(frames).unwrap();
        }
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TURN {
            self.receive(frames);
            self.push.send(frames).unwrap();
            count += 1;
        }
        let rate = f64::from(count) / start.elapsed().as_secs_f64();
        for _ in 0..window {
            self.receive(frames);
        }
        rate
    }

    /// Receives `frames`, which are as they were sent.
    fn receive(&mut self, frames: &[&[u8]]) {
        self.pull.recv_into(&mut self.message).unwrap();
        let received = self.message.frames();
        assert_eq!(received[0].as_ref(), frames[0]);
        let len = |frame: &dyn AsRef<[u8]>| frame.as_ref().len();
        assert!(
            received
                .iter()
                .map(|frame| len(frame))
                .eq(frames.iter().map(|frame| len(frame)))
        );
    }

    fn finish(mut self) {
        self.push.send(&[STOP]).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

/// The process that echoes: from `source` to `out`, until told to stop.
pub(crate) fn echo(source: &str, out: &str) {
    let context = Context::new();
    let mut pull = context.pull().recv_timeout(None).connect(source).unwrap();
    let mut push = context.push().connect(out).unwrap();
    println!("READY {source} {out}");
    let mut decoder = Decoder::new();
    let mut buffer = vec![0; 1 << 16];
    let mut list = Vec::new();
    loop {
        let message = pull.recv().unwrap();
        let decoded = decoder.decode(message.frames()).unwrap();
        let tensors: Vec<TensorView<'_>> = decoded.tensors().collect();
        if tensors.is_empty() {
            return;
        }
        let metadata = encode_into(&tensors, &decoded.scalars(), &mut buffer).unwrap();
        let mut parts = Part::recycle(list);
        parts.push(Part::from(&*metadata));
        // The payloads go back as they came.
        let payloads = message.into_frames().into_iter().skip(1);
        parts.extend(payloads.map(Part::owned));
        push.send_parts(&mut parts, Wait::Configured).unwrap();
        list = Part::recycle(parts);
    }
}
