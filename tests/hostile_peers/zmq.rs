//! ZeroMQ among the backends.

use tensorwire::transport::Caps;
use tensorwire::transport::zmq::{Context, Pull, Push, Socket};

use crate::{Backend, PATIENCE};

pub(crate) struct Zmq;

impl Backend for Zmq {
    type Tx = Socket<Push>;
    type Rx = Socket<Pull>;

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
}
