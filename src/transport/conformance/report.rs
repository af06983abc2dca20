//! What came out of the checks.

use core::error::Error;
use core::fmt;
use core::panic::Location;
use core::time::Duration;

use alloc::string::String;
use alloc::vec::Vec;

use super::Check;

/// What came out of one check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The transport does not keep what it promises.
    Failed(Failure),
    /// The transport keeps what it promises.
    Passed,
    /// The check does not apply to this transport, for this reason.
    Skipped(String),
}

/// Why a check failed: what was found, and where in the suite.
#[derive(Clone, Debug)]
pub struct Failure {
    what: String,
    at: &'static Location<'static>,
}

impl Failure {
    #[track_caller]
    pub(super) fn new(what: String) -> Self {
        let at = Location::caller();
        Self { what, at }
    }

    /// Returns what was found, with its numbers.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the place in the source of the suite that found it.
    #[must_use]
    pub fn at(&self) -> &'static Location<'static> {
        self.at
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, at } = self;
        write!(f, "{what} ({}:{})", at.file(), at.line())
    }
}

impl Error for Failure {}

/// One check and what came out of it.
#[derive(Clone, Debug)]
pub struct Verdict {
    check: Check,
    outcome: Outcome,
    took: Duration,
}

impl Verdict {
    pub(super) fn new(check: Check, outcome: Outcome, took: Duration) -> Self {
        Self {
            check,
            outcome,
            took,
        }
    }

    /// Returns which check it was.
    #[must_use]
    pub fn check(&self) -> Check {
        self.check
    }

    /// Returns what came out of it.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns how long it took.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    fn cell(&self) -> &'static str {
        match self.outcome {
            Outcome::Failed(_) => "FAIL",
            Outcome::Passed => "ok",
            Outcome::Skipped(_) => "skip",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:4} {}", self.cell(), self.check)?;
        match &self.outcome {
            Outcome::Failed(failure) => write!(f, ": {failure}"),
            Outcome::Passed => write!(f, ", {} ms", self.took.as_millis()),
            Outcome::Skipped(reason) => write!(f, ": {reason}"),
        }
    }
}

/// What came out of all checks of one backend.
///
/// Displayed, it is a line for each check.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    backend: String,
    verdicts: Vec<Verdict>,
}

impl Report {
    pub(super) fn new(backend: String, verdicts: Vec<Verdict>) -> Self {
        Self { backend, verdicts }
    }

    /// Returns the name of the backend.
    #[must_use]
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Returns the checks in the order they ran.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Returns what came out of `check`; `None` if it did not run.
    #[must_use]
    pub fn outcome(&self, check: Check) -> Option<&Outcome> {
        let verdict = self.verdicts.iter().find(|verdict| verdict.check == check);
        verdict.map(Verdict::outcome)
    }

    /// Counts the checks that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Passed))
    }

    /// Counts the checks that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// Counts the checks that were skipped.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    }

    /// Returns the report, if no check failed.
    ///
    /// # Errors
    ///
    /// [`NonConforming`], whose text (also as `unwrap` prints it) is the report, if a
    /// check failed, or if none ran.
    pub fn into_result(self) -> Result<Self, NonConforming> {
        if self.failed() > 0 || self.verdicts.is_empty() {
            return Err(NonConforming { report: self });
        }
        Ok(self)
    }

    fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        let outcomes = self.verdicts.iter().map(Verdict::outcome);
        outcomes.filter(|outcome| wanted(outcome)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = (self.passed(), self.failed(), self.skipped());
        let backend = &self.backend;
        writeln!(
            f,
            "{backend}: {passed} passed, {failed} failed, {skipped} skipped"
        )?;
        for verdict in &self.verdicts {
            writeln!(f, "  {verdict}")?;
        }
        Ok(())
    }
}

/// A transport does not keep what it promises.
#[derive(Clone)]
pub struct NonConforming {
    report: Report,
}

impl NonConforming {
    /// Returns the report.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Display for NonConforming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(f)
    }
}

// What `unwrap` prints: to be read by people.
impl fmt::Debug for NonConforming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.report, f)
    }
}

impl Error for NonConforming {}

/// Several reports side by side: a row for each check, a column for each backend.
///
/// Reasons of what failed and what was skipped stand below.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    reports: &'a [Report],
}

impl<'a> Matrix<'a> {
    /// Puts the reports side by side.
    #[must_use]
    pub const fn new(reports: &'a [Report]) -> Self {
        Self { reports }
    }
}

impl fmt::Display for Matrix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = || (1_usize..).zip(self.reports);
        for (number, report) in numbered() {
            writeln!(f, "{number:3} = {}", report.backend())?;
        }
        write!(f, "{:28}", "check")?;
        for (number, _) in numbered() {
            write!(f, "{number:>6}")?;
        }
        writeln!(f)?;
        let ran = |check| {
            let mut reports = self.reports.iter();
            reports.any(|report| report.outcome(check).is_some())
        };
        for &check in Check::ALL.iter().filter(|&&check| ran(check)) {
            write!(f, "{:28}", check.name())?;
            for (_, report) in numbered() {
                let mut verdicts = report.verdicts().iter();
                let verdict = verdicts.find(|verdict| verdict.check() == check);
                write!(f, "{:>6}", verdict.map_or("", Verdict::cell))?;
            }
            writeln!(f)?;
        }
        for (number, report) in numbered() {
            for verdict in report.verdicts() {
                if !matches!(verdict.outcome(), Outcome::Passed) {
                    writeln!(f, "{number:3}   {verdict}")?;
                }
            }
        }
        Ok(())
    }
}
