//! What can be wrong with a transport, and the check that sees it.

use tensorwire::transport::conformance::Check;

/// What is wrong with a transport.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flaw {
    /// Nothing: this one passes.
    None,
    AcceptsNoFrames,
    AllocatesEachTime,
    ClearsTheListOnFailure,
    CrossesPairs,
    CutsFramesPast1000,
    CutsLargePayloads,
    DropsTheNextAfterAPanic,
    DropsTheNextAfterARefusal,
    DropsTheNextAfterATimeout,
    DropsEachEleventh,
    DropsTheFirstAfterARestart,
    ForgetsEmptyFrames,
    KeepsBackTheLast,
    HangsWithoutPeer,
    IgnoresCaps,
    IgnoresForever,
    IgnoresHighWater,
    IgnoresUpTo,
    KeepsOldFrames,
    KeepsStaleFramesOnFailure,
    LeaksOnClose,
    LosesItsPlaceOnRestart,
    LosesWhatArrives,
    MisreportsCaps,
    MiscountsBytes,
    NeverReleasesOwners,
    NeverWakes,
    PanicsOnceMoved,
    PanicsWithoutPeer,
    ReceiptOfTooMuch,
    Reorders,
    RepeatsAfterARestart,
    RepeatsEach13th,
    SendsWhatItRefused,
    SplitsLargeMessages,
    TimesOutEarly,
    TimesOutLate,
    TimesOutWhereItWouldBlock,
    WaitsWhereItIsNotTo,
    WouldBlockWhereItTimesOut,
    WouldBlockOnSendWhereItTimesOut,
    MessagesEndWithTheirEnds,
}

