//! The sender: every input in every state.

use tensorwire::transfer::Role;
use tensorwire::transfer::message::Push;
use tensorwire::transfer::worker::Output;

use super::bed::{ADDRESS, Bed, MANIFEST, Table, check, common_input, outcome, text};

/// The states that a sender's request can be in.
const SENDER_STATES: [&str; 9] = [
    "unknown",
    "working",
    "staged",
    "staged empty",
    "queued",
    "pushing",
    "moved",
    "failed",
    "aborted while staged",
];

pub(crate) const THERE: (&str, u64) = ("there", 0x1000);

pub(crate) fn push(to: (&'static str, u64), len: u64) -> Push<'static> {
    Push::new("r", to.0, to.1, len)
}

fn sender_in(state: &str) -> Bed {
    let mut bed = Bed::new(Role::Encoder);
    let at = SENDER_STATES
        .iter()
        .position(|name| *name == state)
        .unwrap();
    if at >= 1 {
        bed.work("r").unwrap();
    }
    if state == "staged empty" {
        bed.stage_output(Output::empty()).unwrap();
    } else if at >= 2 {
        bed.stage().unwrap();
    }
    if ["queued", "pushing", "moved"].contains(&state) {
        bed.control(push(THERE, 1024)).unwrap();
    }
    if ["pushing", "moved"].contains(&state) {
        bed.order = bed.instance.poll_push();
    }
    match state {
        "moved" => bed.pushed(Ok(8)),
        "failed" => bed.fail().unwrap(),
        "aborted while staged" => bed.abort().unwrap(),
        _ => {}
    }
    bed.look();
    bed.log.clear();
    bed
}

fn sender_input(bed: &mut Bed, input: &str) -> String {
    let before = (bed.step(), bed.blocks());
    if let Some(outcome) = common_input(bed, input, before) {
        return outcome;
    }
    let here = ("here", ADDRESS);
    let result = match input {
        "work" => bed.work("r"),
        "push" => bed.control(push(THERE, 1024)),
        "push elsewhere" => bed.control(push(("there", 0x2000), 1024)),
        "push of all there is" => bed.control(push(THERE, u64::MAX)),
        "push of just enough" => bed.control(push(THERE, 8)),
        "push of too few bytes" => bed.control(push(THERE, 7)),
        "push to itself" => bed.control(push(here, 1024)),
        "push to no text" => {
            let session = text(r#""\ud800""#);
            bed.control(Push::new("r", session, 0x1000, 1024))
        }
        "ready" => bed.ready(MANIFEST, 0, None),
        "stage" => {
            let result = bed.stage();
            return outcome(bed, before, result);
        }
        "all moved" => {
            bed.pushed(Ok(8));
            Ok(())
        }
        "too few moved" => {
            bed.pushed(Ok(7));
            Ok(())
        }
        "nothing moved" => {
            bed.pushed(Err("peer is gone"));
            Ok(())
        }
        other => panic!("{other}"),
    };
    outcome(bed, before, result)
}

/// The outcomes are as of [`outcome`].
const SENDER: Table = &[
    (
        "work",
        &[
            (
                "unknown, moved, failed, aborted while staged",
                "ok > working 0",
            ),
            ("others", "Duplicate"),
        ],
    ),
    (
        "push, push of all there is, push of just enough",
        &[
            ("unknown, aborted while staged", "Unexpected ERROR"),
            ("working, failed", "Unexpected"),
            ("staged", "ok > pushing 1"),
            ("staged empty", "ok PUSHED moved > ended 0"),
            ("queued, pushing, moved", "Duplicate"),
        ],
    ),
    (
        "push elsewhere, push to itself",
        &[
            ("unknown, moved, aborted while staged", "Unexpected ERROR"),
            ("staged", "ok > pushing 1"),
            ("staged empty", "ok PUSHED moved > ended 0"),
            ("others", "Unexpected"),
        ],
    ),
    (
        "push of too few bytes",
        &[
            ("unknown, aborted while staged", "Unexpected ERROR"),
            ("working, failed", "Unexpected"),
            ("staged", "Truncated ERROR push-failed > ended 0"),
            ("staged empty", "ok PUSHED moved > ended 0"),
            ("queued, pushing, moved", "Duplicate"),
        ],
    ),
    (
        "push to no text",
        &[
            ("unknown, moved, aborted while staged", "Unexpected ERROR"),
            ("staged, staged empty", "NoText ERROR push-failed > ended 0"),
            ("others", "Unexpected"),
        ],
    ),
    (
        "abort",
        &[
            ("working, queued", "ok ERROR aborted > ended 0"),
            ("staged, staged empty", "ok aborted > ended 0"),
            ("others", "ok"),
        ],
    ),
    ("alloc, ready", &[("all", "NotOfRole")]),
    ("pushed", &[("all", "NotForWorker")]),
    ("register ack", &[("all", "ok")]),
    (
        "stage",
        &[
            ("working", "ok STAGED > staged 1"),
            ("staged, staged empty, queued, pushing", "Staged"),
            ("others", "Over"),
        ],
    ),
    (
        "fail",
        &[
            (
                "working, staged, staged empty, queued",
                "ok ERROR > ended 0",
            ),
            ("pushing", "Pushing"),
            ("others", "Over"),
        ],
    ),
    ("finish", &[("unknown", "Over"), ("others", "NotOfRole")]),
    (
        "all moved",
        &[("pushing", "ok PUSHED moved > ended 0"), ("others", "ok")],
    ),
    (
        "too few moved, nothing moved",
        &[
            ("pushing", "ok ERROR push-failed > ended 0"),
            ("others", "ok"),
        ],
    ),
    (
        "later",
        &[
            (
                "working, staged, staged empty",
                "ok ERROR expired > ended 0",
            ),
            ("others", "ok"),
        ],
    ),
];

#[test]
fn every_input_in_every_state_of_the_sender() {
    check(SENDER, &SENDER_STATES, sender_in, sender_input);
}
