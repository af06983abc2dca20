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
    #[cfg(feature = "nng")]
    ("nng inproc", |traffic| nng(traffic, "inproc://soak")),
    #[cfg(feature = "nng")]
    ("nng ipc", |traffic| {
        let file = std::env::temp_dir().join(format!("tensorwire-soak-{}", std::process::id()));
        nng(traffic, &format!("ipc://{}", file.display()))
    }),
    #[cfg(feature = "nng")]
    ("nng tcp", |traffic| nng(traffic, "tcp://127.0.0.1:0")),
    #[cfg(feature = "iceoryx2")]
    ("iceoryx2", |traffic| {
        let name = format!("soak/{}", std::process::id());
        let channel = tensorwire::transport::iceoryx2::Builder::new(&name).depth(16);
        let sender = channel.clone().sender()?;
        traffic.run(sender, channel.receiver()?)
    }),
];

#[cfg(feature = "nng")]
fn nng(traffic: Traffic, endpoint: &str) -> Result<Outcome, Failure> {
    let context = tensorwire::transport::nng::Context::new();
    let pull = context.pull().listen(endpoint)?;
    let push = context.push().dial(pull.endpoint())?;
    traffic.run(push, pull)
}

#[cfg(feature = "zmq")]
fn zmq(traffic: Traffic, endpoint: &str) -> Result<Outcome, Failure> {
    let context = tensorwire::transport::zmq::Context::new();
    let pull = context.pull().bind(endpoint)?;
    let push = context.push().connect(pull.endpoint())?;
    traffic.run(push, pull)
}
