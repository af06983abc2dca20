//! A borrowed part does not outlive the bytes it borrows.

use tensorwire::transport::{Part, SendFrames, Wait, loopback};

fn main() {
    let (mut left, _right) = loopback::pair();
    let mut parts = Vec::new();
    {
        let metadata = vec![1_u8; 100];
        parts.push(Part::from(&metadata[..]));
    }
    left.send_parts(&mut parts, Wait::Configured).unwrap();
}
