//! Bytes in flight are nobody's: they went along with the message.

use tensorwire::transport::{Part, SendFrames, Wait, loopback};

fn main() {
    let (mut left, _right) = loopback::pair();
    let mut tensor = vec![0_u8; 4096];
    let mut parts = vec![Part::from(tensor)];
    left.send_parts(&mut parts, Wait::Configured).unwrap();
    tensor[0] = 1;
}
