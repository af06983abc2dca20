//! A decoder has storage for one message at a time.

use tensorwire::Decoder;

fn main() {
    let frames: [&[u8]; 1] = [br#"{"tensor_descriptors":[]}"#];
    let mut decoder = Decoder::new();
    let first = decoder.decode(&frames).unwrap();
    let second = decoder.decode(&frames).unwrap();
    println!("{} {}", first.len(), second.len());
}
