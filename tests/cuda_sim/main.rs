//! The CUDA adapter, unmodified, on the simulated driver of `tests/simcuda`; and what that driver notices.
//!
//! Each test runs in a process of its own. With `TENSORWIRE_CUDA=device` they run on a real device.
#![cfg(feature = "cuda")]

mod availability;
mod bare;
mod doubt;
mod faults;
mod frames;
mod given;
mod honesty;
mod into;
mod landing;
mod pinned;
mod ring;
mod rounds;
mod scripts;
#[path = "../simulated/mod.rs"]
mod simulated;
mod streams;
mod upload;
mod wrongs;
