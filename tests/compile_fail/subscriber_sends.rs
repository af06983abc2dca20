//! A SUB socket receives and does not send.

use tensorwire::transport::SendFrames;
use tensorwire::transport::zmq::Context;

fn main() {
    let context = Context::new();
    let mut subscriber = context.subscribe().connect("tcp://127.0.0.1:9").unwrap();
    subscriber.send(&[b"frame"]).unwrap();
}
