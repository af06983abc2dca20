//! Payloads on their way to the device, slot by slot: what every upload goes through.