/// (flaw, the check that sees it, what it says)
pub(crate) const CAUGHT: &[(Flaw, Check, &str)] = &[
    (
        Flaw::DropsEachEleventh,
        Check::Order,
        "message 10: 12 frames instead of 11",
    ),
    (
        Flaw::Reorders,
        Check::Order,
        "message 5: 7 frames instead of 6",
    ),
    (
        Flaw::RepeatsEach13th,
        Check::Order,
        "message 13: 13 frames instead of 14",
    ),
    (
        Flaw::DropsEachEleventh,
        Check::SlowReader,
        "next message: 11 instead of 10",
    ),
    (
        Flaw::RepeatsEach13th,
        Check::SlowReader,
        "next message: 12 instead of 13",
    ),
    (
        Flaw::SplitsLargeMessages,
        Check::Wholeness,
        "message 0: 8 frames instead of 17",
    ),
    (
        Flaw::SendsWhatItRefused,
        Check::Wholeness,
        "differs at byte",
    ),
    (
        Flaw::LosesWhatArrives,
        Check::Wholeness,
        "message 1, asked for while it arrives",
    ),
    (
        Flaw::ForgetsEmptyFrames,
        Check::EmptyFrames,
        "frames of [0] bytes: message without frames",
    ),
    (
        Flaw::CutsFramesPast1000,
        Check::FrameCounts,
        "1000 frames instead of 1024",
    ),
    (
        Flaw::CutsLargePayloads,
        Check::PayloadSizes,
        "has 1048575 bytes instead of 1048576",
    ),
    (
        Flaw::AcceptsNoFrames,
        Check::NoFrames,
        "Ok instead of InvalidInput",
    ),
    (
        Flaw::IgnoresCaps,
        Check::CapsFrameBytes,
        "frames instead of 3",
    ),
    (
        Flaw::IgnoresCaps,
        Check::CapsFrames,
        "a message that was never sent: 5 frames",
    ),
    (Flaw::IgnoresCaps, Check::CapsMessageBytes, "instead of"),
    (
        Flaw::DropsTheNextAfterARefusal,
        Check::CapsFrameBytes,
        "no good message within",
    ),
    (
        Flaw::DropsTheNextAfterARefusal,
        Check::CapsFrames,
        "no good message within",
    ),
    (
        Flaw::DropsTheNextAfterARefusal,
        Check::CapsMessageBytes,
        "no good message within",
    ),
    (
        Flaw::MisreportsCaps,
        Check::CapsFrames,
        "limit of the cap: 5 instead of 4",
    ),
    (Flaw::TimesOutEarly, Check::ReceiveTimeout, "asked for"),
    (Flaw::TimesOutLate, Check::ReceiveTimeout, "asked for"),
    (
        Flaw::WouldBlockWhereItTimesOut,
        Check::ReceiveTimeout,
        "WouldBlock (would block) instead of TimedOut",
    ),
    (
        Flaw::DropsTheNextAfterATimeout,
        Check::ReceiveTimeout,
        "message 0 after a timeout",
    ),
    (Flaw::IgnoresUpTo, Check::ReceiveTimeout, "asked for"),
    (Flaw::TimesOutEarly, Check::SendTimeout, "asked for"),
    (Flaw::IgnoresUpTo, Check::SendTimeout, "asked for"),
    (Flaw::TimesOutLate, Check::SendTimeout, "asked for"),
    (
        Flaw::WouldBlockOnSendWhereItTimesOut,
        Check::SendTimeout,
        "instead of TimedOut",
    ),
    (
        Flaw::IgnoresHighWater,
        Check::SendTimeout,
        "no back-pressure",
    ),
    (
        Flaw::TimesOutWhereItWouldBlock,
        Check::TryReceive,
        "instead of WouldBlock",
    ),
    (Flaw::WaitsWhereItIsNotTo, Check::TryReceive, "back after"),
    (
        Flaw::TimesOutWhereItWouldBlock,
        Check::TrySend,
        "instead of WouldBlock",
    ),
    (Flaw::WaitsWhereItIsNotTo, Check::TrySend, "back after"),
    (
        Flaw::SendsWhatItRefused,
        Check::TrySend,
        "sending when there is room again: timed out",
    ),
    (
        Flaw::WouldBlockWhereItTimesOut,
        Check::ZeroWait,
        "instead of TimedOut",
    ),
    (Flaw::WaitsWhereItIsNotTo, Check::ZeroWait, "back after"),
    (
        Flaw::NeverWakes,
        Check::Wakeup,
        "not done after 4 s: receiving message 0",
    ),
    (Flaw::IgnoresForever, Check::Wakeup, "receiving: timed out"),
    (
        Flaw::IgnoresHighWater,
        Check::BackPressure,
        "no back-pressure",
    ),
    (
        Flaw::SendsWhatItRefused,
        Check::BackPressure,
        "receiving: number: ",
    ),
    (
        Flaw::IgnoresHighWater,
        Check::SlowReader,
        "under way, at a high-water mark of 100",
    ),
    // In pair 0, or in pair 1 if the other one is done before that starts.
    (Flaw::CrossesPairs, Check::TwoPairs, ", message "),
    (Flaw::PanicsOnceMoved, Check::MovedEnds, "scripted: moved"),
    (
        Flaw::KeepsBackTheLast,
        Check::CloseInFlight,
        "message 49 of 50, its sender closed",
    ),
    (
        Flaw::MessagesEndWithTheirEnds,
        Check::MessagesOutlive,
        "0 frames instead of 5",
    ),
    (
        Flaw::HangsWithoutPeer,
        Check::ReceiverGone,
        "a send to nobody",
    ),
    (
        Flaw::PanicsWithoutPeer,
        Check::ReceiverGone,
        "panicked: scripted",
    ),
    (
        Flaw::LosesItsPlaceOnRestart,
        Check::ReceiverRestart,
        "after 1 restarts: no message",
    ),
    (
        Flaw::RepeatsAfterARestart,
        Check::ReceiverRestart,
        "message 0 after message Some(0)",
    ),
    (
        Flaw::DropsTheFirstAfterARestart,
        Check::SenderRestart,
        "message 0 after 1 restarts",
    ),
    (
        Flaw::NeverReleasesOwners,
        Check::OwnersDelivered,
        "dropped 0 times instead of 1",
    ),
    (
        Flaw::ClearsTheListOnFailure,
        Check::OwnersComeBack,
        "parts that came back: 0",
    ),
    (
        Flaw::LeaksOnClose,
        Check::OwnersUnsent,
        "dropped 0 times instead of 1",
    ),
    (
        Flaw::NeverReleasesOwners,
        Check::OwnersUnsent,
        "dropped 0 times instead of 1",
    ),
    (
        Flaw::DropsTheNextAfterAPanic,
        Check::OwnersPanic,
        "the next message never came",
    ),
    (
        Flaw::KeepsStaleFramesOnFailure,
        Check::FailedReceive,
        "frames left, Never: 2 instead of 0",
    ),
    (
        Flaw::KeepsOldFrames,
        Check::StorageReuse,
        "message 1: 4 frames instead of 1",
    ),
    (
        Flaw::AllocatesEachTime,
        Check::StorageReuse,
        "1 allocations, after larger ones",
    ),
    (Flaw::ReceiptOfTooMuch, Check::Receipts, "bytes copied of"),
    (
        Flaw::MiscountsBytes,
        Check::CountersAgree,
        "sender: bytes sent",
    ),
];
