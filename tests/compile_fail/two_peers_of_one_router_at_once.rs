//! The way to a peer is the whole router, for as long as it is taken.

use tensorwire::transport::SendFrames;
use tensorwire::transport::zmq::Context;

fn main() {
    let mut router = Context::new().router().bind("inproc://peers").unwrap();
    let mut one = router.to(b"worker-1");
    let mut other = router.to(b"worker-2");
    one.send(&[b"work"]).unwrap();
    other.send(&[b"work"]).unwrap();
}
