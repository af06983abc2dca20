//! The receiver: every input in every state.

use tensorwire::transfer::Role;
use tensorwire::transfer::worker::Output;

use super::bed::{Bed, MANIFEST, TOO_LONG, Table, check, common_input, object, outcome};
use super::sender::{THERE, push};

const RECEIVER_STATES: [&str; 12] = [
    "unknown",
    "waiting",
    "allocated",
    "working",
    "given back",
    "working fast",
    "given back fast",
    "closing staged",
    "closing failed",
    "staged",
    "failed",
    "aborted while allocated",
];

fn receiver_in(role: Role, state: &str) -> Bed {
    let mut bed = Bed::new(role);
    match state {
        "unknown" => {}
        "waiting" => {
            bed.fill_pool();
            bed.alloc("r", 8).unwrap();
        }
        "working fast" | "given back fast" | "closing staged" | "closing failed" => {
            let (id, offset) = (bed.slot_id.to_string(), bed.slot_offset);
            bed.ready(MANIFEST, offset, Some(&id)).unwrap();
        }
        _ => {
            bed.slot_offset = bed.allocate();
            if ["working", "given back", "staged", "failed"].contains(&state) {
                bed.ready(MANIFEST, bed.slot_offset, None).unwrap();
            }
        }
    }
    bed.look();
    match state {
        "given back" | "given back fast" => bed.received = None,
        "closing staged" | "staged" => bed.stage().unwrap(),
        "closing failed" | "failed" => bed.fail().unwrap(),
        "aborted while allocated" => bed.abort().unwrap(),
        _ => {}
    }
    if ["staged", "failed"].contains(&state) {
        bed.received = None;
    }
    bed.look();
    bed.log.clear();
    bed
}

fn receiver_input(bed: &mut Bed, input: &str) -> String {
    let before = (bed.step(), bed.blocks());
    if let Some(outcome) = common_input(bed, input, before) {
        return outcome;
    }
    let (offset, id) = (bed.slot_offset, bed.slot_id.to_string());
    let (other, next) = (offset + 1, (bed.slot_id + 1).to_string());
    // Where the preallocated slot is.
    let fast = 0;
    let result = match input {
        "alloc of nothing" => bed.alloc("r", 0),
        "alloc of two blocks" => bed.alloc("r", 1025),
        "alloc of more than there is" => bed.alloc("r", 4097),
        "alloc of all there is" => bed.alloc("r", u64::MAX),
        "ready" => bed.ready(MANIFEST, offset, None),
        "ready with null" => bed.ready(MANIFEST, offset, Some("null")),
        "ready elsewhere" => bed.ready(MANIFEST, other, None),
        "ready with too much" => bed.ready(TOO_LONG, offset, None),
        "ready while written" => {
            bed.writing = bed.table.begin_write(offset.try_into().unwrap(), 8).ok();
            bed.ready(MANIFEST, offset, None)
        }
        "fast" => bed.ready(MANIFEST, fast, Some(&id)),
        "fast elsewhere" => bed.ready(MANIFEST, 2048, Some(&id)),
        "fast into another" => bed.ready(MANIFEST, fast, Some(&next)),
        "fast into the first" => bed.ready(MANIFEST, fast, Some("0")),
        "fast into a text" => bed.ready(MANIFEST, fast, Some("\"0\"")),
        "fast into a float" => bed.ready(MANIFEST, fast, Some("1.0")),
        "fast into a huge one" => bed.ready(MANIFEST, fast, Some("18446744073709551616")),
        "fast with too much" => bed.ready(TOO_LONG, fast, Some(&id)),
        "fast while written" => {
            bed.writing = bed.table.begin_write(0, 8).ok();
            bed.ready(MANIFEST, fast, Some(&id))
        }
        "push" => bed.control(push(THERE, 1024)),
        "stage" => {
            let result = match bed.ballast.pop() {
                // There is no room for an output.
                Some(slot) => bed.stage_output(Output::new(slot, 8, object(MANIFEST)).unwrap()),
                None => bed.stage(),
            };
            return outcome(bed, before, result);
        }
        "given back" => {
            bed.received = None;
            Ok(())
        }
        "room" => {
            bed.ballast.clear();
            Ok(())
        }
        other => panic!("{other}"),
    };
    outcome(bed, before, result)
}

