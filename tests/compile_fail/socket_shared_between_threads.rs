//! A socket is used by one thread at a time, so there are no shared references to it
//! on others.

use tensorwire::transport::zmq::{Push, Socket};

fn shared_between_threads<T: Sync>() {}

fn main() {
    shared_between_threads::<Socket<Push>>();
}
