//! Trees of scalars are read back as they were written.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::scalars::run(data));
