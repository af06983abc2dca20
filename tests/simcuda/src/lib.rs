//! A CUDA driver that simulates, for tests: load it as `libcuda.so`.
//!
//! It does what the driver's documentation says of the calls that are here, as slowly, as late and in as
//! many pieces as that allows, and it looks at what a driver cannot see. It says nothing about speed.
//!
//! - Streams are threads with queues ([`stream`]). Copies run late, and in chunks.
//! - Memory of the device has addresses that the host cannot read, and none comes twice. Fresh memory holds
//!   0xcd; what a copy to the host will fill holds 0xa5 until then.
//! - Sources are hashed when a copy is asked for and when it runs.
//! - Who used which bytes is kept with vector clocks ([`clock`], [`memory`]): two uses, one of which writes, that
//!   no event and no wait puts in order are reported, also where they happened to come one after the other.
//! - Any call can be made to fail, by name and number or by chance, or to wait; any copy can be made to
//!   break the context; streams can be stopped and let go step by step ([`script`], [`control`]).
//!
//! What is wrong is noted, told by `simcuda_violations`, and fails the test that asks for it at its end.
//!
//! | variable | what it says | otherwise |
//! |---|---|---|
//! | `SIMCUDA_DEVICES` | how many devices there are | 1 |
//! | `SIMCUDA_DRIVER_VERSION` | what `cuDriverGetVersion` says | 12040 |
//! | `SIMCUDA_INIT` | what `cuInit` returns; with 34 every call does, as a stub library's | 0 |
//! | `SIMCUDA_MEMORY` | bytes of each device | 4 GiB |
//! | `SIMCUDA_MODE` | `noop`: nothing is copied nor checked, all is over at once | |
//! | `SIMCUDA_PAGEABLE` | set: copies may come from and go to memory that is not pinned | |
//! | `SIMCUDA_POOLS` | whether there is stream-ordered allocation | 1 |
//! | `SIMCUDA_SEED` | what comes by chance, when operations run above all | 0 |
//! | `SIMCUDA_TRACE` | set: violations are printed as they come | |
//!
//! Where it is stricter than a driver: every call but those about driver, devices and the current
//! context needs a context on its thread; asynchronous copies need pinned memory.
#![allow(non_snake_case)]
// Every function here is called by C's rules, with what C's callers promise.
#![allow(clippy::missing_safety_doc)]

mod clock;
mod control;
mod copies;
mod device;
mod driver;
mod memory;
mod objects;
mod pinned;
mod pools;
mod script;
mod state;
mod stream;
