//! What is special about ZeroMQ.

mod counters;
mod faults;
mod links;
mod publish;
mod router;
mod sockets;

pub(crate) use links::{DealerRouter, Inproc, Ipc, PairTcp, Tcp};
