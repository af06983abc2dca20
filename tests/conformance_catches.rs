//! The conformance suite can fail: each check is shown a transport that breaks it.

#![cfg(feature = "conformance")]

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tensorwire::transport::conformance::{Backend, Check, Matrix, Outcome, Setup, Suite};
use tensorwire::transport::loopback::{Error, Fault, Loopback, Message, Options, Script};
use tensorwire::transport::{
    Caps, Counters, Frames, Observed, Part, Receipt, RecvFrames, SendFrames, Wait,
};

/// What is wrong with a transport.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Flaw {
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
const CAUGHT: &[(Flaw, Check, &str)] = &[
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
    (Flaw::NeverWakes, Check::Wakeup, "not done after 4 s"),
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

#[test]
fn each_flaw_is_caught_by_the_check_that_is_there_for_it() {
    let wrong: Vec<String> = thread::scope(|scope| {
        let shares: Vec<_> = CAUGHT.chunks(CAUGHT.len().div_ceil(8)).collect();
        let caught = shares.into_iter().map(|share| {
            scope.spawn(move || {
                let wrong = share.iter().filter_map(|&(flaw, check, says)| {
                    let suite = Suite::new().with_patience(Duration::from_secs(1));
                    let report = suite.with_checks(&[check]).run(Broken::new(flaw));
                    match report.outcome(check).unwrap() {
                        Outcome::Failed(failure) if failure.to_string().contains(says) => None,
                        other => Some(format!("{flaw:?}, {check}: {other:?}")),
                    }
                });
                wrong.collect::<Vec<_>>()
            })
        });
        let caught: Vec<_> = caught.collect();
        let wrong = caught.into_iter().map(|share| share.join().unwrap());
        wrong.flatten().collect()
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_check_is_shown_a_flaw() {
    for check in Check::ALL {
        let shown = CAUGHT.iter().any(|(_, caught, _)| caught == check);
        assert!(shown, "{check}");
    }
}

#[test]
fn the_same_transport_without_a_flaw_passes_all_checks() {
    let report = Suite::new().run(Broken::new(Flaw::None));
    let report = report.into_result().unwrap();
    assert_eq!(report.passed(), Check::ALL.len(), "{report}");
}

#[test]
fn failures_are_told_and_so_are_skips() {
    struct Unable;

    impl Backend for Unable {
        type Sender = Loopback;
        type Receiver = Loopback;

        fn name(&self) -> &str {
            "unable"
        }

        fn open(&self, _: &Setup) -> Result<(Loopback, Loopback), Box<dyn StdError + Send + Sync>> {
            panic!("scripted: no such address")
        }

        fn skip(&self, check: Check) -> Option<&'static str> {
            (check == Check::Wakeup).then_some("it sleeps well")
        }
    }

    let suite = Suite::new().with_checks(&[Check::Order, Check::Wakeup]);
    let error = suite.run(Unable).into_result().unwrap_err();
    let report = error.report();
    let counts = (report.passed(), report.failed(), report.skipped());
    assert_eq!(counts, (0, 1, 1));
    let text = format!("{error:?}{}", Matrix::new(&[report.clone()]));
    for line in [
        "unable: 0 passed, 1 failed, 1 skipped",
        "FAIL order: panicked: scripted: no such address",
        "skip wakeup: it sleeps well",
        &format!("{:28}{:>6}", "order", "FAIL"),
    ] {
        assert!(text.contains(line), "{text}");
    }
    // Nothing done is nothing shown.
    let none = Suite::new().with_checks(&[]).run(Broken::new(Flaw::None));
    assert!(none.into_result().is_err());
}

struct Broken {
    flaw: Flaw,
    first: Mutex<Option<Link>>,
}

/// The sending end, in the hands of both sides, so that either can be replaced.
type Link = Arc<Mutex<Loopback>>;

impl Broken {
    fn new(flaw: Flaw) -> Self {
        let first = Mutex::default();
        Self { flaw, first }
    }

    fn options(&self, setup: &Setup) -> Options {
        let mut options = Options::new()
            .with_caps(setup.caps())
            .with_high_water(setup.high_water() as usize)
            .with_recv_timeout(Some(setup.timeout()))
            .with_send_timeout(Some(setup.timeout()));
        match self.flaw {
            Flaw::DropsEachEleventh => options = options.with_script(every(11, Fault::Drop)),
            Flaw::RepeatsEach13th => options = options.with_script(every(13, Fault::Duplicate)),
            Flaw::IgnoresCaps => options = options.with_caps(Caps::new()),
            Flaw::IgnoresHighWater => options = options.with_high_water(usize::MAX),
            _ => {}
        }
        options
    }
}

/// What happens to message `step - 1`, and each `step` later, for a while.
fn every(step: u64, fault: Fault) -> Script {
    let entries: Vec<(u64, Fault)> = (1..=10).map(|n| (n * step - 1, fault)).collect();
    Script::from(entries.as_slice())
}

impl Backend for Broken {
    type Sender = Sender;
    type Receiver = Receiver;

    fn name(&self) -> &str {
        "broken"
    }

    fn open(&self, setup: &Setup) -> Result<(Sender, Receiver), Box<dyn StdError + Send + Sync>> {
        let (left, right) = self.options(setup).pair();
        let link = Arc::new(Mutex::new(left));
        let mut sender = Sender {
            link: link.clone(),
            flaw: self.flaw,
            timeout: setup.timeout(),
            sent: 0,
            held: VecDeque::new(),
            poisoned: false,
        };
        let first = self.first.lock().unwrap().replace(link.clone());
        if let (Flaw::CrossesPairs, Some(first)) = (self.flaw, first) {
            sender.link = first;
        }
        let receiver = Receiver {
            right,
            link,
            flaw: self.flaw,
            timeout: setup.timeout(),
            storage: Message::default(),
            moved: thread::current().id(),
            lose_next: false,
            replay: None,
            alive: Arc::default(),
        };
        Ok((sender, receiver))
    }

    fn restart_receiver(
        &self,
        receiver: Receiver,
        setup: &Setup,
    ) -> Result<Option<Receiver>, Box<dyn StdError + Send + Sync>> {
        let (left, right) = self.options(setup).pair();
        let link = receiver.link.clone();
        let old = mem::replace(&mut *link.lock().unwrap(), left);
        if self.flaw == Flaw::LosesItsPlaceOnRestart {
            // What is sent goes elsewhere from now on.
            let (elsewhere, kept) = self.options(setup).with_high_water(1 << 20).pair();
            mem::forget(mem::replace(&mut *link.lock().unwrap(), elsewhere));
            mem::forget(kept);
        }
        drop(old);
        let replay = (self.flaw == Flaw::RepeatsAfterARestart).then_some(0);
        Ok(Some(Receiver {
            right,
            link,
            flaw: self.flaw,
            timeout: setup.timeout(),
            storage: Message::default(),
            moved: thread::current().id(),
            lose_next: false,
            replay,
            alive: Arc::default(),
        }))
    }

    fn restart_sender(
        &self,
        sender: Sender,
        _: &Setup,
    ) -> Result<Option<Sender>, Box<dyn StdError + Send + Sync>> {
        if self.flaw == Flaw::DropsTheFirstAfterARestart {
            let mut link = sender.link.lock().unwrap();
            link.script([(10, Fault::Drop)]);
        }
        Ok(Some(sender))
    }

    fn sender_counters(&self, sender: &Sender) -> Option<Counters> {
        let mut counters = sender.link.lock().unwrap().counters();
        if self.flaw == Flaw::MiscountsBytes {
            counters.bytes_sent += 1;
        }
        Some(counters)
    }

    fn receiver_counters(&self, receiver: &Receiver) -> Option<Counters> {
        Some(receiver.right.counters())
    }
}

struct Sender {
    link: Link,
    flaw: Flaw,
    timeout: Duration,
    sent: usize,
    held: VecDeque<Vec<Vec<u8>>>,
    poisoned: bool,
}

impl Sender {
    fn longest(&self, wait: Wait) -> Duration {
        longest(wait, self.timeout)
    }
}

fn longest(wait: Wait, configured: Duration) -> Duration {
    match wait {
        Wait::Configured => configured,
        Wait::Never => Duration::ZERO,
        Wait::UpTo(longest) => longest,
        _ => Duration::MAX,
    }
}

impl SendFrames for Sender {
    type SendError = Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), Error> {
        let wanted = self.longest(wait);
        let mut link = self.link.lock().unwrap();
        let mut frames = frames.to_vec();
        let mut actual = wait;
        match self.flaw {
            Flaw::AcceptsNoFrames if frames.is_empty() => return Ok(()),
            Flaw::CutsFramesPast1000 => frames.truncate(1000),
            Flaw::CutsLargePayloads => {
                for frame in &mut frames {
                    *frame = &frame[..frame.len().min((1 << 20) - 1)];
                }
            }
            Flaw::DropsTheNextAfterAPanic if mem::take(&mut self.poisoned) => return Ok(()),
            Flaw::ForgetsEmptyFrames => frames.retain(|frame| !frame.is_empty()),
            Flaw::KeepsBackTheLast => {
                let kept = frames.iter().map(|frame| frame.to_vec()).collect();
                self.held.push_back(kept);
                if self.held.len() < 2 {
                    return Ok(());
                }
                let kept = self.held.pop_front().unwrap_or_default();
                let kept: Vec<&[u8]> = kept.iter().map(Vec::as_slice).collect();
                return link.send_frames(&kept, wait);
            }
            Flaw::Reorders => {
                self.sent += 1;
                if self.sent == 6 {
                    let held = frames.iter().map(|frame| frame.to_vec()).collect();
                    self.held.push_back(held);
                    return Ok(());
                }
            }
            Flaw::SplitsLargeMessages if frames.len() == 17 => {
                let rest = frames.split_off(8);
                link.send_frames(&frames, wait)?;
                frames = rest;
                actual = Wait::Configured;
            }
            Flaw::IgnoresForever if wait == Wait::Forever => actual = Wait::Configured,
            Flaw::IgnoresUpTo if wait == Wait::UpTo(wanted) && !wanted.is_zero() => {
                actual = Wait::Configured;
            }
            Flaw::TimesOutEarly => actual = Wait::UpTo(wanted * 9 / 10),
            Flaw::TimesOutLate => actual = Wait::UpTo(wanted + Duration::from_millis(150)),
            Flaw::WaitsWhereItIsNotTo => {
                actual = Wait::UpTo(wanted.max(Duration::from_millis(150)));
            }
            _ => {}
        }
        while self.flaw == Flaw::SendsWhatItRefused
            && let Some(held) = self.held.front()
        {
            let held: Vec<&[u8]> = held.iter().map(Vec::as_slice).collect();
            match link.send_frames(&held, wait) {
                Ok(()) => self.held.pop_front(),
                Err(error) => return Err(error),
            };
        }
        let result = link.send_frames(&frames, actual);
        match (self.flaw, &result) {
            (Flaw::HangsWithoutPeer, Err(Error::Closed)) => {
                thread::sleep(Duration::from_millis(1200));
            }
            (Flaw::PanicsWithoutPeer, Err(Error::Closed)) => panic!("scripted: nobody"),
            (Flaw::Reorders, Ok(())) => {
                if let Some(held) = self.held.pop_front() {
                    let held: Vec<&[u8]> = held.iter().map(Vec::as_slice).collect();
                    link.send_frames(&held, wait)?;
                }
            }
            (Flaw::SendsWhatItRefused, Err(Error::WouldBlock)) => {
                let held = frames.iter().map(|frame| frame.to_vec()).collect();
                self.held.push_back(held);
            }
            (Flaw::TimesOutWhereItWouldBlock, Err(Error::WouldBlock)) => {
                return Err(Error::TimedOut);
            }
            (Flaw::WaitsWhereItIsNotTo, Err(Error::TimedOut)) if wait == Wait::Never => {
                return Err(Error::WouldBlock);
            }
            (Flaw::WouldBlockOnSendWhereItTimesOut, Err(Error::TimedOut)) => {
                return Err(Error::WouldBlock);
            }
            _ => {}
        }
        result
    }

    fn send_parts(&mut self, parts: &mut Vec<Part<'_>>, wait: Wait) -> Result<(), Error> {
        match self.flaw {
            Flaw::ClearsTheListOnFailure => {
                let sent = self.link.lock().unwrap().send_parts(parts, wait);
                parts.clear();
                sent
            }
            Flaw::LeaksOnClose => self.link.lock().unwrap().send_parts(parts, wait),
            _ => {
                let copies: Vec<Vec<u8>> =
                    parts.iter().map(|part| part.as_ref().to_vec()).collect();
                let frames: Vec<&[u8]> = copies.iter().map(Vec::as_slice).collect();
                self.send_frames(&frames, wait)?;
                if self.flaw == Flaw::NeverReleasesOwners {
                    parts.drain(..).for_each(mem::forget);
                }
                let dropped = catch_unwind(AssertUnwindSafe(|| parts.clear()));
                self.poisoned = dropped.is_err();
                Ok(())
            }
        }
    }
}

struct Receiver {
    right: Loopback,
    link: Link,
    flaw: Flaw,
    timeout: Duration,
    storage: Message,
    moved: thread::ThreadId,
    lose_next: bool,
    replay: Option<u32>,
    alive: Arc<()>,
}

impl Receiver {
    fn receive(&mut self, message: &mut Held, wait: Wait) -> Result<(), Error> {
        let wanted = longest(wait, self.timeout);
        let mut actual = wait;
        match self.flaw {
            Flaw::IgnoresForever if wait == Wait::Forever => actual = Wait::Configured,
            Flaw::IgnoresUpTo if wait == Wait::UpTo(wanted) && !wanted.is_zero() => {
                actual = Wait::Configured;
            }
            Flaw::TimesOutEarly => actual = Wait::UpTo(wanted * 9 / 10),
            Flaw::TimesOutLate => actual = Wait::UpTo(wanted + Duration::from_millis(150)),
            Flaw::WaitsWhereItIsNotTo => {
                actual = Wait::UpTo(wanted.max(Duration::from_millis(150)));
            }
            Flaw::NeverWakes if wait == Wait::Forever => loop {
                thread::sleep(Duration::from_secs(1));
            },
            Flaw::PanicsOnceMoved => {
                let here = thread::current().id();
                assert_eq!(mem::replace(&mut self.moved, here), here, "scripted: moved");
            }
            _ => {}
        }
        let result = self.right.recv_frames(&mut self.storage, actual);
        match (self.flaw, &result) {
            (Flaw::DropsTheNextAfterARefusal, Err(Error::Cap(_)))
            | (Flaw::DropsTheNextAfterATimeout, Err(Error::TimedOut)) => self.lose_next = true,
            (Flaw::TimesOutWhereItWouldBlock, Err(Error::WouldBlock)) => {
                return Err(Error::TimedOut);
            }
            (Flaw::WaitsWhereItIsNotTo, Err(Error::TimedOut)) if wait == Wait::Never => {
                return Err(Error::WouldBlock);
            }
            (Flaw::WouldBlockWhereItTimesOut, Err(Error::TimedOut)) => {
                return Err(Error::WouldBlock);
            }
            // A large message takes longer to arrive than the call waits, and its first
            // frames are gone with the call.
            (Flaw::LosesWhatArrives, Ok(()))
                if wanted < Duration::from_millis(10) && self.storage.byte_count() > 500_000 =>
            {
                self.storage.clear();
                return Err(match wait {
                    Wait::Never => Error::WouldBlock,
                    _ => Error::TimedOut,
                });
            }
            (Flaw::MisreportsCaps, Err(Error::Cap(_))) => {
                let mut meter = Caps::new().with_frames(5).meter();
                (0..6).for_each(|_| drop(meter.admit(0)));
                return meter.finish().map_err(Error::Cap);
            }
            (_, Ok(())) if mem::take(&mut self.lose_next) => {
                return self.receive(message, Wait::UpTo(wanted));
            }
            _ => {}
        }
        result?;
        if self.flaw != Flaw::KeepsOldFrames {
            message.frames.clear();
        }
        for (index, frame) in self.storage.frames().iter().enumerate() {
            let frame = frame.as_ref().to_vec();
            match message.frames.get_mut(index) {
                Some(old) => *old = frame,
                None => message.frames.push(frame),
            }
        }
        if let (Some(number), Some(first)) = (self.replay.take(), message.frames.first_mut()) {
            *first = number.to_le_bytes().to_vec();
        }
        message.flaw = self.flaw;
        message.alive = Arc::downgrade(&self.alive);
        // Owners are dropped here, and may panic.
        self.storage.clear();
        Ok(())
    }
}

impl RecvFrames for Receiver {
    type Message = Held;
    type RecvError = Error;

    fn recv_frames(&mut self, message: &mut Held, wait: Wait) -> Result<(), Error> {
        let received = self.receive(message, wait);
        if received.is_err() && self.flaw != Flaw::KeepsStaleFramesOnFailure {
            message.clear();
        }
        received
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.flaw == Flaw::LeaksOnClose {
            let (_, right) = Options::new().pair();
            mem::forget(mem::replace(&mut self.right, right));
            let (left, _) = Options::new().pair();
            mem::forget(mem::replace(&mut *self.link.lock().unwrap(), left));
        }
    }
}

/// A received message, all of whose bytes are copies.
struct Held {
    frames: Vec<Vec<u8>>,
    flaw: Flaw,
    alive: std::sync::Weak<()>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            flaw: Flaw::None,
            alive: std::sync::Weak::new(),
        }
    }
}

impl Frames for Held {
    type Frame = Vec<u8>;

    fn frames(&self) -> &[Vec<u8>] {
        if self.flaw == Flaw::MessagesEndWithTheirEnds && self.alive.strong_count() == 0 {
            return &[];
        }
        &self.frames
    }

    fn clear(&mut self) {
        self.frames.clear();
    }

    fn receipt(&self) -> Option<Receipt> {
        let bytes = self.byte_count();
        let receipt = Receipt::new().with_retained_bytes(bytes);
        Some(match self.flaw {
            Flaw::AllocatesEachTime => receipt.with_allocations(1),
            Flaw::ReceiptOfTooMuch => receipt.with_copied_bytes(bytes + 1),
            _ => receipt.with_copied_bytes(bytes),
        })
    }
}
