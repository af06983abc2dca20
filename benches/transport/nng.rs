//! NNG: bare, and through the transport.

use std::net::TcpListener;

use tensorwire::transport::nng::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{Caps, Frames, RecvFrames, SendFrames};

use super::end::{End, Endpoints, HighWater, Sample, check};

/// As a careful user of NNG would: the frames behind their lengths, in one body made
/// at its full length, read where it lies.
struct Bare {
    push: nng::Socket,
    pull: nng::Socket,
}

pub(crate) fn bare(endpoints: &Endpoints, HighWater(mark): HighWater) -> [Box<dyn End>; 2] {
    use nng::options::{Options, RecvBufferSize, RecvMaxSize, SendBufferSize};

    let socket = |protocol| {
        let socket = nng::Socket::new(protocol).unwrap();
        // What the transport sets by default.
        let mark = i32::try_from(mark).unwrap();
        socket
            .set_opt::<RecvMaxSize>(Caps::new().message_bytes())
            .unwrap();
        // One of the two has a queue, the other is told in vain.
        let _ = socket.set_opt::<SendBufferSize>(mark);
        let _ = socket.set_opt::<RecvBufferSize>(mark);
        socket
    };
    let pulls = endpoints.nng().map(|endpoint| {
        let pull = socket(nng::Protocol::Pull0);
        // Its address of the listener has a port of its own making.
        let endpoint = match endpoint.strip_suffix(":0") {
            Some(host) => format!("{host}:{}", free_port()),
            None => endpoint,
        };
        pull.listen(&endpoint).unwrap();
        (pull, endpoint)
    });
    let pushes = pulls.each_ref().map(|(_, endpoint)| {
        let push = socket(nng::Protocol::Push0);
        push.dial(endpoint).unwrap();
        push
    });
    let ([(there, _), (back, _)], [push_there, push_back]) = (pulls, pushes);
    [(push_there, back), (push_back, there)]
        .map(|(push, pull)| -> Box<dyn End> { Box::new(Bare { push, pull }) })
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl End for Bare {
    fn send(&mut self, sample: &Sample) {
        let frames = sample.frames();
        let [metadata, payload] = frames;
        let mut body = nng::Message::with_capacity(16 + metadata.len() + payload.len());
        for frame in frames {
            body.push_back(&(frame.len() as u64).to_le_bytes());
        }
        for frame in frames {
            body.push_back(frame);
        }
        self.push.send(body).map_err(|(_, error)| error).unwrap();
    }

    fn recv(&mut self, sample: &Sample) {
        let body = self.pull.recv().unwrap();
        let (lengths, frames) = body.split_at(16);
        let metadata = u64::from_le_bytes(lengths[..8].try_into().unwrap());
        let (metadata, payload) = frames.split_at(metadata as usize);
        check(&[metadata, payload], sample);
    }
}

/// The transport.
struct Ours {
    push: Socket<Push>,
    pull: Socket<Pull>,
    message: Message,
}

impl Ours {
    fn pair(endpoints: &Endpoints, HighWater(mark): HighWater) -> [Box<dyn End>; 2] {
        let context = Context::new();
        let pulls = endpoints.nng().map(|endpoint| {
            let pull = context.pull().recv_high_water(mark);
            pull.listen(&endpoint).unwrap()
        });
        let pushes = pulls.each_ref().map(|pull| {
            let push = context.push().send_high_water(mark);
            push.dial(pull.endpoint()).unwrap()
        });
        let ([there, back], [push_there, push_back]) = (pulls, pushes);
        [(push_there, back), (push_back, there)].map(|(push, pull)| -> Box<dyn End> {
            let message = Message::default();
            Box::new(Self {
                push,
                pull,
                message,
            })
        })
    }
}

impl End for Ours {
    fn send(&mut self, sample: &Sample) {
        self.push.send(&sample.frames()).unwrap();
    }

    fn recv(&mut self, sample: &Sample) {
        self.pull.recv_into(&mut self.message).unwrap();
        check(self.message.frames(), sample);
    }
}

pub(crate) fn ours(endpoints: &Endpoints, mark: HighWater) -> [Box<dyn End>; 2] {
    Ours::pair(endpoints, mark)
}
