//! Whatever happens in a small cluster, requests end, and everything comes back.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::roles::run(data));
