//! What is made to happen to messages.

use core::fmt;
use core::time::Duration;

use alloc::vec::Vec;

/// What can be made to happen to a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The peer goes, for good: sending it fails with [`Error::Closed`](super::Error::Closed), and
    /// both ends are closed. What was sent before can still be received.
    Close,
    /// It arrives this much later, and what is sent after it not before it.
    Delay(Duration),
    /// The connection ends half way through it: sending it fails with
    /// [`Error::Disconnected`](super::Error::Disconnected), its buffers are released, and it never
    /// arrives. The next one has a fresh start.
    Disconnect,
    /// It is sent and never arrives.
    Drop,
    /// It arrives twice. The second one has copies of the bytes, and a place in the queue
    /// even if that is full.
    Duplicate,
    /// Sending it fails with [`Error::Injected`](super::Error::Injected), and it never arrives.
    Fail,
    /// Receiving it fails with [`Error::Injected`](super::Error::Injected), once. It is
    /// still there for the next receive.
    FailReceive,
    /// The last bytes of it are lost, this many, as by a peer that is broken: whatever
    /// frames they are in. Frames that are left with no bytes stay.
    TruncateBytes(usize),
    /// The last frames of it are lost, this many. If none is left it does not arrive.
    TruncateFrames(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Close => f.write_str("close"),
            Self::Delay(delay) => write!(f, "delay {delay:?}"),
            Self::Disconnect => f.write_str("disconnect"),
            Self::Drop => f.write_str("drop"),
            Self::Duplicate => f.write_str("duplicate"),
            Self::Fail => f.write_str("fail"),
            Self::FailReceive => f.write_str("fail receive"),
            Self::TruncateBytes(bytes) => write!(f, "truncate {bytes} bytes"),
            Self::TruncateFrames(frames) => write!(f, "truncate {frames} frames"),
        }
    }
}

/// What happens to which of the messages that an end sends.
///
/// Either a list, or made up of a seed. Both are the same for the same input, in every
/// run and on every machine, and both can be printed: a test that fails under a seeded
/// script prints [`Script::planned`], and a list of that fails it again.
///
/// # Examples
///
/// ```
/// use tensorwire::transport::loopback::{Fault, Script};
///
/// let listed = Script::from([(0, Fault::Drop), (2, Fault::TruncateBytes(1))]);
/// assert_eq!(listed.to_string(), "0: drop, 2: truncate 1 bytes");
///
/// // Of 1000 messages about 50 are lost and about 20 come twice.
/// let seeded = Script::seeded(7, &[(Fault::Drop, 50), (Fault::Duplicate, 20)]);
/// assert_eq!(seeded.to_string(), "seed 7: drop 50/1000, duplicate 20/1000");
/// let lost = (0..1000).filter(|&message| seeded.fault(message) == Some(Fault::Drop));
/// assert!((20..100).contains(&lost.count()));
///
/// // The same from here on, as a list.
/// let planned = seeded.planned(1000);
/// assert!((0..1000).all(|message| planned.fault(message) == seeded.fault(message)));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Script {
    plan: Plan,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Plan {
    Listed(Vec<(u64, Fault)>),
    Seeded {
        seed: u64,
        /// In thousandths of all messages.
        rates: Vec<(Fault, u16)>,
    },
}

impl Default for Plan {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Script {
    /// Makes a script in which nothing happens.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            plan: Plan::Listed(Vec::new()),
        }
    }

    /// Makes a script out of `seed`: each fault happens to so many of a thousand
    /// messages, on average, and at most one to each message.
    ///
    /// Rates that are more than a thousand together leave nothing for the last ones.
    #[must_use]
    pub fn seeded(seed: u64, rates: &[(Fault, u16)]) -> Self {
        let rates = rates.to_vec();
        Self {
            plan: Plan::Seeded { seed, rates },
        }
    }

    /// Returns what happens to `message`, counted from 0.
    #[must_use]
    pub fn fault(&self, message: u64) -> Option<Fault> {
        match &self.plan {
            Plan::Listed(entries) => {
                let entry = entries.iter().find(|(number, _)| *number == message);
                entry.map(|&(_, fault)| fault)
            }
            Plan::Seeded { seed, rates } => {
                let mut drawn = mix(*seed, message).checked_rem(1000)?;
                for &(fault, rate) in rates {
                    match drawn.checked_sub(u64::from(rate)) {
                        Some(rest) => drawn = rest,
                        None => return Some(fault),
                    }
                }
                None
            }
        }
    }

    /// Returns what happens to the first `messages`, as a list.
    #[must_use]
    pub fn planned(&self, messages: u64) -> Self {
        let planned = (0..messages).filter_map(|message| Some((message, self.fault(message)?)));
        Self {
            plan: Plan::Listed(planned.collect()),
        }
    }
}

impl From<&[(u64, Fault)]> for Script {
    fn from(entries: &[(u64, Fault)]) -> Self {
        Self {
            plan: Plan::Listed(entries.to_vec()),
        }
    }
}

impl<const N: usize> From<&[(u64, Fault); N]> for Script {
    fn from(entries: &[(u64, Fault); N]) -> Self {
        Self::from(entries.as_slice())
    }
}

impl<const N: usize> From<[(u64, Fault); N]> for Script {
    fn from(entries: [(u64, Fault); N]) -> Self {
        Self::from(entries.as_slice())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        match &self.plan {
            Plan::Listed(entries) if entries.is_empty() => f.write_str("nothing")?,
            Plan::Listed(entries) => {
                for (message, fault) in entries {
                    write!(f, "{comma}{message}: {fault}")?;
                    comma = ", ";
                }
            }
            Plan::Seeded { seed, rates } => {
                write!(f, "seed {seed}:")?;
                for (fault, rate) in rates {
                    write!(f, "{comma} {fault} {rate}/1000")?;
                    comma = ",";
                }
            }
        }
        Ok(())
    }
}

/// A number that tells nothing of the two it is made of: the output function of
/// SplitMix64, over the sequence that starts at `seed`.
fn mix(seed: u64, message: u64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = seed.wrapping_add(message.wrapping_add(1).wrapping_mul(STEP));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix() {
        // The first three of its reference, for seed 1234567.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        for (message, expected) in (0..).zip(expected) {
            assert_eq!(mix(1_234_567, message), expected);
        }
    }

    #[test]
    fn a_seed_gives_one_script_and_another_seed_another() {
        let rates = [(Fault::Drop, 100), (Fault::Fail, 100)];
        let script = Script::seeded(1, &rates);
        assert_eq!(script, Script::seeded(1, &rates));
        let plan = script.planned(200);
        assert_eq!(plan, Script::seeded(1, &rates).planned(200));
        assert_ne!(plan, Script::seeded(2, &rates).planned(200));
        assert_eq!(Script::seeded(3, &[]).planned(1000), Script::new());
        assert_eq!(Script::new().to_string(), "nothing");
    }

    #[test]
    fn rates_are_kept_about() {
        let rates = [
            (Fault::Drop, 500),
            (Fault::Fail, 250),
            (Fault::Duplicate, 900),
        ];
        let script = Script::seeded(99, &rates);
        let count =
            |wanted: Option<Fault>| (0..10_000).filter(|&n| script.fault(n) == wanted).count();
        assert!(count(Some(Fault::Drop)).abs_diff(5000) < 200);
        assert!(count(Some(Fault::Fail)).abs_diff(2500) < 200);
        assert!(count(Some(Fault::Duplicate)).abs_diff(2500) < 200);
        assert_eq!(count(None), 0);
    }
}
