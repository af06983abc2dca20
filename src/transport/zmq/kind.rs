//! The socket types, and what each can do.

/// A socket type. Sealed: the types are those of this module.
pub trait Kind: sealed::Kind {}

/// A socket type that sends without naming a peer: [`Push`], [`Pair`], [`Dealer`],
/// [`Publish`].
pub trait Sends: Kind {}

/// A socket type that receives: [`Pull`], [`Pair`], [`Dealer`], [`Subscribe`]. A
/// [`Router`] receives too, with an envelope.
pub trait Receives: Kind {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $zmq:ident: $rollback:ident, $sends:literal, $($can:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct $name;

        impl Kind for $name {}

        impl sealed::Kind for $name {
            const TYPE: ::zmq::SocketType = ::zmq::SocketType::$zmq;
            const REMAINDER: sealed::Remainder = sealed::Remainder::$rollback;
            const SENDS: bool = $sends;
        }

        $(impl $can for $name {})*
    )*};
}

kinds! {
    /// DEALER: sends in turn to its peers, receives fairly from all of them.
    Dealer = DEALER: Swallowed, true, Sends Receives;
    /// PAIR: exactly one peer, both ways.
    Pair = PAIR: Refused, true, Sends Receives;
    /// PUB: sends to every subscriber, and drops what a slow one has no room for.
    Publish = PUB: Refused, true, Sends;
    /// PULL: receives fairly from its peers.
    Pull = PULL: Refused, false, Receives;
    /// PUSH: sends in turn to its peers.
    Push = PUSH: Swallowed, true, Sends;
    /// ROUTER: receives fairly from its peers, sends to the one that is named.
    Router = ROUTER: Refused, true, ;
    /// SUB: receives what it subscribed to.
    Subscribe = SUB: Refused, false, Receives;
}

pub(super) mod sealed {
    /// What this module knows of a socket type.
    #[expect(unnameable_types, reason = "that is the seal")]
    pub trait Kind {
        /// What libzmq calls it.
        const TYPE: ::zmq::SocketType;
        /// What it does with the rest of a message that failed half way.
        const REMAINDER: Remainder;
        /// Whether it sends messages, so that some may be left at the end.
        const SENDS: bool;
    }

    /// What becomes of the frames after the one that failed.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    #[expect(unnameable_types, reason = "as above")]
    #[non_exhaustive]
    pub enum Remainder {
        /// The socket is at a boundary again: nothing more may be sent.
        Refused,
        /// The socket swallows frames up to and with the last one, which has
        /// therefore to be sent (`lb_t::sendpipe` of libzmq).
        Swallowed,
    }
}
