//! A PULL socket receives and does not send.

use tensorwire::transport::SendFrames;
use tensorwire::transport::zmq::{Pull, Socket};

fn sends<T: SendFrames>() {}

fn main() {
    sends::<Socket<Pull>>();
}
