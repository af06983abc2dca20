//! The guide: how to do things, page by page.
//!
//! Each page is short and stands alone; every snippet in it is a test of this crate.
//!
//! | page | for whom |
//! |---|---|
//! | [`start`] | Rust to Rust in five minutes |
//! | [`sglang`] | a service beside sglang's workers, or in the place of one |
//! | [`python`] | who knows the Python calls: `pack_tensors`, `send_tensors`, `unpack_tensors`, `encode_transfer_msg` |
//! | [`alignment`] | who wants a `&[f32]`, and finds that the bytes lie at an odd address |
//! | [`sending`] | who has large tensors, and wants none of them copied |
//! | [`limits`] | whose peers are strangers |
//! | [`transport`] | whose bytes go over something else |
//! | [`no_std`] | who has no operating system, or no allocator |
//! | [`fuzzing`] | who wants to know that it holds |
//!
//! What each item does in full is said at the item.

pub mod start {
    #![doc = include_str!("start.md")]
}

pub mod sglang {
    #![doc = include_str!("sglang.md")]
}

pub mod python {
    #![doc = include_str!("python.md")]
}

pub mod alignment {
    #![doc = include_str!("alignment.md")]
}

pub mod sending {
    #![doc = include_str!("sending.md")]
}

pub mod limits {
    #![doc = include_str!("limits.md")]
}

pub mod transport {
    #![doc = include_str!("transport.md")]
}

pub mod no_std {
    #![doc = include_str!("no_std.md")]
}

pub mod fuzzing {
    #![doc = include_str!("fuzzing.md")]
}
