//! What the tests share: the recorded messages, and bytes as text.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Read;

pub(crate) mod hostile;

/// The lines of a file in `tests/data`, as JSON.
pub(crate) fn lines(file: &str) -> Vec<serde_json::Value> {
    text(file)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A file in `tests/data`.
pub(crate) fn text(file: &str) -> String {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// The frames of a recorded message.
pub(crate) fn frames(line: &serde_json::Value) -> Vec<Vec<u8>> {
    let list = |key: &str| line.get(key).and_then(|frames| frames.as_array());
    if let Some(frames) = list("frames_hex") {
        return frames
            .iter()
            .map(|frame| hex(frame.as_str().unwrap()))
            .collect();
    }
    let frames = list("frames_zlib_hex").unwrap();
    frames
        .iter()
        .map(|frame| inflate(&hex(frame.as_str().unwrap())))
        .collect()
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut inflated = Vec::new();
    flate2::read::ZlibDecoder::new(bytes)
        .read_to_end(&mut inflated)
        .unwrap();
    inflated
}

/// The SHA-256 of `bytes` in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
