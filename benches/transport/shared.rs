//! Between the processes of one host without copies: shared memory. And in one process: the loopback.

use std::sync::atomic::{AtomicUsize, Ordering};

use tensorwire::transport::iceoryx2::{Builder, Message, Receiver, Sender};
use tensorwire::transport::loopback::{self, Loopback};
use tensorwire::transport::{Frames, LendFrames, Loan, Part, RecvFrames, SendFrames, Wait};

use super::end::{End, Endpoints, HighWater, Sample, check};

/// Shared memory, both ways.
struct Shared {
    sender: Sender,
    receiver: Receiver,
    message: Message,
    written: Written,
}

/// What the producer writes of a payload.
#[derive(Clone, Copy)]
enum Written {
    /// All of it, copied from elsewhere.
    Whole,
    /// Its first byte: what it costs to pass on what is there already.
    Touched,
}

fn shared(HighWater(mark): HighWater, written: Written) -> [Box<dyn End>; 2] {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let pairs = [(); 2].map(|()| {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let channel = Builder::new(&format!("bench/{}/{count}", std::process::id()))
            .message_bytes((64 << 20) + 4096)
            .depth(usize::try_from(mark).unwrap().min(16));
        let sender = channel.clone().sender().unwrap();
        (sender, channel.receiver().unwrap())
    });
    let [(there, at_there), (back, at_back)] = pairs;
    [(there, at_back), (back, at_there)].map(|(sender, receiver)| -> Box<dyn End> {
        let message = Message::default();
        Box::new(Shared {
            sender,
            receiver,
            message,
            written,
        })
    })
}

pub(crate) fn written(_: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    shared(mark, Written::Whole)
}

pub(crate) fn touched(_: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    shared(mark, Written::Touched)
}

impl End for Shared {
    fn send(&mut self, sample: &Sample) {
        let frames = sample.frames();
        let lengths = frames.map(<[u8]>::len);
        let mut loan = self.sender.lend_frames(&lengths, Wait::Configured).unwrap();
        for (index, (place, frame)) in loan.frames_mut().zip(frames).enumerate() {
            match self.written {
                Written::Touched if index > 0 => place[0] = frame[0],
                _ => place.copy_from_slice(frame),
            }
        }
        loan.send(Wait::Configured)
            .map_err(|(_, error)| error)
            .unwrap();
    }

    fn recv(&mut self, sample: &Sample) {
        self.receiver.recv_into(&mut self.message).unwrap();
        check(self.message.frames(), sample);
    }
}

/// The loopback, payloads moved through.
struct InMemory {
    end: Loopback,
    message: loopback::Message,
    parts: Vec<Part<'static>>,
}

pub(crate) fn in_memory(_: &Endpoints, HighWater(mark): HighWater) -> [Box<dyn End>; 2] {
    let options = loopback::Options::new().with_high_water(mark as usize);
    let (here, there) = options.pair();
    [here, there].map(|end| -> Box<dyn End> {
        Box::new(InMemory {
            end,
            message: loopback::Message::default(),
            parts: Vec::new(),
        })
    })
}

impl End for InMemory {
    fn send(&mut self, sample: &Sample) {
        let [metadata, _] = sample.frames();
        let mut parts = Part::recycle(std::mem::take(&mut self.parts));
        parts.push(Part::from(metadata));
        parts.push(Part::from(sample.payload()));
        self.end.send_parts(&mut parts, Wait::Configured).unwrap();
        self.parts = Part::recycle(parts);
    }

    fn recv(&mut self, sample: &Sample) {
        self.end.recv_into(&mut self.message).unwrap();
        check(self.message.frames(), sample);
    }
}
