//! A PUSH socket sends and does not receive.

use tensorwire::transport::RecvFrames;
use tensorwire::transport::zmq::Context;

fn main() {
    let mut pusher = Context::new().push().bind("inproc://pusher").unwrap();
    pusher.recv().unwrap();
}
