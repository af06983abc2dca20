//! An owned buffer is sent from where it lies, and its owner is released exactly once.

#![cfg(feature = "zmq")]

#[path = "../common/alone.rs"]
mod alone;
#[path = "../common/counted.rs"]
mod counted;
#[path = "../common/counting.rs"]
mod counting;
mod memory;
mod released;

use std::time::Duration;

use tensorwire::transport::Frames;
use tensorwire::transport::zmq::{Context, Pull, Push, Socket};

/// Long enough never to be reached by a test that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Two sockets that are connected.
pub(crate) fn push_pull(endpoint: &str) -> (Socket<Push>, Socket<Pull>) {
    let context = Context::new();
    let pull = context.pull().bind(endpoint).unwrap();
    let push = context.push().connect(pull.endpoint()).unwrap();
    (push, pull)
}

/// The frames of a message, copied out.
pub(crate) fn copied<M: Frames>(message: &M) -> Vec<Vec<u8>> {
    let frames = message.frames().iter();
    frames.map(|frame| frame.as_ref().to_vec()).collect()
}
