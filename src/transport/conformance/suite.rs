//! Running the checks, each under a watchdog.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use std::panic::catch_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use super::support::{Bench, Stop};
use super::watch::{Steps, WatchedBackend};
use super::{Backend, Check, Failure, HALF_A_MINUTE, Outcome, Report, Verdict};

/// Runs all checks over `backend`, at [`Scale::Quick`].
///
/// # Examples
///
/// See [the module](super).
pub fn run<B: Backend>(backend: B) -> Report {
    Suite::new().run(backend)
}

/// How much the checks move.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Scale {
    /// Payloads of up to 16 MiB: a minute for a few backends, also without
    /// optimization.
    #[default]
    Quick,
    /// Payloads of up to 256 MiB, which takes up to 2 GiB of memory.
    Full,
}

/// The checks, and how they are run.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::conformance::{Check, Scale, Suite};
///
/// let suite = Suite::new()
///     .with_scale(Scale::Full)
///     .with_patience(Duration::from_secs(60))
///     .with_checks(&[Check::PayloadSizes]);
/// # let _ = suite;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Suite {
    checks: Vec<Check>,
    patience: Duration,
    progress: fn(&str, &Verdict),
    scale: Scale,
}

impl Suite {
    /// Makes the suite of all checks, at [`Scale::Quick`].
    pub fn new() -> Self {
        Self {
            checks: Check::ALL.to_vec(),
            patience: HALF_A_MINUTE,
            progress: |_, _| {},
            scale: Scale::Quick,
        }
    }

    /// Sets which checks are run.
    pub fn with_checks(mut self, checks: &[Check]) -> Self {
        self.checks = checks.to_vec();
        self
    }

    /// Sets how long a call may take that is to succeed; 30 seconds unless set.
    ///
    /// It is the timeout and linger of most setups. A check that is not done after
    /// four times as long has failed: `not done after 120 s: sending message 10,
    /// receiving message 3`. These are the calls under way; messages are counted from 0,
    /// for each end.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets what is told of each check as it is done, with the name of the backend;
    /// nothing unless set.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::transport::conformance::Suite;
    ///
    /// let suite = Suite::new().with_progress(|backend, verdict| println!("{backend}: {verdict}"));
    /// # let _ = suite;
    /// ```
    pub fn with_progress(mut self, progress: fn(&str, &Verdict)) -> Self {
        self.progress = progress;
        self
    }

    /// Sets how much the checks move; [`Scale::Quick`] unless set.
    pub fn with_scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// Runs the checks over `backend`, one after the other.
    pub fn run<B: Backend>(&self, backend: B) -> Report {
        let name = backend.name().to_owned();
        let backend = Arc::new(backend);
        let verdicts = self.checks.iter().map(|&check| {
            let start = Instant::now();
            let outcome = self.run_one(&backend, check);
            let verdict = Verdict::new(check, outcome, start.elapsed());
            (self.progress)(&name, &verdict);
            verdict
        });
        let verdicts = verdicts.collect();
        Report::new(name, verdicts)
    }

    fn run_one<B: Backend>(&self, backend: &Arc<B>, check: Check) -> Outcome {
        if let Some(reason) = backend.skip(check) {
            return Outcome::Skipped(reason.to_owned());
        }
        let steps = Arc::<Steps>::default();
        let watched = WatchedBackend::new(backend.clone(), steps.clone());
        let bench = Bench::new(Arc::new(watched), self.scale, self.patience);
        let (done, outcome) = mpsc::channel();
        let checking = thread::Builder::new().name(check.name().to_owned());
        let spawned = checking.spawn(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| check.perform(&bench)));
            let outcome = match caught {
                Ok(Ok(())) => Outcome::Passed,
                Ok(Err(Stop::Failed(failure))) => Outcome::Failed(failure),
                Ok(Err(Stop::Skipped(reason))) => Outcome::Skipped(reason),
                Err(payload) => {
                    let text = text_of(&*payload);
                    Outcome::Failed(Failure::new(format!("panicked: {text}")))
                }
            };
            // Nobody listens any more when the time is over.
            let _ = done.send(outcome);
        });
        if let Err(error) = spawned {
            return Outcome::Failed(Failure::new(format!("no thread to run on: {error}")));
        }
        let longest = self.patience.saturating_mul(4);
        match outcome.recv_timeout(longest) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                let text = format!("not done after {} s: {steps}", longest.as_secs());
                Outcome::Failed(Failure::new(text))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Outcome::Failed(Failure::new("its thread ended without a word".into()))
            }
        }
    }
}

impl Default for Suite {
    fn default() -> Self {
        Self::new()
    }
}

/// What a panic said.
pub(super) fn text_of(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| payload.downcast_ref::<&str>().copied());
    text.or_else(|| {
        let boxed = payload.downcast_ref::<Box<str>>();
        boxed.map(|text| &**text)
    })
    .unwrap_or("no text")
}
