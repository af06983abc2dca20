//! The transports that are run over.

use tensorwire::transport::loopback;

use crate::traffic::Traffic;
use crate::{Failure, Outcome};

type Run = fn(Traffic) -> Result<Outcome, Failure>;

/// All transports that this was built with.
pub(crate) const ALL: &[(&str, Run)] = &[
    ("loopback", |traffic| {
        // Its storage goes in circles, and each message of the circle grows to the largest.
        let (tx, rx) = loopback::Options::new().with_high_water(16).pair();
        traffic.run(tx, rx)
    }),
    #[cfg(feature = "zmq")]
    ("zmq inproc", |traffic| zmq(traffic, "inproc://soak")),
    #[cfg(feature = "zmq")]
    ("zmq ipc", |traffic| {
        let file = std::env::temp_dir().join(format!("tensorwire-soak-{}", std::process::id()));
        let outcome = zmq(traffic, &format!("ipc://{}", file.display()));
        let _ = std::fs::remove_file(file);
        outcome
    }),
    #[cfg(feature = "zmq")]
    ("zmq tcp", |traffic| zmq(traffic, "tcp://127.0.0.1:*")),
];

#[cfg(feature = "zmq")]
fn zmq(traffic: Traffic, endpoint: &str) -> Result<Outcome, Failure> {
    let context = tensorwire::transport::zmq::Context::new();
    let pull = context.pull().bind(endpoint)?;
    let push = context.push().connect(pull.endpoint())?;
    traffic.run(push, pull)
}
