//! Whatever is a bundle is the one spelling of its frames, and all else is refused in bounds.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::bundle::run(data));
