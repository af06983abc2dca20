//! The head node, message by message: scripts of inputs, each with all that it causes.

#![cfg(feature = "std")]

mod flows;
mod lost;
mod refusals;
mod script;
mod states;
