//! The list of checks, and what each of them leaves to the transport.

mod accounts;
mod caps;
mod closing;
mod flow;
mod messages;
mod owners;
mod restart;
mod waiting;

use core::fmt;

use super::Backend;
use super::support::{Bench, Stop};

macro_rules! checks {
    ($($(#[doc = $text:literal])+ $check:ident, $name:literal, $perform:path;)+) => {
        /// What a transport is held to.
        ///
        /// Each check says what it does, and what it leaves to the transport.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Check {
            $($(#[doc = $text])+ $check,)+
        }

        impl Check {
            /// All checks, in the order they run.
            pub const ALL: &'static [Self] = &[$(Self::$check),+];

            /// Returns the name, as reports have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$check => $name,)+
                }
            }

            pub(super) fn perform<B: Backend>(self, bench: &Bench<B>) -> Result<(), Stop> {
                match self {
                    $(Self::$check => $perform(bench),)+
                }
            }
        }
    };
}

checks! {
    /// 66 messages of 1 to 64 frames of 0 to 20 001 bytes arrive in the order they were
    /// sent, each with its own bytes.
    Order, "order", messages::order;
    /// Messages of 17 large frames, sent through a queue that is full most of the time,
    /// arrive with all frames of one message and none of another. A send that finds no
    /// room leaves nothing behind, and a receive that gives up while a message arrives
    /// loses none of it.
    Wholeness, "wholeness", messages::wholeness;
    /// Frames of no bytes arrive as such: alone, first, last, between others, 63 of them.
    EmptyFrames, "empty_frames", messages::empty_frames;
    /// Messages of 1, 2, 63, 1024 and 4096 frames arrive.
    FrameCounts, "frame_counts", messages::frame_counts;
    /// Payloads of 0 bytes to 16 MiB arrive, and up to 256 MiB at
    /// [`Scale::Full`](super::Scale::Full).
    PayloadSizes, "payload_sizes", messages::payload_sizes;
    /// The empty list of frames is refused as
    /// [`ErrorKind::InvalidInput`](crate::transport::ErrorKind::InvalidInput), and the next
    /// message arrives.
    NoFrames, "no_frames", messages::no_frames;
    /// A message with a frame over [`Caps::frame_bytes`](crate::transport::Caps::frame_bytes)
    /// is not received, and the next good message is, whole.
    ///
    /// Left to the transport is who refuses it. The sender, with an error that is no
    /// waiting. The receiver, with
    /// [`ErrorKind::CapExceeded`](crate::transport::ErrorKind::CapExceeded), and then no
    /// message after it may be lost. Or the receiver's end of the connection, which costs
    /// the sender that connection (ZeroMQ over ipc and tcp): then messages
    /// sent meanwhile may be lost, and those that come later are received.
    CapsFrameBytes, "caps_frame_bytes", caps::frame_bytes;
    /// The same for [`Caps::frames`](crate::transport::Caps::frames).
    CapsFrames, "caps_frames", caps::frames;
    /// The same for [`Caps::message_bytes`](crate::transport::Caps::message_bytes).
    CapsMessageBytes, "caps_message_bytes", caps::message_bytes;
    /// A receive with nothing to receive is
    /// [`ErrorKind::TimedOut`](crate::transport::ErrorKind::TimedOut) when its time is up,
    /// and nothing that comes later is lost by it.
    ///
    /// When the time is up: not earlier, but for a millisecond of rounding; and of five
    /// tries the fastest is late by 100 ms at most. That holds for the time that is
    /// configured, and for another one that the call says itself.
    ReceiveTimeout, "receive_timeout", waiting::receive_timeout;
    /// The same for a send that finds no room: and then the message was not sent.
    ///
    /// How much fits into a transport is its own business, up to 100 messages of 4 MiB at a
    /// high-water mark of 1.
    SendTimeout, "send_timeout", waiting::send_timeout;
    /// [`RecvFrames::try_recv_into`](crate::transport::RecvFrames::try_recv_into) is
    /// [`ErrorKind::WouldBlock`](crate::transport::ErrorKind::WouldBlock) at once (in 100 ms)
    /// when nothing is there, and gets what is there.
    ///
    /// A message that was sent may need time to get there, so it is tried again.
    TryReceive, "try_receive", waiting::try_receive;
    /// [`SendFrames::try_send`](crate::transport::SendFrames::try_send) is
    /// [`ErrorKind::WouldBlock`](crate::transport::ErrorKind::WouldBlock) at once (in 100 ms)
    /// when there is no room, and then the message was not sent.
    TrySend, "try_send", waiting::try_send;
    /// Waiting up to no time at all is not to wait either, but the error is
    /// [`ErrorKind::TimedOut`](crate::transport::ErrorKind::TimedOut).
    ZeroWait, "zero_wait", waiting::zero_wait;
    /// A receive that waits forever is woken by a later send, also one that comes when
    /// the time is up that receives wait as configured.
    Wakeup, "wakeup", waiting::wakeup;
    /// A full queue makes the sender wait or fail, and nothing is lost by that.
    BackPressure, "back_pressure", flow::back_pressure;
    /// 100 000 numbered messages of 1 KiB to a reader that is slower than the sender: no
    /// gap, no repeat, and bounded memory.
    ///
    /// Bounded: of messages under way there are never more than twice the high-water mark,
    /// as each end may have a queue, and 16 MiB, as the system has buffers too.
    SlowReader, "slow_reader", flow::slow_reader;
    /// Two pairs, each used by two threads at a time, know nothing of each other.
    TwoPairs, "two_pairs", flow::two_pairs;
    /// Ends may be moved to other threads between calls.
    MovedEnds, "moved_ends", flow::moved_ends;
    /// Fifty messages of 100 KB are sent and the sender is dropped before any of them is
    /// received: all arrive. The receive after the last one fails, or waits in vain.
    CloseInFlight, "close_in_flight", closing::close_in_flight;
    /// Received messages outlive both ends, and with them whatever they lived in.
    MessagesOutlive, "messages_outlive", closing::messages_outlive;
    /// Sending to a receiver that is gone takes no longer than its wait (of five tries the
    /// fastest is late by 100 ms at most), and it is no panic. Nor does closing hang.
    ///
    /// It may succeed, as there may be room in a queue, or fail in any way.
    ReceiverGone, "receiver_gone", closing::receiver_gone;
    /// The receiver is closed and another one takes its place: messages that are sent
    /// later arrive there.
    ///
    /// Messages sent before, or meanwhile, may be lost with the receiver that they were sent to;
    /// sending them may fail in any way but with
    /// [`ErrorKind::Closed`](crate::transport::ErrorKind::Closed). No message is kept over the
    /// restart. Those that arrive are whole, in order, and none comes twice.
    ReceiverRestart, "receiver_restart", restart::receiver;
    /// The sender is closed and another one takes its place, three times: all messages
    /// of all of them arrive, in order.
    ///
    /// What one sent is still under way when the next one is made, but for the first
    /// message, and received before that one sends: order holds per sender. A transport
    /// that is for one sender only, and turns away a second one while messages of the
    /// first are left, may skip it.
    SenderRestart, "sender_restart", restart::sender;
    /// Owners of buffers are dropped exactly once when their message is delivered and
    /// dropped; the list they were in is empty and keeps its room.
    OwnersDelivered, "owners_delivered", owners::delivered;
    /// Owners of a message that finds no room come back: the same buffers, in the same list,
    /// and none is dropped.
    OwnersComeBack, "owners_come_back", owners::come_back;
    /// Owners of messages that nobody receives are dropped exactly once when both ends are
    /// closed, after the linger time at the latest.
    OwnersUnsent, "owners_unsent", owners::unsent;
    /// An owner that panics in its drop is dropped once, and the message after it arrives.
    ///
    /// Where that panic goes is left to the transport: through the call that drops
    /// the owner, or nowhere, if a foreign library is the caller.
    OwnersPanic, "owners_panic", owners::panicking;
    /// A receive that fails leaves the message empty, whatever it held.
    FailedReceive, "failed_receive", accounts::failed_receive;
    /// One message is received into again and again: each time it holds what was sent,
    /// and nothing of the message before. Clearing it empties it.
    ///
    /// If it has a [`Receipt`](crate::transport::Receipt), that tells of no allocations
    /// once the largest message has come by.
    StorageReuse, "storage_reuse", accounts::storage_reuse;
    /// The [`Receipt`](crate::transport::Receipt) of a message is possible: no more bytes
    /// copied than it has, no fewer retained. Skipped if there is none.
    Receipts, "receipts", accounts::receipts;
    /// The [`Counters`](crate::transport::Counters) of both ends agree with what happened.
    /// Skipped if the backend gives none.
    CountersAgree, "counters_agree", accounts::counters;
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
