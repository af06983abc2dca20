//! What every payload is made of, so that each end can know it without the other.
//!
//! ```text
//! byte i = start + 31*i + 7*(i >> 8) + 13*(i >> 16) + 17*(i >> 24)        modulo 256
//! ```
//!
//! Within 64 KiB the terms in `i` and `i >> 8` repeat from block to block; the
//! other two are one number for a block. So neither end computes much, and what
//! is measured beside it is little disturbed.

use std::sync::LazyLock;

const BLOCK_LEN: usize = 1 << 16;

/// The first block of a payload that starts from 0.
static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |i: usize| low_byte(31 * i + 7 * (i >> 8));
    (0..BLOCK_LEN).map(byte).collect()
});

/// The `len` bytes that start from `start`.
pub(crate) fn payload(len: usize, start: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    for block in 0..len.div_ceil(BLOCK_LEN) {
        let rest = BLOCK.iter().take(len - bytes.len());
        let shift = shift(block, start);
        bytes.extend(rest.map(|byte| byte.wrapping_add(shift)));
    }
    bytes
}

/// Where `bytes` first differ from those that start from `start`, and what should be there.
pub(crate) fn first_difference(bytes: &[u8], start: u8) -> Option<(usize, u8)> {
    for (block, chunk) in bytes.chunks(BLOCK_LEN).enumerate() {
        let shift = shift(block, start);
        let expected = BLOCK.iter().map(|byte| byte.wrapping_add(shift));
        // All of the block without a branch, and only then which byte it was.
        let pairs = chunk.iter().zip(expected);
        if pairs
            .clone()
            .fold(0, |sum, (is, should)| sum | (is ^ should))
            == 0
        {
            continue;
        }
        let (at, (_, should)) = pairs.enumerate().find(|(_, (is, should))| *is != should)?;
        return Some((block * BLOCK_LEN + at, should));
    }
    None
}

/// What a block adds to the first one.
fn shift(block: usize, start: u8) -> u8 {
    start.wrapping_add(low_byte(13 * block + 17 * (block >> 8)))
}

const fn low_byte(number: usize) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}