/// The outcomes are as of [`outcome`].
const DENOISER: Table = &[
    (
        "alloc, alloc of nothing",
        &[
            (
                "unknown, failed, aborted while allocated",
                "ok ALLOCATED > allocated 1",
            ),
            ("allocated", "ok ALLOCATED"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "alloc of two blocks",
        &[
            (
                "unknown, failed, aborted while allocated",
                "ok ALLOCATED > allocated 2",
            ),
            ("others", "Duplicate"),
        ],
    ),
    (
        "alloc of more than there is, alloc of all there is",
        &[
            (
                "unknown, failed, aborted while allocated",
                "PoolTooSmall ERROR",
            ),
            ("others", "Duplicate"),
        ],
    ),
    (
        "ready, ready with null",
        &[
            ("unknown, aborted while allocated", "Unexpected ERROR"),
            ("waiting, failed", "Unexpected"),
            ("allocated", "ok ready > working 1"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "ready elsewhere",
        &[
            ("unknown, aborted while allocated", "Unexpected ERROR"),
            ("waiting, failed", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "ready with too much",
        &[
            ("unknown, aborted while allocated", "Unexpected ERROR"),
            ("waiting, failed", "Unexpected"),
            ("allocated", "Manifest ERROR > ended 0"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "ready while written",
        &[
            ("unknown, aborted while allocated", "Unexpected ERROR"),
            ("waiting, failed", "Unexpected"),
            ("allocated", "Busy ERROR > ended 1"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast",
        &[
            (
                "unknown, failed, aborted while allocated",
                "ok ready > working 0",
            ),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast elsewhere",
        &[
            (
                "unknown, failed, aborted while allocated",
                "WrongOffset ERROR",
            ),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast into another, fast into the first",
        &[
            (
                "unknown, failed, aborted while allocated",
                "UnknownSlot ERROR",
            ),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast into a text, fast into a float, fast into a huge one",
        &[
            (
                "unknown, failed, aborted while allocated",
                "BadSlotId ERROR",
            ),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast with too much",
        &[
            ("unknown, failed, aborted while allocated", "Manifest ERROR"),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "fast while written",
        &[
            ("unknown, failed, aborted while allocated", "Busy"),
            ("waiting", "Unexpected"),
            ("allocated", "WrongOffset"),
            ("others", "Duplicate"),
        ],
    ),
    (
        "abort",
        &[
            ("waiting", "ok ERROR > ended 0"),
            ("allocated", "ok > ended 0"),
            ("working", "ok ERROR aborted > ended 1"),
            ("given back, given back fast", "ok ERROR aborted > ended 0"),
            ("working fast, closing staged", "ok aborted > closing 0"),
            ("staged", "ok aborted > ended 0"),
            ("others", "ok"),
        ],
    ),
    (
        "push",
        &[
            ("unknown, aborted while allocated", "Unexpected ERROR"),
            ("staged", "ok > pushing 1"),
            ("others", "Unexpected"),
        ],
    ),
    ("pushed", &[("all", "NotForWorker")]),
    ("register ack", &[("all", "ok")]),
    (
        "stage",
        &[
            ("waiting", "Over ALLOCATED > allocated 1"),
            ("working", "ok DONE > staged 2"),
            ("given back, given back fast", "ok DONE > staged 1"),
            ("working fast", "ok > closing 1"),
            ("closing staged, staged", "Staged"),
            ("others", "Over"),
        ],
    ),
    (
        "fail",
        &[
            ("working", "ok ERROR > ended 1"),
            ("given back, given back fast, staged", "ok ERROR > ended 0"),
            ("working fast, closing staged", "ok > closing 0"),
            ("others", "Over"),
        ],
    ),
    (
        "finish",
        &[
            (
                "unknown, waiting, allocated, aborted while allocated",
                "Over",
            ),
            ("others", "NotOfRole"),
        ],
    ),
    (
        "given back",
        &[
            ("working", "ok > working 0"),
            ("closing staged", "ok DONE > staged 1"),
            ("closing failed", "ok ERROR > ended 0"),
            ("others", "ok"),
        ],
    ),
    (
        "room",
        &[("waiting", "ok ALLOCATED > allocated 1"), ("others", "ok")],
    ),
    (
        "later",
        &[
            ("waiting, allocated", "ok ERROR > ended 0"),
            ("working", "ok ERROR expired > ended 1"),
            (
                "given back, given back fast, staged",
                "ok ERROR expired > ended 0",
            ),
            ("working fast", "ok expired > closing 0"),
            ("others", "ok"),
        ],
    ),
];

#[test]
fn every_input_in_every_state_of_the_receiver() {
    check(
        DENOISER,
        &RECEIVER_STATES,
        |state| receiver_in(Role::Denoiser, state),
        receiver_input,
    );
}

/// What a decoder does otherwise.
const DECODER: Table = &[
    ("push", &[("all", "NotOfRole")]),
    (
        "stage",
        &[
            ("unknown, allocated, aborted while allocated", "Over"),
            ("waiting", "Over ALLOCATED > allocated 1"),
            ("others", "NotOfRole"),
        ],
    ),
    (
        "finish",
        &[
            ("working, working fast", "NotGivenBack"),
            ("given back, given back fast", "ok > ended 0"),
            ("others", "Over"),
        ],
    ),
];

#[test]
fn a_decoder_finishes_where_others_stage() {
    let states: Vec<_> = RECEIVER_STATES
        .into_iter()
        .filter(|state| !state.contains("staged"))
        .collect();
    let decoder = |state: &str| receiver_in(Role::Decoder, state);
    check(DECODER, &states, decoder, receiver_input);
}
