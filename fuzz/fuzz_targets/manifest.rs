//! A manifest is read as a naive reader reads it, and what is read is written and laid out again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::manifest::run(data));
