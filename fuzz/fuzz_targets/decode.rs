//! Arbitrary frames decode or fail within bounds, and the same each time.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::decode::run(data));
