//! A socket is used by one thread at a time: there are no shared references to it on
//! others.

use std::marker::PhantomData;

use tensorwire::transport::zmq::{Push, Socket};

struct Probe<T>(PhantomData<T>);

impl<T: Sync> Probe<T> {
    fn shared_between_threads() {}
}

fn main() {
    Probe::<Socket<Push>>::shared_between_threads();
}
