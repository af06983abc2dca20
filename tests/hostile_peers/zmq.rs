//! ZeroMQ among the backends.

use std::io::{Read, Write};

use tensorwire::transport::Caps;
use tensorwire::transport::zmq::{Context, Pull, Push, Socket};

use crate::raw::Raw;
use crate::{Backend, PATIENCE};

pub(crate) struct Zmq;

impl Backend for Zmq {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

    const NAME: &'static str = "zmq";

    const GREETING: &'static [u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    // It speaks ZMTP 1.0 too, which starts with the length of a name.
    const HEARS_NOISE: bool = true;

    fn bind(endpoint: &str, caps: Caps) -> (Self::Rx, String) {
        let pull = Context::new().pull().caps(caps).count_connections(true);
        let pull = pull.recv_timeout(Some(PATIENCE)).bind(endpoint).unwrap();
        let endpoint = pull.endpoint().to_owned();
        (pull, endpoint)
    }

    fn connect(endpoint: &str) -> Self::Tx {
        Context::new().push().connect(endpoint).unwrap()
    }

    fn shake_hands(stream: &mut Raw) {
        stream.write_all(Self::GREETING).unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        let ready = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
        stream.write_all(ready).unwrap();
        // Their READY: flags, length, as many bytes. Before it they take no message.
        let mut head = [0; 2];
        stream.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(head[1])];
        stream.read_exact(&mut body).unwrap();
    }

    // Flags, of which 2 is a long length.
    fn announce(_endpoint: &str, len: u64) -> Vec<u8> {
        [&[2][..], &len.to_be_bytes()].concat()
    }

    const ANNOUNCED: &'static [(&'static str, &'static [u8])] = &[
        ("2 GiB, with more to come", b"\x03\0\0\0\0\x80\0\0\0"),
        (
            "2 GiB, behind a whole frame",
            b"\x01\x04head\x02\0\0\0\0\x80\0\0\0",
        ),
    ];

    // They hang up.
    const TELLS_OF_LARGE_FRAMES: bool = false;

    const COUNTS_STRANGERS: bool = true;
}
