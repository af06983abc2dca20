//! The fast path, the general one and the oracles agree.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::differential::run(data));
