//! Whatever `Value::parse` takes, reads and refuses is what serde_json and a naive parser say.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::json::run(data));
