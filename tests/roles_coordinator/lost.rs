//! What ends by no fault of the request's own, and workers that are gone.

use std::time::Duration;

use tensorwire::transfer::Role;
use tensorwire::transfer::coordinator::{FailureKind, Policy, Settings};

use super::script::{head, is_whole, play, prepare};

const ROLE: Role = Role::Denoiser;

/// (kind, whether it is retried)
const KINDS: &[(FailureKind, bool)] = &[
    (FailureKind::Cancelled, false),
    (FailureKind::NothingStaged { role: ROLE }, false),
    (FailureKind::PushFailed { role: ROLE }, true),
    (FailureKind::RoleFailed { role: ROLE }, false),
    (
        FailureKind::TimedOut {
            after: Duration::ZERO,
        },
        true,
    ),
    (
        FailureKind::WorkerLost {
            role: ROLE,
            worker: 0,
        },
        true,
    ),
    (
        FailureKind::WorkerRestarted {
            role: ROLE,
            worker: 0,
        },
        true,
    ),
];

#[test]
fn kinds_of_failures_are_retried_or_not() {
    for (kind, is_retried) in KINDS {
        assert_eq!(kind.is_retried(), *is_retried, "{kind}");
    }
}

#[test]
fn a_failed_push_is_retried_and_failed_work_is_not() {
    let mut head = head(1, Settings::new().with_retries(1));
    play(
        &mut head,
        r#"
        denoiser register 0 denoiser-session 0+8  | =registered 1
        request r1                 | encoder0 work r1
        encoder staged r1 8        | encoder0 push r1 8 1000 to denoiser-session
        encoder error r1           | encoder0 work r1~1, =retrying r1 1
        encoder pushed r1          | !unknown request
        encoder staged r1~1 8      | encoder0 push r1~1 8 1000 to denoiser-session
        encoder failed r1~1        | =failed r1: encoder could not push: out of memory
        request r2                 | encoder0 work r2
        encoder error r2           | =failed r2: encoder error: out of memory
        request r3                 | encoder0 work r3
        encoder staged r3 8        | encoder0 push r3 8 1000 to denoiser-session
        encoder pushed r3          | denoiser0 ready r3 0 {"_prealloc_slot_id":50}
        denoiser done r3 8         | decoder0 alloc r3 8 from denoiser
        denoiser failed r3         | decoder0 abort r3 another role failed, =failed r3: denoiser error: out of memory
        decoder failed r3          |
        request r4                 | encoder0 work r4
        encoder staged r4 9        | denoiser0 alloc r4 9 from encoder
        denoiser allocated r4 64 9 | encoder0 push r4 9 1064 to denoiser-session
        encoder abort r4           | denoiser0 abort r4 the request is over, encoder0 work r4~1, =retrying r4 1
        encoder staged r4~1 9      | denoiser0 alloc r4~1 9 from encoder
        denoiser failed r4~1       | encoder0 abort r4~1 another role failed, =failed r4: denoiser error: out of memory
        "#,
    );
    is_whole(&head);
    let statistics = head.statistics();
    assert_eq!((statistics.push_failed, statistics.role_failed), (1, 3));
    assert_eq!(statistics.retried, 2);
}

#[test]
fn a_writer_that_is_gone_holds_no_slot() {
    for end in [
        "encoder register 0 e2 | encoder0 abort r1 another worker restarted, encoder0 work r1~1, =again 0, =retrying r1 1",
        "encoder lost 0 | =retrying r1 1",
    ] {
        let mut head = head(1, Settings::new().with_retries(1));
        prepare(
            &mut head,
            "encoder register 0 e1
             denoiser register 0 n 0+8
             request r1
             encoder staged r1 8",
        );
        play(&mut head, end);
        let statistics = head.role_statistics(Role::Denoiser).unwrap();
        assert_eq!(
            (statistics.free_slots, statistics.quarantined_slots),
            (1, 0)
        );
    }
}

#[test]
fn what_a_worker_pushed_that_is_gone_may_be_late() {
    let settings = Settings::new().with_late_writes(Duration::from_secs(5));
    for (end, over) in [
        // Of a request under way.
        ("encoder lost 0 | =failed r1: encoder 0 is gone", "time 5 |"),
        (
            "encoder register 0 e2 | encoder0 abort r1 another worker restarted, =again 0, =failed r1: encoder 0 restarted",
            "time 5 |",
        ),
        // Of one that was over before, and then for no longer than it would have been.
        (
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled
             time 1 |
             encoder lost 0 |",
            "time 6 |",
        ),
        (
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled
             time 599 |
             encoder register 0 e2 | =again 0",
            "time 600 |",
        ),
        // That it has pushed may be known all the same.
        (
            "encoder lost 0 | =failed r1: encoder 0 is gone",
            "encoder pushed r1 |",
        ),
        (
            "encoder lost 0 | =failed r1: encoder 0 is gone",
            "denoiser lost 0 |",
        ),
    ] {
        println!("{end} -> {over}");
        let mut head = head(1, settings);
        prepare(
            &mut head,
            "encoder register 0 e1
             denoiser register 0 n 0+8
             request r1
             encoder staged r1 8",
        );
        play(&mut head, end);
        let statistics = head.role_statistics(Role::Denoiser).unwrap();
        assert_eq!(statistics.quarantined_slots, 1);
        play(&mut head, over);
        is_whole(&head);
    }
}

