//! What is special about NNG.

mod closing;
mod hostile;
mod links;
mod publish;
mod sockets;
mod turns;

pub(crate) use links::{Inproc, Ipc, Pair1Inproc, PairTcp, Tcp};
