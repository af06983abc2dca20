//! What a test wants to go wrong, and when.

use std::collections::BTreeMap;

use crate::state::Code;

#[derive(Debug, Default)]
pub(crate) struct Script {
    /// By the call's name; `*` for all of them together.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) failed: u64,
    /// Of a million calls, how many fail by chance, and with what.
    pub(crate) chance: Option<(u64, Code)>,
    /// Calls of this name wait, from the one on that comes after so many.
    pub(crate) held: Vec<(String, u64)>,
    pub(crate) held_now: u64,
    /// After how many more copies have run one fails, and with what.
    pub(crate) broken_copy: Option<(u64, Code)>,
    pub(crate) copies_run: u64,
    pub(crate) random: Random,
    /// New streams run nothing until they are told to.
    pub(crate) stall_new: bool,
}

#[derive(Debug)]
pub(crate) struct Failure {
    /// `*` for any.
    pub(crate) name: String,
    /// How many calls go well before.
    pub(crate) after: u64,
    pub(crate) code: Code,
}

impl Script {
    /// Counts a call, and says what it is to fail with.
    pub(crate) fn call(&mut self, name: &'static str) -> Option<Code> {
        *self.calls.entry("*").or_default() += 1;
        *self.calls.entry(name).or_default() += 1;
        let mut code = None;
        self.failures.retain_mut(|failure| {
            if failure.name != "*" && failure.name != name {
                return true;
            }
            if failure.after == 0 && code.is_none() {
                code = Some(failure.code);
                return false;
            }
            failure.after = failure.after.saturating_sub(1);
            true
        });
        if let (None, Some((rate, with))) = (code, self.chance) {
            code = (self.random.below(1_000_000) < rate).then_some(with);
        }
        self.failed += u64::from(code.is_some());
        code
    }

    /// Whether this call is to wait now.
    pub(crate) fn holds(&mut self, name: &str) -> bool {
        self.held.iter_mut().any(|(held, after)| {
            let waits = held == name && *after == 0;
            if held == name {
                *after = after.saturating_sub(1);
            }
            waits
        })
    }

    /// Whether it still is.
    pub(crate) fn still_holds(&self, name: &str) -> bool {
        self.held.iter().any(|(held, _)| held == name)
    }

    /// Counts a copy that runs, and says what it fails with.
    pub(crate) fn copy(&mut self) -> Option<Code> {
        self.copies_run += 1;
        let (after, code) = self.broken_copy?;
        self.broken_copy = after.checked_sub(1).map(|after| (after, code));
        (after == 0).then_some(code)
    }
}

/// Numbers that look like chance, the same ones for the same seed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
