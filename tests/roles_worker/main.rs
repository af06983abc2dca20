//! A worker's machines: every message in every state, what is sent, and what is held afterwards.
#![cfg(feature = "std")]

mod bed;
mod hostile;
mod lives;
mod receiver;
mod refusals;
mod sender;
mod slots;
mod wire;
