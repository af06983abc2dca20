//! A PULL socket receives and does not send.

use tensorwire::transport::SendFrames;
use tensorwire::transport::zmq::Context;

fn main() {
    let mut puller = Context::new().pull().bind("inproc://puller").unwrap();
    puller.send(&[b"frame"]).unwrap();
}
