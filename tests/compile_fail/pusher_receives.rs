//! A PUSH socket sends and does not receive.

use tensorwire::transport::RecvFrames;
use tensorwire::transport::zmq::{Push, Socket};

fn receives<T: RecvFrames>() {}

fn main() {
    receives::<Socket<Push>>();
}
