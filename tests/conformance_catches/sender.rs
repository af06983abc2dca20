//! The sending end, with what is wrong with it.

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use tensorwire::transport::loopback::Error;
use tensorwire::transport::{Part, SendFrames, Wait};

use crate::broken::{Link, longest};
use crate::flaws::Flaw;

pub(crate) struct Sender {
    pub(crate) link: Link,
    pub(crate) flaw: Flaw,
    pub(crate) timeout: Duration,
    pub(crate) sent: usize,
    pub(crate) held: VecDeque<Vec<Vec<u8>>>,
    pub(crate) poisoned: bool,
}

impl Sender {
    fn longest(&self, wait: Wait) -> Duration {
        longest(wait, self.timeout)
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
                thread::sleep(Duration::from_millis(300));
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
