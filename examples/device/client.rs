//! Who asks the service, and compares what it answers.

use std::time::{Duration, Instant};

use half::bf16;
use tensorwire::message::{Message, NO_TENSORS, Scalar, encode_to_vec, frames};
use tensorwire::transport::zmq::{self, Pair, Socket};
use tensorwire::transport::{Frames as _, RecvFrames as _, SendFrames as _};
use tensorwire::{DType, Decoder, Descriptor, TensorView};

use crate::{ERROR, Failure};

/// A kind of message that the client sends.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How many small tensors of 1 KiB.
    small: usize,
    /// The shape of the latents.
    latents: [usize; 5],
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "small",
        small: 64,
        latents: [0; 5],
    },
    Kind {
        name: "medium",
        small: 4,
        latents: [1, 16, 4, 64, 64],
    },
    Kind {
        name: "large",
        small: 4,
        latents: [1, 16, 16, 128, 128],
    },
];

pub(crate) struct Client {
    socket: Socket<Pair>,
    decoder: Decoder,
    answer: zmq::Message,
}

impl Client {
    pub(crate) fn new(socket: Socket<Pair>) -> Self {
        let (decoder, answer) = (Decoder::new(), zmq::Message::default());
        Self {
            socket,
            decoder,
            answer,
        }
    }

    /// Sends each kind of message `requests` times, and lets the service end whatever came of it.
    pub(crate) fn run(mut self, requests: i64) -> Result<Vec<(&'static str, Duration)>, Failure> {
        let done = self.request_all(requests);
        let last = encode_to_vec(NO_TENSORS, &[("last", Scalar::from(true))])?;
        self.socket.send(&[&last])?;
        done
    }

    fn request_all(&mut self, requests: i64) -> Result<Vec<(&'static str, Duration)>, Failure> {
        let mut times = Vec::new();
        for kind in KINDS {
            for _ in 0..requests {
                times.push((kind.name, self.request(kind)?));
            }
            self.send_a_bad_one()?;
        }
        Ok(times)
    }

    fn request(&mut self, kind: &Kind) -> Result<Duration, Failure> {
        let count: usize = kind.latents.iter().product();
        let latents: Vec<f32> = (0..count).map(|at| (at % 8191) as f32 - 4095.0).collect();
        let embeds: Vec<bf16> = (0..512_u16).map(|at| bf16::from_bits(at * 127)).collect();
        let mask = [true, false, true];
        let mut tensors = vec![
            TensorView::from_slice("latents", &kind.latents, &latents)?,
            TensorView::from_slice("mask", &[3], &mask)?,
            TensorView::from_slice("timestep", &[], &[999.0_f32])?,
        ];
        for index in 0..kind.small {
            // Every second one of the list is absent.
            let embeds = TensorView::from_slice("embeds", &[4, 128], &embeds)?;
            tensors.push(embeds.with_list_index(u32::try_from(2 * index)?));
        }
        let metadata = encode_to_vec(&tensors, &[("kind", Scalar::from(kind.name))])?;

        let start = Instant::now();
        self.socket.send(&frames(&metadata, &tensors))?;
        self.socket.recv_into(&mut self.answer)?;
        let time = start.elapsed();
        let message = self.decoder.decode(self.answer.frames())?;
        compare(&tensors, &message).map_err(|what| format!("{} message: {what}", kind.name))?;
        Ok(time)
    }

    /// A payload shorter than the metadata says: the service refuses it and goes on.
    fn send_a_bad_one(&mut self) -> Result<(), Failure> {
        let x = Descriptor::new("x", DType::Float32, &[1])?;
        let metadata = encode_to_vec([x], &[("kind", Scalar::from("bad"))])?;
        self.socket.send(&[&metadata, &[0; 3]])?;
        self.socket.recv_into(&mut self.answer)?;
        let message = self.decoder.decode(self.answer.frames())?;
        match message.scalars().get(ERROR) {
            Some(_) => Ok(()),
            None => Err("a bad message was taken for a good one".into()),
        }
    }
}

/// Holds an answer against what was asked: `float32` multiplied by the factor it names, all else as it was.
fn compare<F: AsRef<[u8]>>(
    sent: &[TensorView<'_>],
    answer: &Message<'_, '_, F>,
) -> Result<(), Failure> {
    if let Some(error) = answer.scalars().get(ERROR) {
        return Err(error.as_str()?.to_string().into());
    }
    let factor = answer.scalars().field("factor")?.as_f64()? as f32;
    if answer.len() != sent.len() {
        return Err(format!("{} tensors where {} were sent", answer.len(), sent.len()).into());
    }
    for (sent, came) in sent.iter().zip(answer.tensors()) {
        let described = sent.name() == came.name()
            && sent.list_index() == came.list_index()
            && sent.shape() == came.shape();
        let right = match (sent.elements::<f32>(), came.elements::<f32>()) {
            (Ok(sent), Ok(came)) => sent.map(|element| element * factor).eq(came),
            _ => sent.dtype() == came.dtype() && sent.bytes() == came.bytes(),
        };
        if !described || !right {
            return Err(format!("{:?} came back wrong", sent.descriptor()).into());
        }
    }
    Ok(())
}