#[test]
fn a_lost_worker_gets_nothing_until_it_registers_again() {
    for policy in [Policy::RoundRobin, Policy::MostFree] {
        let mut head = head(2, Settings::new().with_policy(policy).with_retries(2));
        play(
            &mut head,
            r#"
            denoiser register 0 n0 0+8 | =registered 1
            denoiser register 1 n1 0+8 | =registered 1
            request r1                 | encoder0 work r1
            encoder staged r1 8        | encoder0 push r1 8 1000 to n0
            encoder pushed r1          | denoiser0 ready r1 0 {"_prealloc_slot_id":50}
            denoiser lost 0            | encoder1 work r1~1, =retrying r1 1
            "#,
        );
        let statistics = head.role_statistics(Role::Denoiser).unwrap();
        assert_eq!((statistics.lost, statistics.registered), (1, 1));
        assert_eq!((statistics.free_places, statistics.free_slots), (2, 1));
        play(
            &mut head,
            r#"
            denoiser lost 0            | !no news
            denoiser lost 2            | !no news
            image_encoder lost 0       | !no news
            denoiser staged r1 8       | !unknown request
            encoder staged r1~1 8      | encoder1 push r1~1 8 1000 to n1
            encoder pushed r1~1        | denoiser1 ready r1~1 0 {"_prealloc_slot_id":50}
            request r2                 | encoder0 work r2
            encoder staged r2 8        | denoiser1 alloc r2 8 from encoder
            request r3                 | encoder1 work r3
            encoder staged r3 8        |
            denoiser lost 1            | encoder0 abort r2 another worker is gone, encoder0 work r1~2, encoder1 work r2~1, =retrying r2 1, =retrying r1 2
            encoder staged r1~2 8      |
            "#,
        );
        let statistics = head.role_statistics(Role::Denoiser).unwrap();
        assert_eq!((statistics.lost, statistics.registered), (2, 0));
        assert_eq!((statistics.free_places, statistics.running), (0, 0));
        assert_eq!(statistics.queued, 2);
        // The same registration as before is as good as any.
        play(
            &mut head,
            r#"
            denoiser register 0 n0 0+8 | encoder1 push r3 8 1000 to n0, denoiser0 alloc r1~2 8 from encoder, =again 1
            cancel r1                  | encoder0 abort r1~2 cancelled, denoiser0 abort r1~2 cancelled, =failed r1: cancelled
            time 600                   | encoder1 abort r3 timed out, encoder1 abort r2~1 timed out, =failed r3: not completed within 600 s, =failed r2: not completed within 600 s
            time 1200                  |
            "#,
        );
        is_whole(&head);
    }
}

#[test]
fn what_is_to_be_sent_to_a_lost_worker_is_dropped() {
    let mut head = head(1, Settings::new());
    let request = tensorwire::transfer::RequestId::from("r1");
    head.handle_request(&request, b"work".to_vec(), Duration::ZERO)
        .unwrap();
    play(
        &mut head,
        "encoder lost 0 | =failed r1: encoder 0 is gone
         request r2 |
         time 600 | =failed r2: not completed within 600 s",
    );
    is_whole(&head);
    assert_eq!(head.statistics().worker_lost, 1);
}

#[test]
fn requests_of_a_worker_that_never_comes_back_and_nobody_misses_run_into_their_timeout() {
    let settings = Settings::new()
        .with_retries(1)
        .with_timeout(Duration::from_secs(100))
        .with_attempt_timeout(Duration::from_secs(40));
    let mut head = head(2, settings);
    // Encoder 0 is dead.
    play(
        &mut head,
        "request r1 | encoder0 work r1
         time 40 | encoder0 abort r1 timed out, encoder1 work r1~1, =retrying r1 1
         request r2 | encoder0 work r2
         time 100 | encoder0 abort r2 timed out, encoder1 abort r1~1 timed out, encoder1 work r2~1, =retrying r2 1, =failed r1: not completed within 100 s
         cancel r2 | encoder1 abort r2~1 cancelled, =failed r2: cancelled",
    );
    head.handle_timeout(Duration::from_secs(10_000));
    is_whole(&head);
}
