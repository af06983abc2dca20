//! A socket is used by one thread at a time.

use std::thread;

use tensorwire::transport::SendFrames;
use tensorwire::transport::zmq::Context;

fn main() {
    let mut push = Context::new().push().bind("inproc://threads").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| push.send(&[b"from one"]).unwrap());
        scope.spawn(|| push.send(&[b"from another"]).unwrap());
    });
}
