//! The bodies of the fuzz targets, and the oracles that they share.
//!
//! Each target is a module with a function `run`, which asserts. Nothing here
//! needs a fuzzer: `tests/fuzz_seeds.rs` of the main crate compiles these very
//! files and runs every target over its seeds and over the recorded messages.
//!
//! ```text
//! mkdir -p fuzz/corpus/decode
//! cargo +nightly fuzz run decode fuzz/corpus/decode fuzz/seeds/decode -- \
//!     -dict=fuzz/dict/tensorwire.dict -max_total_time=60
//! ```
//!
//! | target | input | asserts |
//! |---|---|---|
//! | [`bundle`] | bytes or frames | verdict, result and bytes against a naive reader and writer |
//! | `generated` | choices | what the crate generates is valid, or wrong as it says; edited, all that the targets of its kind assert |
//! | [`json`] | a text | verdict, offsets and every typed read against serde_json and [`naive`] |
//! | [`manifest`] | a text and the length of a slot | verdict, errors and result against a naive reader; written, laid out, stored and read again |
//! | [`decode`] | a [`case`] | bounds of errors, all accessors, small storages, reuse |
//! | [`pool`] | operations on a pool | offsets, errors and statistics against a plain model |
//! | `roles` | what happens in a cluster | no slot lost, lent twice or written while read; every request ends once, with its own result |
//! | [`roundtrip`] | a [`case`] | encode after decode, twice; bytes against [`naive`] |
//! | `safetensors` | a header and how many bytes follow it | bounds; written and read again |
//! | [`scalars`] | an arbitrary [`tree`] | written, read back, against serde_json |
//! | `serde` | a text | own types against [`naive`] and serde_json, written and read again; simd-json values |
//! | [`transfer_message`] | caps and a payload | verdict and bytes against a model; every field against serde_json |
//! | [`differential`] | a [`case`] | fast path = general path; verdict and result = [`naive`]; serde_json and simd-json where their grammars agree |

#![allow(unreachable_pub, dead_code, clippy::missing_panics_doc)]

pub mod bundle;
pub mod case;
pub mod check;
#[cfg(feature = "std")]
pub mod cluster;
pub mod decode;
#[cfg(feature = "arbitrary")]
pub mod decoded;
pub mod differential;
#[cfg(feature = "arbitrary")]
pub mod generated;
pub mod json;
pub mod manifest;
pub mod naive;
pub mod pool;
#[cfg(feature = "std")]
pub mod roles;
pub mod roundtrip;
#[cfg(feature = "safetensors")]
pub mod safetensors;
pub mod scalars;
#[cfg(feature = "serde")]
pub mod serde;
pub mod transfer_message;
pub mod tree;

/// What a fuzzer calls, input by input.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("bundle", bundle::run),
    ("decode", decode::run),
    ("differential", differential::run),
    #[cfg(feature = "arbitrary")]
    ("generated", generated::run),
    ("json", json::run),
    ("manifest", manifest::run),
    ("pool", pool::run),
    #[cfg(feature = "std")]
    ("roles", roles::run),
    ("roundtrip", roundtrip::run),
    #[cfg(feature = "safetensors")]
    ("safetensors", safetensors::run),
    ("scalars", scalars::run),
    #[cfg(feature = "serde")]
    ("serde", serde::run),
    ("transfer_message", transfer_message::run),
];
