//! The same frames through tensorwire and through bare libzmq, between two processes, in turn.
//!
//! Alike for both: the buffers, which are made before the clock starts and are
//! given to libzmq without a copy; the high-water marks; the context with its one
//! I/O thread. Only tensorwire encodes and decodes; the bare frames are ready.

use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use serde::Serialize;
use tensorwire::message::encode_to_vec;
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait, zmq};
use tensorwire::{Decoder, Scalar};

use crate::Result;
use crate::children::Process;
use crate::percentile::percentile;
use crate::plan::{Message, Request, Size};
use crate::progress::Progress;
use crate::stage::STOP;

/// How many messages may wait on either side, on both paths.
const HIGH_WATER: u32 = 16;

/// How long either side waits for the other.
const WITHIN: Duration = Duration::from_secs(20);

/// One message's figures on both paths.
#[derive(Serialize)]
pub(crate) struct Throughput {
    pub(crate) message: &'static str,
    pub(crate) bytes: usize,
    /// Messages in one timed round.
    pub(crate) messages_per_round: usize,
    /// Rounds on each path.
    pub(crate) rounds: usize,
    /// Bytes in a second, from the median round.
    pub(crate) tensorwire: f64,
    pub(crate) libzmq: f64,
    /// The first over the second.
    pub(crate) ratio: f64,
    /// The quartiles of the ratio, round by round: how far to trust it.
    pub(crate) ratio_quartiles: [f64; 2],
}

/// Which way a round goes.
#[derive(Clone, Copy)]
enum Path {
    Tensorwire,
    Bare,
}

/// Measures the messages that have tensors.
pub(crate) fn compare(size: Size, progress: &mut Progress) -> Result<Vec<Throughput>> {
    let mut sink = Process::start("sink", &["--sink"])?;
    let endpoints = sink.endpoints()?;
    let [control, ours, bare] = endpoints.as_slice() else {
        return Err("the sink did not say where it listens".into());
    };
    let raw = ::zmq::Context::new();
    let context = zmq::Context::new();
    let mut source = Source {
        control: context.push().linger(Duration::ZERO).connect(control)?,
        ours: context
            .push()
            .send_high_water(HIGH_WATER)
            .linger(Duration::ZERO)
            .connect(ours)?,
        bare: raw.socket(::zmq::PUSH)?,
        sink,
    };
    source.bare.set_sndhwm(i32::try_from(HIGH_WATER)?)?;
    source
        .bare
        .set_sndtimeo(i32::try_from(WITHIN.as_millis())?)?;
    source.bare.set_linger(0)?;
    source.bare.connect(bare)?;

    let mut throughput = Vec::new();
    for message in [Message::Embeds, Message::Latents, Message::Output] {
        throughput.push(source.measure(message, size, progress)?);
    }
    let stop = encode_to_vec(
        tensorwire::message::NO_TENSORS,
        &[(STOP, Scalar::from(true))],
    )?;
    source.control.send(&[&stop])?;
    source.sink.finish()?;
    Ok(throughput)
}

/// The sending end.
struct Source {
    /// Says what comes, so that the other two carry nothing but what is measured.
    control: zmq::Socket<zmq::Push>,
    ours: zmq::Socket<zmq::Push>,
    bare: ::zmq::Socket,
    sink: Process,
}

