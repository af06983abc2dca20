//! Control messages are read and written as a model and serde_json have them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorwire_fuzz::transfer_message::run(data));
