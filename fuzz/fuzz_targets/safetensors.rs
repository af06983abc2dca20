//! Whatever is a `.safetensors` file is written again as one that says the same, and all else is refused in bounds.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::safetensors::run(data));
