//! What deserializes is what the text says, and serializes to a text that says the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::serde::run(data));
