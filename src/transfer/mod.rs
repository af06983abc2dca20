//! The transfer protocol: who tells whom that tensors are to be moved, and where to.
//!
//! Tensors of a request go from role to role (encoder, denoiser, decoder) without
//! passing the head node: it sees [control messages](message) alone. The bytes move over
//! a data plane, from a slot of the sender's `Pool` to one of the
//! receiver's, and a [`Manifest`] says which tensors lie where in a slot.
//!
//! ```text
//!  sender                      head node                     receiver
//!    | ---- transfer_register --> | <-- transfer_register ----- |   once
//!    |                            |                             |
//!    | ---- transfer_staged ----> |                             |   its output lies in its slot
//!    |                            | ---- transfer_alloc ------> |   slow path: no preallocated
//!    |                            | <--- transfer_allocated --- |   slot of the receiver is free
//!    | <--- transfer_push ------- |                             |
//!    | ======== bytes over the data plane ====================> |
//!    | ---- transfer_pushed ----> |                             |
//!    |                            | ---- transfer_ready ------> |   reads its slot, frees it, works
//!    |                            | <--- transfer_done -------- |   or a tensor message, from the last role
//! ```
//!
//! The parts, each of use without the others:
//!
//! | Module | What | Needs |
//! |---|---|---|
//! | [`message`] | control messages, read and written | nothing: no `alloc` |
//! | [`manifest`] | the tensors in a slot, found and laid out | nothing: no `alloc` |
//! | `pool` | slots out of a region of memory | `std`; its allocator `alloc` |
//! | `worker` | a worker's side of the protocol, without I/O | `std` |
//! | `coordinator` | the head node's side, without I/O | `std` |

#[cfg(feature = "std")]
pub mod coordinator;
pub mod manifest;
pub mod message;
#[cfg(feature = "alloc")]
pub mod pool;
#[cfg(feature = "std")]
mod request;
mod role;
#[cfg(feature = "std")]
pub mod worker;

#[cfg(feature = "std")]
pub use coordinator::Coordinator;
pub use manifest::Manifest;
pub use message::Control;
#[cfg(feature = "std")]
pub use request::RequestId;
pub use role::Role;
#[cfg(feature = "std")]
pub use worker::{Instance, Receiver, Sender};
