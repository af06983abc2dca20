//! The CUDA adapter, unmodified, on the simulated driver of `tests/simcuda`; and what that driver notices.
//!
//! Each test runs in a process of its own. With `TENSORWIRE_CUDA=device` they run on a real device.
#![cfg(feature = "cuda")]

mod availability;
mod given;
mod honesty;
mod scripts;
#[path = "../simulated/mod.rs"]
mod simulated;
mod upload;
