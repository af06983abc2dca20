//! `tensorwire`: look at messages, move them, and turn them into files.

fn main() {}
