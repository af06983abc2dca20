//! An owner may be dropped by a thread of the transport.

use std::rc::Rc;

use tensorwire::transport::Buffer;

struct Shared(Rc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn main() {
    drop(Buffer::new(Shared(Rc::new(vec![1]))));
}
