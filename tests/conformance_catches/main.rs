//! The conformance suite can fail: each check is shown a transport that breaks it.

#![cfg(feature = "conformance")]

mod broken;
mod flaws;
mod receiver;
mod sender;

use std::error::Error;
use std::slice;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tensorwire::transport::conformance::{Backend, Check, Matrix, Outcome, Setup, Suite};
use tensorwire::transport::loopback::Loopback;

use broken::Broken;
use flaws::{CAUGHT, Flaw};

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
fn each_check_is_told_as_it_is_done() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    let suite = Suite::new().with_checks(&[Check::Order, Check::NoFrames, Check::Receipts]);
    let suite = suite.with_progress(|backend, verdict| {
        let (check, outcome) = (verdict.check(), verdict.outcome());
        let text = format!("{backend} {check} {}", matches!(outcome, Outcome::Passed));
        TOLD.lock().unwrap().push(text);
    });
    let report = suite.run(Broken::new(Flaw::Reorders));
    assert_eq!((report.passed(), report.failed()), (2, 1), "{report}");
    let told = TOLD.lock().unwrap();
    assert_eq!(
        *told,
        [
            "broken order false",
            "broken no_frames true",
            "broken receipts true"
        ]
    );
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

        fn open(&self, _: &Setup) -> Result<(Loopback, Loopback), Box<dyn Error + Send + Sync>> {
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
    let text = format!("{error:?}{}", Matrix::new(slice::from_ref(report)));
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
