//! The socket types, and what each can do.

use ::nng::Protocol;

/// A socket type. Sealed: the types are those of this module.
pub trait Kind: sealed::Kind {}

/// A socket type that sends: [`Push`], [`Pair0`], [`Pair1`], [`Request`],
/// [`Reply`], [`Publish`].
pub trait Sends: Kind {}

/// A socket type that receives: [`Pull`], [`Pair0`], [`Pair1`], [`Request`],
/// [`Reply`], [`Subscribe`].
pub trait Receives: Kind {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $protocol:ident: $flow:ident, [$($queue:ident)*], $($can:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct $name;

        impl Kind for $name {}

        impl sealed::Kind for $name {
            const PROTOCOL: Protocol = Protocol::$protocol;
            const FLOW: sealed::Flow = sealed::Flow::$flow;
            const QUEUES: &'static [sealed::Queue] = &[$(sealed::Queue::$queue),*];
            const RECEIVES: bool = kinds!(@receives $($can)*);
            const SENDS: bool = kinds!(@sends $($can)*);
        }

        $(impl $can for $name {})*
    )*};
    (@sends Sends $($rest:ident)*) => { true };
    (@sends $($rest:ident)*) => { false };
    (@receives Sends Receives) => { true };
    (@receives Receives) => { true };
    (@receives $($rest:ident)*) => { false };
}

kinds! {
    /// PAIR, version 0: exactly one peer, both ways.
    Pair0 = Pair0: Queued, [Sent Received], Sends Receives;
    /// PAIR, version 1: the same, with a count of hops before the body. It talks to
    /// its own version only.
    Pair1 = Pair1: Queued, [Sent Received], Sends Receives;
    /// PUB: sends to every subscriber, and drops what a slow one has no room for.
    Publish = Pub0: Broadcast, [Sent], Sends;
    /// PULL: receives fairly from its peers.
    Pull = Pull0: Queued, [], Receives;
    /// PUSH: sends in turn to its peers.
    Push = Push0: Queued, [Sent], Sends;
    /// REP: receives a request, then sends the reply to it.
    Reply = Rep0: Replies, [], Sends Receives;
    /// REQ: sends a request to one of its peers, then receives the reply to it.
    Request = Req0: Requests, [], Sends Receives;
    /// SUB: receives what it subscribed to.
    Subscribe = Sub0: Broadcast, [Received], Receives;
}

pub(super) mod sealed {
    /// What this module knows of a socket type.
    #[expect(unnameable_types, reason = "that is the seal")]
    pub trait Kind {
        /// What NNG calls it.
        const PROTOCOL: ::nng::Protocol;
        /// How its messages go.
        const FLOW: Flow;
        /// The queues it has whose length can be set.
        const QUEUES: &'static [Queue];
        /// Whether it receives messages.
        const RECEIVES: bool;
        /// Whether it sends messages, so that some may be left at the end.
        const SENDS: bool;
    }

    /// A queue of messages.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    #[expect(unnameable_types, reason = "as above")]
    #[non_exhaustive]
    pub enum Queue {
        /// Of those that came and were not fetched.
        Received,
        /// Of those that were sent and did not leave.
        Sent,
    }

    /// How messages go.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    #[expect(unnameable_types, reason = "as above")]
    #[non_exhaustive]
    pub enum Flow {
        /// Each to every peer that has room.
        Broadcast,
        /// Each to one peer, whichever has room.
        Queued,
        /// Each to the peer that the last one came from.
        Replies,
        /// Each to one peer, and then its reply has to be waited for.
        Requests,
    }
}
