//! The transfer protocol: who tells whom that tensors are to be moved, and where to.
//!
//! Tensors of a request go from role to role (encoder, denoiser, decoder) without
//! passing the head node: it sees [control messages](message) alone. The bytes move over
//! a data plane, from a slot of the sender's [pool] to one of the receiver's, and a
//! [`Manifest`] says which tensors lie where in a slot.
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
//! | [`pool`] | slots out of a region of memory | `std`; its allocator `alloc` |
//! | [`worker`] | a worker's side of the protocol, without I/O: [`Sender`], [`Receiver`], [`Instance`] | `std` |
//! | [`coordinator`] | the head node's side, without I/O: [`Coordinator`] | `std` |
//!
//! # Examples
//!
//! What a receiver does with `transfer_ready`, with the first two alone:
//!
//! ```
//! use tensorwire::Limits;
//! use tensorwire::message::CONTROL_MARKER;
//! use tensorwire::transfer::manifest::{Manifest, Storage};
//! use tensorwire::transfer::message::Done;
//! use tensorwire::transfer::Control;
//!
//! let frames = [
//!     CONTROL_MARKER,
//!     br#"{"msg_type":"transfer_ready","request_id":"r1","manifest":{"latents":[{"offset":0,"shape":[2],"dtype":"int8"}]},"slot_offset":512,"scalar_fields":{"seed":42}}"#,
//! ];
//! let Control::Ready(ready) = Control::from_frames(&frames)? else {
//!     return Err("another type".into());
//! };
//! let seed = ready.scalar_fields.field("seed")?.as_u64()?;
//!
//! // Its pool, into which the sender has written; the slot has 512 bytes.
//! # let mut pool = [0; 1024];
//! # pool[512..514].copy_from_slice(&[7, 255]);
//! let start = usize::try_from(ready.slot_offset)?;
//! let slot = &pool[start..start + 512];
//! let mut storage = Storage::<16>::new();
//! let manifest = Manifest::decode(ready.manifest, slot.len(), &mut storage, &Limits::new())?;
//! let latents = manifest.attach(slot)?.tensor("latents").ok_or("no latents")?;
//! assert_eq!((seed, latents.as_slice::<i8>()?), (42, &[7, -1][..]));
//!
//! let mut buffer = [0; 128];
//! let done = Control::from(Done::finished(ready.request_id));
//! let answer = [CONTROL_MARKER, done.encode_into(&mut buffer)?];
//! assert_eq!(answer[1], br#"{"msg_type":"transfer_done","request_id":"r1","error":null}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
// What this build lacks, the documentation of the whole crate has.
#![cfg_attr(
    not(feature = "alloc"),
    doc = "\n[pool]: pool/index.html\n[`pool`]: pool/index.html"
)]
#![cfg_attr(
    not(feature = "std"),
    doc = "\n[`worker`]: worker/index.html\n[`Sender`]: worker/struct.Sender.html"
)]
#![cfg_attr(
    not(feature = "std"),
    doc = "[`Receiver`]: worker/struct.Receiver.html\n[`Instance`]: worker/struct.Instance.html"
)]
#![cfg_attr(
    not(feature = "std"),
    doc = "[`coordinator`]: coordinator/index.html\n[`Coordinator`]: coordinator/struct.Coordinator.html"
)]

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
