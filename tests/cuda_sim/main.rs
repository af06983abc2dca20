//! The CUDA adapter, unmodified, on the simulated driver of `tests/simcuda`; and what that driver notices.
//!
//! Each test runs in a process of its own. With `TENSORWIRE_CUDA=device` they run on a real device.
#![cfg(feature = "cuda")]

mod honesty;
mod pinned;
mod ring;
#[path = "../simulated/mod.rs"]
mod simulated;
