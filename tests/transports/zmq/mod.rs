//! What is special about ZeroMQ.

mod faults;
mod links;
mod owned;
mod publish;
mod router;
mod sockets;

pub(crate) use links::{DealerRouter, Inproc, Ipc, PairTcp, Tcp};
