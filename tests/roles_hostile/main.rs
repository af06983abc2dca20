//! The machines of the transfer protocol among peers that say anything at any time, by seed.
//!
//! Whatever was said, requests end, nothing is lost, and what is refused has changed nothing.

#![cfg(feature = "std")]
#![allow(unreachable_pub)]

mod head;
mod said;
mod worker;
