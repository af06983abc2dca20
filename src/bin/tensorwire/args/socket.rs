//! Which socket a command opens, how messages come and go by it, and when to stop.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::values::{count, seconds};

/// Which socket, and whether it waits for peers or goes to them.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("end").args(["bind", "connect"]).required(true)))]
pub(crate) struct At {
    /// Bind this endpoint, and let peers connect to it
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) bind: Option<String>,
    /// Connect to this endpoint, such as tcp://127.0.0.1:5555 or ipc:///tmp/peer.sock
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) connect: Option<String>,
    /// What carries the messages
    #[arg(long, value_enum, default_value_t = Transport::Zmq)]
    pub(crate) transport: Transport,
}

/// When to stop.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Stop after so many messages
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(crate) count: Option<u64>,
    /// Stop when no message came for so many seconds [default: wait for ever]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Transport {
    /// NNG; in builds with the feature `nng`
    Nng,
    /// ZeroMQ
    Zmq,
}

/// How messages come.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum RecvPattern {
    Pair,
    Pull,
    Rep,
    Sub,
}

/// How messages go.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SendPattern {
    Pair,
    Pub,
    Push,
    Req,
}

impl RecvPattern {
    /// How what comes so is passed on.
    pub(crate) const fn onward(self) -> SendPattern {
        match self {
            Self::Pair => SendPattern::Pair,
            Self::Pull => SendPattern::Push,
            Self::Rep => SendPattern::Req,
            Self::Sub => SendPattern::Pub,
        }
    }
}
