//! What the crate generates is what it says, and with a few bytes changed it is as the other targets have it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::generated::run(data));
