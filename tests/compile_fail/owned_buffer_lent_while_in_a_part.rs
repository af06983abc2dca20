//! An owner that only borrows its bytes is none: they could be touched in flight.

use tensorwire::transport::{Part, SendFrames, Wait, loopback};

fn main() {
    let (mut left, _right) = loopback::pair();
    let mut tensor = vec![0_u8; 4096];
    let mut parts = vec![Part::owned(&tensor[..])];
    left.send_parts(&mut parts, Wait::Configured).unwrap();
    tensor[0] = 1;
}
