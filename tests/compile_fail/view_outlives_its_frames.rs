//! A view borrows the frames, so it does not outlive the message that owns them.

use tensorwire::Decoder;
use tensorwire::transport::{Frames, RecvFrames, loopback};

fn main() {
    let (_left, mut right) = loopback::pair();
    let mut decoder = Decoder::new();
    let view = {
        let received = right.recv().unwrap();
        let message = decoder.decode(received.frames()).unwrap();
        message.tensor("latents").unwrap()
    };
    println!("{:?}", view.bytes());
}
