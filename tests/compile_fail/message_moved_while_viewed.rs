//! Nobody moves a message while a view of it lives.

use tensorwire::Decoder;
use tensorwire::transport::{Frames, RecvFrames, loopback};

fn main() {
    let (_left, mut right) = loopback::pair();
    let mut decoder = Decoder::new();
    let received = right.recv().unwrap();
    let message = decoder.decode(received.frames()).unwrap();
    let view = message.tensor("latents").unwrap();
    let moved = received;
    drop(moved);
    println!("{:?}", view.bytes());
}
