//! Blocks lie where a plain model puts them, whatever is allocated and freed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::pool::run(data));
