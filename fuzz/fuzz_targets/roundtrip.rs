//! Whatever decodes encodes, to bytes that decode to the same and encode to themselves.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::roundtrip::run(data));