impl Source {
    fn measure(
        &mut self,
        message: Message,
        size: Size,
        progress: &mut Progress,
    ) -> Result<Throughput> {
        let request = Request::new(0);
        let scalars = request.scalars();
        let descriptors = message.descriptors(size)?;
        let metadata = encode_to_vec(&descriptors, &scalars)?;
        let mut payloads = Vec::new();
        for tensor in message.tensors() {
            payloads.push(tensor.payload(size, 0)?);
        }
        let bytes = metadata.len() + payloads.iter().map(Vec::len).sum::<usize>();
        // Rounds of some hundred megabytes, and of not too many messages.
        let (round_bytes, rounds) = match size {
            Size::Full => (100 << 20, 21),
            Size::Small => (1 << 20, 3),
        };
        let count = (round_bytes / bytes).clamp(1, 64);

        let [mut ours, mut bare] = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            progress.show(&format!(
                "{} against bare libzmq, round {round} of {rounds}",
                message.name()
            ));
            // Who goes first takes turns too.
            let mut paths = [Path::Tensorwire, Path::Bare];
            if round % 2 == 1 {
                paths.reverse();
            }
            for path in paths {
                let batch = vec![payloads.clone(); count];
                self.announce(path, count)?;
                let start = Instant::now();
                for payloads in batch {
                    match path {
                        Path::Tensorwire => {
                            let metadata = encode_to_vec(&descriptors, &scalars)?;
                            let mut parts = vec![Part::from(metadata)];
                            parts.extend(payloads.into_iter().map(Part::from));
                            self.ours.send_parts(&mut parts, Wait::UpTo(WITHIN))?;
                        }
                        Path::Bare => self.send_bare(&metadata, payloads)?,
                    }
                }
                self.expect("done")?;
                let took = u64::try_from(start.elapsed().as_nanos())?;
                // The first round of each warms up.
                match path {
                    _ if round == 0 => {}
                    Path::Tensorwire => ours.push(took),
                    Path::Bare => bare.push(took),
                }
            }
        }
        // Each round of one path beside that of the other: both saw the machine as busy.
        let mut ratios: Vec<f64> = ours
            .iter()
            .zip(&bare)
            .map(|(a, b)| *b as f64 / *a as f64)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let ratio_quartiles = [ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]];
        let [ours, bare] = [ours, bare].map(|rounds| percentile(&rounds, 50) as f64 / 1e9);
        let round_bytes = (bytes * count) as f64;
        Ok(Throughput {
            message: message.name(),
            bytes,
            messages_per_round: count,
            rounds,
            tensorwire: round_bytes / ours,
            libzmq: round_bytes / bare,
            ratio: bare / ours,
            ratio_quartiles,
        })
    }

    /// Tells the sink what comes, and waits until it is ready for it.
    fn announce(&mut self, path: Path, count: usize) -> Result<()> {
        let bare = matches!(path, Path::Bare);
        let scalars = [
            ("bare", Scalar::from(bare)),
            ("count", Scalar::from(u64::try_from(count)?)),
        ];
        let round = encode_to_vec(tensorwire::message::NO_TENSORS, &scalars)?;
        self.control.send(&[&round])?;
        self.expect("ready")
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        let line = self.sink.line(WITHIN)?;
        if line != word {
            return Err(format!("the sink said {line:?} where {word:?} was due").into());
        }
        Ok(())
    }

    fn send_bare(&self, metadata: &[u8], payloads: Vec<Vec<u8>>) -> Result<()> {
        self.bare.send(metadata, ::zmq::SNDMORE)?;
        let last = payloads.len().saturating_sub(1);
        for (index, payload) in payloads.into_iter().enumerate() {
            let flags = if index < last { ::zmq::SNDMORE } else { 0 };
            // Not copied: the message takes the vector's memory.
            self.bare.send(payload, flags)?;
        }
        Ok(())
    }
}

/// The receiving end, a process of its own.
pub(crate) fn sink() -> Result<()> {
    let raw = ::zmq::Context::new();
    let context = zmq::Context::new();
    let mut control = context.pull().bind("tcp://127.0.0.1:*")?;
    let mut ours = context
        .pull()
        .recv_high_water(HIGH_WATER)
        .bind("tcp://127.0.0.1:*")?;
    let bare = raw.socket(::zmq::PULL)?;
    bare.set_rcvhwm(i32::try_from(HIGH_WATER)?)?;
    bare.set_rcvtimeo(i32::try_from(WITHIN.as_millis())?)?;
    bare.bind("tcp://127.0.0.1:*")?;
    let endpoint = bare
        .get_last_endpoint()?
        .map_err(|_| "an endpoint that is no text")?;
    let [control_at, ours_at] = [control.endpoint(), ours.endpoint()];
    writeln!(stdout(), "READY {control_at} {ours_at} {endpoint}")?;

    let (mut message, mut decoder) = (zmq::Message::default(), Decoder::new());
    let mut frames = Vec::new();
    loop {
        control.recv_frames(&mut message, Wait::Forever)?;
        let round = decoder.decode(message.frames())?;
        if round.scalars().get(STOP).is_some() {
            return Ok(());
        }
        let count = round.scalars().field("count")?.as_u64()?;
        let is_bare = round.scalars().field("bare")?.as_bool()?;
        // Neither path pays for letting go of the last round's frames.
        message.clear();
        frames.clear();
        writeln!(stdout(), "ready")?;
        for _ in 0..count {
            if is_bare {
                receive_bare(&bare, &mut frames)?;
            } else {
                ours.recv_frames(&mut message, Wait::UpTo(WITHIN))?;
                std::hint::black_box(decoder.decode(message.frames())?);
            }
        }
        writeln!(stdout(), "done")?;
    }
}

/// Receives a message with nothing around libzmq.
fn receive_bare(socket: &::zmq::Socket, frames: &mut Vec<::zmq::Message>) -> Result<()> {
    frames.clear();
    loop {
        let frame = socket.recv_msg(0)?;
        let more = frame.get_more();
        frames.push(frame);
        if !more {
            return Ok(());
        }
    }
}
