//! Every message in every state.

use std::time::Duration;

use tensorwire::message::{NO_TENSORS, Scalar, encode_to_vec};
use tensorwire::transfer::Role;
use tensorwire::transfer::coordinator::{Coordinator, Settings, Topology};

use super::script::{head, is_whole, play, prepare, told, workers};

/// How to get there, and what each message then does: everything that the module's table says.
const STATES: &[(&str, &str, &[&str])] = &[
    (
        "queued",
        "request r7
         request r8
         request r9
         request r1",
        &[
            "encoder staged r1 8 | !the encoder has no part in the request, which is queued",
            "encoder done r1 8 | !the encoder has no part in the request, which is queued",
            "denoiser allocated r1 0 8 | !the denoiser has no part in the request, which is queued",
            "encoder pushed r1 | !the encoder has no part in the request, which is queued",
            "encoder finished r1 | !the encoder has no part in the request, which is queued",
            "decoder reply r1 | !the decoder has no part in the request, which is queued",
            "encoder error r1 | !the encoder has no part in the request, which is queued",
            "encoder failed r1 | !the encoder has no part in the request, which is queued",
            "encoder abort r1 | !the encoder has no part in the request, which is queued",
            "cancel r1 | =failed r1: cancelled",
            "request r1 | !a request of this id is under way",
        ],
    ),
    (
        "working, the first",
        "request r1",
        &[
            "denoiser staged r1 8 | !the denoiser has no part in the request, which is working",
            "encoder allocated r1 0 8 | !unexpected from the encoder while the request is working",
            "denoiser allocated r1 0 8 | !the denoiser has no part in the request, which is working",
            "encoder pushed r1 | !unexpected from the encoder while the request is working",
            "decoder reply r1 | !the decoder has no part in the request, which is working",
            "encoder reply r1 | !a tensor message from the encoder without an error in it",
            "denoiser error r1 | !the denoiser has no part in the request, which is working",
            "encoder finished r1 | =failed r1: encoder error: no output for the next role",
            "encoder error r1 | =failed r1: encoder error: out of memory",
            "encoder failed r1 | =failed r1: encoder error: out of memory",
            "encoder abort r1 | =failed r1: encoder error: gone",
            "encoder staged r1 8 | denoiser0 alloc r1 8 from encoder",
            "encoder done r1 8 | denoiser0 alloc r1 8 from encoder",
            "encoder staged r1 18446744073709551615 | denoiser0 alloc r1 18446744073709551615 from encoder",
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "queued, staged",
        "request r8
         encoder staged r8 8
         request r9
         encoder staged r9 8
         request r1
         encoder staged r1 8",
        &[
            "encoder staged r1 8 | !unexpected from the encoder while the request is queued",
            "encoder pushed r1 | !unexpected from the encoder while the request is queued",
            "encoder finished r1 | !unexpected from the encoder while the request is queued",
            "denoiser allocated r1 0 8 | !the denoiser has no part in the request, which is queued",
            "denoiser failed r1 | !the denoiser has no part in the request, which is queued",
            "encoder error r1 | =failed r1: encoder error: out of memory",
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "allocating",
        "request r1
         encoder staged r1 8",
        &[
            "encoder staged r1 8 | !unexpected from the encoder while the request is allocating",
            "denoiser done r1 8 | !unexpected from the denoiser while the request is allocating",
            "encoder pushed r1 | !unexpected from the encoder while the request is allocating",
            "denoiser pushed r1 | !unexpected from the denoiser while the request is allocating",
            "encoder allocated r1 0 8 | !unexpected from the encoder while the request is allocating",
            "decoder allocated r1 0 8 | !the decoder has no part in the request, which is allocating",
            "denoiser allocated r1 0 7 | !allocated slot of 7 bytes where 8 are needed",
            "denoiser allocated r1 18446744073709550616 8 | !slot of 8 bytes at 0x3e8 + 18446744073709550616 reaches past the last address",
            "denoiser allocated r1 18446744073709550615 8 | !slot of 8 bytes at 0x3e8 + 18446744073709550615 reaches past the last address",
            "denoiser allocated r1 0 18446744073709551615 | !slot of 18446744073709551615 bytes at 0x3e8 + 0 reaches past the last address",
            "denoiser finished r1 | !unexpected from the denoiser while the request is allocating",
            "decoder reply r1 | !the decoder has no part in the request, which is allocating",
            "denoiser allocated r1 999999 8 | encoder0 push r1 8 1000999 to denoiser-session",
            "denoiser failed r1 | encoder0 abort r1 another role failed, =failed r1: denoiser error: out of memory",
            "encoder error r1 | denoiser0 abort r1 another role failed, =failed r1: encoder error: out of memory",
            "cancel r1 | encoder0 abort r1 cancelled, denoiser0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "pushing",
        "request r1
         encoder staged r1 8
         denoiser allocated r1 0 8",
        &[
            "denoiser allocated r1 0 8 | !unexpected from the denoiser while the request is pushing",
            "encoder staged r1 8 | !unexpected from the encoder while the request is pushing",
            "denoiser staged r1 8 | !unexpected from the denoiser while the request is pushing",
            "denoiser pushed r1 | !unexpected from the denoiser while the request is pushing",
            "decoder pushed r1 | !the decoder has no part in the request, which is pushing",
            "denoiser finished r1 | !unexpected from the denoiser while the request is pushing",
            "encoder pushed r1 | denoiser0 ready r1 0 {}",
            "encoder error r1 | denoiser0 abort r1 the request is over, =failed r1: encoder could not push: out of memory",
            "encoder abort r1 | denoiser0 abort r1 the request is over, =failed r1: encoder could not push: gone",
            "denoiser failed r1 | encoder0 abort r1 another role failed, =failed r1: denoiser error: out of memory",
            "encoder lost 0 | denoiser0 abort r1 the request is over, =failed r1: encoder 0 is gone",
            "denoiser lost 0 | encoder0 abort r1 another worker is gone, =failed r1: denoiser 0 is gone",
            "decoder lost 0 |",
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "working, the second",
        "request r1
         encoder staged r1 8
         denoiser allocated r1 0 8
         encoder pushed r1",
        &[
            "encoder pushed r1 | !the encoder has no part in the request, which is working",
            "encoder staged r1 8 | !the encoder has no part in the request, which is working",
            "encoder error r1 | !the encoder has no part in the request, which is working",
            "denoiser allocated r1 0 8 | !unexpected from the denoiser while the request is working",
            "denoiser pushed r1 | !unexpected from the denoiser while the request is working",
            "denoiser finished r1 | =failed r1: denoiser error: no output for the next role",
            "denoiser staged r1 9 | decoder0 alloc r1 9 from denoiser",
            "denoiser done r1 9 | decoder0 alloc r1 9 from denoiser",
            "denoiser failed r1 | =failed r1: denoiser error: out of memory",
            "denoiser error r1 | =failed r1: denoiser error: out of memory",
            "cancel r1 | denoiser0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "working, the last",
        "request r1
         encoder staged r1 8
         denoiser allocated r1 0 8
         encoder pushed r1
         denoiser done r1 8
         decoder allocated r1 0 8
         denoiser pushed r1",
        &[
            "denoiser done r1 8 | !the denoiser has no part in the request, which is working",
            "denoiser pushed r1 | !the denoiser has no part in the request, which is working",
            "decoder staged r1 8 | !nobody takes the output of a decoder",
            "decoder done r1 8 | !nobody takes the output of a decoder",
            "decoder pushed r1 | !unexpected from the decoder while the request is working",
            "decoder reply r1 | =finished r1",
            "decoder finished r1 | =finished r1",
            "decoder error r1 | =failed r1: decoder error: out of memory",
            "decoder failed r1 | =failed r1: decoder error: out of memory",
            "cancel r1 | decoder0 abort r1 cancelled, =failed r1: cancelled",
        ],
    ),
    (
        "unknown",
        "request r9
         encoder staged r9 8
         denoiser allocated r9 0 8
         encoder pushed r9
         denoiser done r9 8
         decoder allocated r9 0 8
         denoiser pushed r9
         decoder reply r9",
        &[
            "encoder staged r9 8 | !unknown request",
            "denoiser done r9 8 | !unknown request",
            "denoiser allocated r9 0 8 | !unknown request",
            "encoder pushed r9 | !unknown request",
            "decoder reply r9 | !unknown request",
            "decoder error r9 | !unknown request",
            "denoiser failed r9 | !unknown request",
            "denoiser finished r9 | !unknown request",
            "denoiser abort r9 | !unknown request",
            "request r9 | encoder0 work r9",
        ],
    ),
];

#[test]
fn every_message_in_every_state_is_handled_or_changes_nothing() {
    for (name, way, lines) in STATES {
        for line in *lines {
            println!("{name}: {line}");
            let topology = Topology::new(
                workers(Role::Encoder, 1, 3),
                workers(Role::Denoiser, 1, 2),
                workers(Role::Decoder, 1, 2),
            );
            let mut head = Coordinator::new(topology, Settings::new()).unwrap();
            // On the way only the inputs are given.
            prepare(&mut head, way);
            play(&mut head, line);
            // The first ends the request, the second what is still held for it.
            head.handle_timeout(Duration::from_secs(10_000));
            head.handle_timeout(Duration::from_secs(20_000));
            is_whole(&head);
        }
    }
}

/// What ends a request that has a preallocated slot, and what then gives the slot back.
///
/// Each line on the left and right of `->`; the slot is out in between.
const QUARANTINE: &[(&str, &[&str], &[&str])] = &[
    (
        "request r1
         encoder staged r1 8",
        &[
            "cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled",
            "denoiser failed r1 | encoder0 abort r1 another role failed, =failed r1: denoiser error: out of memory",
        ],
        &[
            "encoder pushed r1 |",
            "encoder error r1 |",
            "encoder failed r1 |",
            "encoder abort r1 |",
            "encoder lost 0 |",
            "encoder register 0 e2 | =again 0",
            "denoiser register 0 other 0+8 | =again 1",
            "time 600 |",
        ],
    ),
    (
        "request r1
         encoder staged r1 8
         encoder pushed r1",
        &[
            "cancel r1 | denoiser0 abort r1 cancelled, =failed r1: cancelled",
            "time 600 | denoiser0 abort r1 timed out, =failed r1: not completed within 600 s",
        ],
        &[
            "denoiser done r1 8 |",
            "denoiser failed r1 |",
            "denoiser finished r1 |",
            "denoiser error r1 |",
            "denoiser register 0 other 0+8 | =again 1",
            "time 1200 |",
        ],
    ),
];

#[test]
fn a_slot_that_may_still_be_written_to_or_read_is_lent_to_nobody() {
    for (way, ends, frees) in QUARANTINE {
        for end in *ends {
            for free in *frees {
                println!("{end} -> {free}");
                let mut head = head(1, Settings::new());
                prepare(
                    &mut head,
                    &format!("encoder register 0 e\ndenoiser register 0 n 0+8\n{way}"),
                );
                play(&mut head, end);
                let statistics = head.role_statistics(Role::Denoiser).unwrap();
                assert_eq!(
                    (statistics.free_slots, statistics.quarantined_slots),
                    (0, 1)
                );
                assert_eq!((statistics.running, head.statistics().active), (0, 0));
                let writes = !way.contains("pushed");
                let of = |role: &str, has_slot: bool| match has_slot {
                    true => format!("unexpected from the {role} while the request is over"),
                    false => format!("the {role} has no part in the request, which is over"),
                };
                let (encoder, denoiser) = (of("encoder", writes), of("denoiser", !writes));
                let script = format!(
                    "request r1 | !a request of this id is under way
                     encoder staged r1 8 | !{encoder}
                     denoiser pushed r1 | !{denoiser}
                     denoiser allocated r1 0 8 | !{denoiser}
                     decoder reply r1 | !the decoder has no part in the request, which is over"
                );
                play(&mut head, &script);
                play(&mut head, free);
                let statistics = head.role_statistics(Role::Denoiser).unwrap();
                assert_eq!(
                    (statistics.free_slots, statistics.quarantined_slots),
                    (1, 0)
                );
                is_whole(&head);
                if !free.contains("lost") {
                    play(&mut head, "request r1 | encoder0 work r1");
                }
            }
        }
    }
}

#[test]
fn an_allocated_slot_that_may_still_be_written_to_is_not_yet_freed() {
    for (ends, end, told) in [
        ("cancel r1", "encoder pushed r1", true),
        ("cancel r1", "encoder error r1", true),
        ("cancel r1", "encoder lost 0", true),
        ("cancel r1", "time 600", true),
        ("denoiser failed r1", "", false),
    ] {
        let mut head = head(1, Settings::new());
        let way = "request r1\nencoder staged r1 8\ndenoiser allocated r1 0 8\n";
        let outputs = prepare(&mut head, &format!("{way}{ends}"));
        let last = outputs.last().unwrap();
        assert!(last.starts_with("encoder0 abort r1"), "{outputs:?}");
        if told {
            let line = format!(
                "request r1 | !a request of this id is under way\n{end} | denoiser0 abort r1 the request is over"
            );
            play(&mut head, &line);
        }
        is_whole(&head);
    }
}

#[test]
fn a_decoders_result_has_to_have_something_in_it() {
    let empty = encode_to_vec(
        NO_TENSORS,
        &[("request_id", "r1")].map(|(k, v)| (k, Scalar::from(v))),
    );
    let output = br#"{"tensor_descriptors":[{"field_name":"output","shape":[1],"dtype":"uint8","list_index":-1}],"scalar_fields":{"request_id":"r1"}}"#;
    for (frames, event) in [
        (
            vec![empty.unwrap()],
            "=failed r1: decoder error: Decoder returned no output",
        ),
        (vec![output.to_vec(), vec![7]], "=finished r1"),
    ] {
        let mut head = head(1, Settings::new());
        let (_, way, _) = STATES
            .iter()
            .find(|(name, ..)| *name == "working, the last")
            .unwrap();
        prepare(&mut head, way);
        head.handle_frames(Role::Decoder, &frames, Duration::ZERO)
            .unwrap();
        assert_eq!(told(&head.poll_event().unwrap()), event);
        is_whole(&head);
    }
}

/// How a request without a preallocated slot gets to a worker, and what that may answer when the
/// request is over.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "request r1",
        &[
            "encoder staged r1 8 |",
            "encoder error r1 |",
            "encoder abort r1 |",
            "encoder register 0 e2 | =again 0",
            "time 600 |",
        ],
    ),
    (
        "request r1
         encoder staged r1 8",
        &[
            "denoiser allocated r1 0 8 |",
            "denoiser failed r1 |",
            "time 600 |",
        ],
    ),
    (
        "request r1
         encoder staged r1 8
         denoiser allocated r1 0 8
         encoder pushed r1",
        &["denoiser done r1 8 |", "denoiser failed r1 |", "time 600 |"],
    ),
];

#[test]
fn an_id_is_taken_until_the_worker_has_answered_that_has_the_request() {
    for (way, answers) in ANSWERS {
        for answer in *answers {
            println!("{answer}");
            let mut head = head(1, Settings::new());
            prepare(
                &mut head,
                &format!("encoder register 0 e1\n{way}\ncancel r1"),
            );
            assert_eq!(head.statistics().active, 0);
            play(
                &mut head,
                "request r1 | !a request of this id is under way
                 decoder reply r1 | !the decoder has no part in the request, which is over",
            );
            play(&mut head, answer);
            is_whole(&head);
            play(&mut head, "request r1 | encoder0 work r1");
        }
    }
}

#[test]
fn who_restarts_answers_nothing_of_before() {
    for (way, register) in [
        ("request r1", "encoder register 0 e2"),
        ("request r1\nencoder staged r1 8", "denoiser register 0 n2"),
    ] {
        let mut head = head(1, Settings::new());
        let before = "encoder register 0 e1\ndenoiser register 0 n1";
        prepare(&mut head, &format!("{before}\n{way}\n{register}"));
        is_whole(&head);
        play(&mut head, "request r1 | encoder0 work r1");
    }
}
