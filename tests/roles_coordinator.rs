//! The head node, message by message: scripts of inputs, each with all that it causes.

#![cfg(feature = "std")]

use std::fmt::Write;
use std::time::Duration;

use tensorwire::json::{Object, Value};
use tensorwire::message::encode_to_vec;
use tensorwire::message::{MessageKind, NO_TENSORS, Scalar, classify};
use tensorwire::transfer::coordinator::{
    Coordinator, Event, Policy, ProtocolError, RequestError, Settings, Topology, Workers,
};
use tensorwire::transfer::message::{
    Abort, Allocated, Done, Location, PreallocatedSlot, Pushed, Register, Staged,
};
use tensorwire::transfer::{Control, RequestId, Role};

/// Where each pool lies, whoever's it is.
const POOL: u64 = 1000;

/// Its length.
const POOL_LEN: u64 = 1000;

/// What happens, line by line: `input | output, output`.
///
/// ```text
/// request r1                          a client's
/// encoder staged r1 8 [scalars]       transfer_staged of 8 bytes
/// denoiser done r1 8                  transfer_done, staged
/// denoiser allocated r1 64 8          a slot of 8 bytes at offset 64
/// encoder pushed r1
/// decoder reply r1                    a tensor message
/// encoder error r1                    a tensor message with an error
/// denoiser failed r1                  transfer_done with an error
/// denoiser finished r1                transfer_done without one
/// denoiser abort r1                   transfer_abort
/// denoiser register 0 s1 0+8 64+16    worker 0, session s1, two slots
/// cancel r1
/// time 600                            in seconds
/// ```
///
/// Outputs are what is sent, events behind an `=`, and errors behind a `!`.
fn play(head: &mut Coordinator, script: &str) {
    let mut now = Duration::ZERO;
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (input, expected) = line.split_once('|').unwrap_or((line, ""));
        let before = format!("{head:?}");
        let words: Vec<_> = input.split_whitespace().collect();
        let result = act(head, &words, &mut now);
        let mut outputs = Vec::new();
        if result.is_err() && sent(head, &mut outputs) == 0 {
            assert_eq!(format!("{head:?}"), before, "{line}");
        }
        sent(head, &mut outputs);
        while let Some(event) = head.poll_event() {
            outputs.push(told(&event));
        }
        if let Err(error) = result {
            outputs.push(format!("!{error}"));
        }
        assert_eq!(outputs.join(", "), expected.trim(), "after {input:?}");
    }
}

fn act(head: &mut Coordinator, words: &[&str], now: &mut Duration) -> Result<(), String> {
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let manifest = Value::parse(br#"{"x":[]}"#).unwrap().as_object().unwrap();
    match words[0] {
        "request" => {
            let id = RequestId::from(words[1]);
            let result = head.handle_request(&id, b"work".to_vec(), *now);
            return result.map_err(|error| error.to_string());
        }
        "cancel" => {
            head.cancel(&RequestId::from(words[1]), *now);
            return Ok(());
        }
        "time" => {
            *now = Duration::from_secs(number(1));
            head.handle_timeout(*now);
            return Ok(());
        }
        _ => {}
    }
    let role = Role::from_name(words[0]).unwrap();
    let id = words[2];
    let session = format!("{role}-session");
    let place = |offset| Location::new(session.as_str(), POOL, offset);
    let scalars = words.get(4).copied().unwrap_or("{}").as_bytes();
    let staged = |size| {
        let scalars = Value::parse(scalars).unwrap().as_object().unwrap();
        Staged::new(id, size, manifest, place(0), scalars)
    };
    let mut frames = Vec::new();
    let control = match words[1] {
        "staged" => Control::Staged(staged(number(3))),
        "done" => Control::Done(Done::staged(staged(number(3)))),
        "allocated" => Control::Allocated(Allocated::new(id, place(number(3)), number(4))),
        "pushed" => Control::Pushed(Pushed::new(id)),
        "failed" => Control::Done(Done::failed(id, "out of memory")),
        "finished" => Control::Done(Done::finished(id)),
        "register" => {
            let slots: Vec<_> = words[4..].iter().enumerate().map(slot).collect();
            let endpoint = format!("{}{}", role.name(), words[2]);
            let endpoint = endpoint.as_str();
            let message = Register::new(role, words[3], POOL, POOL_LEN, endpoint, &slots[..]);
            let result = head.handle_control(role, &Control::Register(message), *now);
            return result.map_err(|error| error.to_string());
        }
        "abort" => {
            frames.push(b"__transfer__".to_vec());
            frames.push(Abort::new(id, "", "gone").to_vec());
            let result = head.handle_frames(role, &frames, *now);
            return result.map_err(|error| error.to_string());
        }
        "reply" | "error" => {
            let error = (words[1] == "error").then_some("out of memory");
            let result = head.handle_reply(role, &RequestId::from(id), error, *now);
            return result.map_err(|error| error.to_string());
        }
        other => panic!("{other}"),
    };
    frames.push(b"__transfer__".to_vec());
    frames.push(control.to_vec());
    let result = head.handle_frames(role, &frames, *now);
    result.map_err(|error| error.to_string())
}

fn slot((index, text): (usize, &&str)) -> PreallocatedSlot {
    let (offset, size) = text.split_once('+').unwrap();
    let (offset, size) = (offset.parse().unwrap(), size.parse().unwrap());
    PreallocatedSlot::new(offset, size, index as u64 + 50, POOL + offset)
}

/// Writes down what is to be sent; returns how much that is.
fn sent(head: &mut Coordinator, outputs: &mut Vec<String>) -> usize {
    let mut buffer = Vec::new();
    let mut count = 0;
    while let Some(outgoing) = head.poll_transmit(&mut buffer) {
        let frames = outgoing.frames();
        let mut text = format!("{}{} ", outgoing.role(), outgoing.worker());
        let MessageKind::Control { payload } = classify(&frames) else {
            assert_eq!(frames[1], b"work");
            let id = std::str::from_utf8(frames[0]).unwrap();
            outputs.push(format!("{text}work {id}"));
            continue;
        };
        match Control::decode(payload).unwrap() {
            Control::Alloc(alloc) => write!(
                text,
                "alloc {} {} from {}",
                alloc.request_id, alloc.data_size, alloc.source_role
            ),
            Control::Push(push) => write!(
                text,
                "push {} {} {} to {}",
                push.request_id, push.transfer_size, push.dest_addr, push.dest_session_id
            ),
            Control::Ready(ready) => {
                assert_eq!(ready.manifest.as_value().raw(), r#"{"x":[]}"#);
                let scalars = ready.scalar_fields.as_value().raw();
                write!(
                    text,
                    "ready {} {} {scalars}",
                    ready.request_id, ready.slot_offset
                )
            }
            Control::Unknown(unknown) => {
                let abort = unknown.abort().unwrap();
                write!(text, "abort {} {}", abort.request_id, abort.reason)
            }
            other => panic!("{other:?}"),
        }
        .unwrap();
        outputs.push(text);
        count += 1;
    }
    count
}

fn told(event: &Event) -> String {
    match event {
        Event::Failed { request, failure } => format!("=failed {request}: {failure}"),
        Event::Finished { request } => format!("=finished {request}"),
        Event::Registered { again, slots, .. } => {
            format!("={} {slots}", if *again { "again" } else { "registered" })
        }
        Event::Retrying {
            request, attempt, ..
        } => format!("=retrying {request} {attempt}"),
        other => format!("{other:?}"),
    }
}

fn workers(role: Role, count: usize, capacity: u32) -> Workers {
    Workers::new((0..count).map(|index| format!("{role}{index}")), capacity)
}

fn head(workers_of_each: usize, settings: Settings) -> Coordinator {
    let of = |role| workers(role, workers_of_each, 2);
    let topology = Topology::new(of(Role::Encoder), of(Role::Denoiser), of(Role::Decoder));
    Coordinator::new(topology, settings).unwrap()
}

/// Every place and every slot is free, and nothing is remembered.
fn is_whole(head: &Coordinator) {
    for &role in Role::ALL {
        let Some(statistics) = head.role_statistics(role) else {
            continue;
        };
        assert_eq!((statistics.queued, statistics.running), (0, 0), "{role}");
        assert_eq!(statistics.lent_slots, 0, "{role}");
        assert_eq!(statistics.quarantined_slots, 0, "{role}");
    }
    assert_eq!(head.statistics().active, 0);
    assert_eq!(head.poll_timeout(), None);
}

#[test]
fn a_request_passes_all_roles_by_slots_that_are_allocated() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        request r1                  | encoder0 work r1
        encoder staged r1 8 {"a":1} | denoiser0 alloc r1 8 from encoder
        denoiser allocated r1 64 16 | encoder0 push r1 8 1064 to denoiser-session
        encoder pushed r1           | denoiser0 ready r1 64 {"a":1}
        denoiser done r1 0          | decoder0 alloc r1 0 from denoiser
        decoder allocated r1 0 1    | denoiser0 push r1 0 1000 to decoder-session
        denoiser pushed r1          | decoder0 ready r1 0 {}
        decoder reply r1            | =finished r1
        "#,
    );
    is_whole(&head);
    assert_eq!(head.role_statistics(Role::Decoder).unwrap().slow_path, 1);
    assert_eq!(head.statistics().finished, 1);
}

#[test]
fn a_request_passes_all_roles_by_preallocated_slots_which_come_back_whole() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        denoiser register 0 n 0+8 64+16 | =registered 2
        decoder register 0 d 64+16      | =registered 1
        "#,
    );
    for _ in 0..3 {
        // What is moved is shorter than the slot, and the slot is as long as ever.
        play(
            &mut head,
            r#"
            request r1                    | encoder0 work r1
            encoder staged r1 9 {"a":1}   | encoder0 push r1 9 1064 to n
            encoder pushed r1             | denoiser0 ready r1 64 {"a":1,"_prealloc_slot_id":51}
            denoiser done r1 3            | denoiser0 push r1 3 1064 to d
            denoiser pushed r1            | decoder0 ready r1 64 {"_prealloc_slot_id":50}
            request r2                    | encoder0 work r2
            encoder staged r2 16 {}       | encoder0 push r2 16 1064 to n
            encoder pushed r2             | denoiser0 ready r2 64 {"_prealloc_slot_id":51}
            denoiser done r2 3            | decoder0 alloc r2 3 from denoiser
            decoder reply r1              | =finished r1
            decoder failed r2             | denoiser0 abort r2 another role failed, =failed r2: decoder error: out of memory
            "#,
        );
        is_whole(&head);
    }
    let statistics = head.role_statistics(Role::Decoder).unwrap();
    assert_eq!((statistics.fast_path, statistics.slow_path), (3, 3));
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 2);
}

#[test]
fn a_split_encoder_does_images_only_where_there_are_some() {
    let of = |role| workers(role, 1, 1);
    let topology = Topology::with_split_encoder(
        of(Role::PromptEncoder),
        of(Role::ImageEncoder),
        of(Role::Denoiser),
        of(Role::Decoder),
    );
    let mut head = Coordinator::new(topology, Settings::new()).unwrap();
    play(
        &mut head,
        r#"
        encoder register 0 s 0+8                               | !no encoder in this pipeline
        image_encoder register 0 i 0+8                         | =registered 1
        request r1                                             | prompt_encoder0 work r1
        prompt_encoder staged r1 8 {"image_path":["a.png"]}    | prompt_encoder0 push r1 8 1000 to i
        prompt_encoder pushed r1                               | image_encoder0 ready r1 0 {"image_path":["a.png"],"_prealloc_slot_id":50}
        request r2                                             | prompt_encoder0 work r2
        prompt_encoder staged r2 8 {"image_path":[]}           | denoiser0 alloc r2 8 from prompt_encoder
        image_encoder staged r1 8 {"b":1}                      |
        prompt_encoder error r2                                | denoiser0 abort r2 another role failed, denoiser0 alloc r1 8 from image_encoder, =failed r2: prompt_encoder error: out of memory
        image_encoder failed r1                                | denoiser0 abort r1 another role failed, =failed r1: image_encoder error: out of memory
        "#,
    );
    is_whole(&head);
}

#[test]
fn queues_are_first_in_first_out_and_both_policies_are_pythons() {
    let round_robin = r#"
        request r1 | encoder0 work r1
        request r2 | encoder1 work r2
        request r3 | encoder0 work r3
        request r4 | encoder1 work r4
        request r5 |
        request r6 |
        encoder error r2 | encoder1 work r5, =failed r2: encoder error: out of memory
        encoder error r1 | encoder0 work r6, =failed r1: encoder error: out of memory
    "#;
    // The turn moves with every choice, also with the two in vain.
    let most_free = r#"
        request r1 | encoder0 work r1
        request r2 | encoder1 work r2
        request r3 | encoder0 work r3
        request r4 | encoder1 work r4
        encoder error r1 | =failed r1: encoder error: out of memory
        encoder error r2 | =failed r2: encoder error: out of memory
        request r5 | encoder0 work r5
        request r6 | encoder1 work r6
        request r7 |
        encoder error r6 | encoder1 work r7, =failed r6: encoder error: out of memory
        encoder error r3 | =failed r3: encoder error: out of memory
        encoder error r4 | =failed r4: encoder error: out of memory
        request r8 | encoder0 work r8
    "#;
    for (policy, script) in [
        (Policy::RoundRobin, round_robin),
        (Policy::MostFree, most_free),
    ] {
        let mut head = head(2, Settings::new().with_policy(policy));
        play(&mut head, script);
    }
}

#[test]
fn a_cancelled_or_late_request_leaves_the_queue() {
    let mut head = head(1, Settings::new().with_max_requests(4));
    play(
        &mut head,
        r#"
        request r1 | encoder0 work r1
        time 10    |
        request r2 | encoder0 work r2
        request r3 |
        request r4 |
        request r5 | !4 requests are under way already
        request r4 | !a request of this id is under way
        cancel r3  | =failed r3: cancelled
        cancel r3  |
        time 600   | encoder0 abort r1 timed out, encoder0 work r4, =failed r1: not completed within 600 s
        time 610   | encoder0 abort r2 timed out, encoder0 abort r4 timed out, =failed r2: not completed within 600 s, =failed r4: not completed within 600 s
        encoder staged r1 8 | !unknown request
        "#,
    );
    is_whole(&head);
    let statistics = head.statistics();
    assert_eq!((statistics.cancelled, statistics.timed_out), (1, 3));
}

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
            "encoder error r1 | denoiser0 abort r1 the request is over, =failed r1: encoder error: out of memory",
            "denoiser failed r1 | encoder0 abort r1 another role failed, =failed r1: denoiser error: out of memory",
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
            for line in way.lines() {
                let words: Vec<_> = line.split_whitespace().collect();
                act(&mut head, &words, &mut Duration::ZERO).unwrap();
            }
            sent(&mut head, &mut Vec::new());
            while head.poll_event().is_some() {}
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
                let mut now = Duration::ZERO;
                for line in ["denoiser register 0 n 0+8"].into_iter().chain(way.lines()) {
                    let words: Vec<_> = line.split_whitespace().collect();
                    act(&mut head, &words, &mut now).unwrap();
                }
                sent(&mut head, &mut Vec::new());
                while head.poll_event().is_some() {}
                play(&mut head, end);
                let statistics = head.role_statistics(Role::Denoiser).unwrap();
                assert_eq!(
                    (statistics.free_slots, statistics.quarantined_slots),
                    (0, 1)
                );
                assert_eq!((statistics.running, head.statistics().active), (0, 0));
                play(
                    &mut head,
                    "request r1 | !a request of this id is under way
                     encoder staged r1 8 | !unexpected from the encoder while the request is over
                     denoiser pushed r1 | !unexpected from the denoiser while the request is over
                     denoiser allocated r1 0 8 | !unexpected from the denoiser while the request is over
                     decoder reply r1 | !the decoder has no part in the request, which is over"
                        .lines()
                        .map(|line| match (way.contains("pushed"), line.split_once('|')) {
                            (true, Some((input, _))) if input.contains("encoder s") => {
                                format!("{input}| !the encoder has no part in the request, which is over")
                            }
                            (false, Some((input, _))) if input.contains("denoiser ") => {
                                format!("{input}| !the denoiser has no part in the request, which is over")
                            }
                            _ => line.to_string(),
                        })
                        .collect::<Vec<_>>()
                        .join("\n")
                        .as_str(),
                );
                play(&mut head, free);
                let statistics = head.role_statistics(Role::Denoiser).unwrap();
                assert_eq!(
                    (statistics.free_slots, statistics.quarantined_slots),
                    (1, 0)
                );
                is_whole(&head);
                play(&mut head, "request r1 | encoder0 work r1");
            }
        }
    }
}

#[test]
fn an_allocated_slot_that_may_still_be_written_to_is_not_yet_freed() {
    for (ends, end, told) in [
        ("cancel r1", "encoder pushed r1", true),
        ("cancel r1", "encoder error r1", true),
        ("cancel r1", "time 600", true),
        ("denoiser failed r1", "", false),
    ] {
        let mut head = head(1, Settings::new());
        let way = "request r1\nencoder staged r1 8\ndenoiser allocated r1 0 8\n";
        for line in way.lines().chain([ends]) {
            let words: Vec<_> = line.split_whitespace().collect();
            act(&mut head, &words, &mut Duration::ZERO).unwrap();
        }
        let mut outputs = Vec::new();
        sent(&mut head, &mut outputs);
        let last = outputs.last().unwrap();
        assert!(last.starts_with("encoder0 abort r1"), "{outputs:?}");
        while head.poll_event().is_some() {}
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
fn a_worker_that_registers_anew_loses_its_requests_and_its_old_slots() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        request r1                       | encoder0 work r1
        encoder staged r1 8              | denoiser0 alloc r1 8 from encoder
        denoiser register 0 n1 0+8 8+8   | =registered 2
        denoiser allocated r1 16 8       | encoder0 push r1 8 1016 to denoiser-session
        request r2                       | encoder0 work r2
        encoder staged r2 8              | encoder0 push r2 8 1000 to n1
        encoder pushed r2                | denoiser0 ready r2 0 {"_prealloc_slot_id":50}
        request r3                       | encoder0 work r3
        denoiser register 0 n1 0+8 8+8   |
        denoiser register 0 n2 0+8       | denoiser0 abort r2 another worker restarted, encoder0 abort r1 another worker restarted, =again 1, =failed r2: denoiser 0 restarted, =failed r1: denoiser 0 restarted
        "#,
    );
    // What the old slots were lent for says nothing about the new.
    play(
        &mut head,
        r#"
        encoder pushed r1                | denoiser0 abort r1 the request is over
        denoiser done r2 8               | !unknown request
        encoder staged r3 8              | encoder0 push r3 8 1000 to n2
        encoder pushed r3                | denoiser0 ready r3 0 {"_prealloc_slot_id":50}
        denoiser done r3 8               | decoder0 alloc r3 8 from denoiser
        decoder register 0 d 0+8         | =registered 1
        encoder register 0 e             | =registered 0
        encoder register 0 e2            | =again 0
        decoder register 0 d2 0+8        | denoiser0 abort r3 another worker restarted, decoder0 abort r3 another worker restarted, =again 1, =failed r3: decoder 0 restarted
        "#,
    );
    is_whole(&head);
    assert_eq!(head.statistics().worker_restarted, 3);
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 1);
}

#[test]
fn retries_start_from_the_work_under_an_id_of_their_own() {
    let settings = Settings::new()
        .with_retries(2)
        .with_timeout(Duration::from_secs(100))
        .with_attempt_timeout(Duration::from_secs(40));
    let mut head = head(1, settings);
    play(
        &mut head,
        r#"
        denoiser register 0 n1 0+8 | =registered 1
        request r1                 | encoder0 work r1
        request r2                 | encoder0 work r2
        request r3                 |
        encoder staged r1 8        | encoder0 push r1 8 1000 to n1
        request r1~1               |
        encoder register 0 e1      | =registered 0
        encoder register 0 e2      | encoder0 abort r2 another worker restarted, encoder0 abort r1 another worker restarted, encoder0 work r1~2, encoder0 work r2~1, =again 0, =retrying r2 1, =retrying r1 2
        request r1                 | !a request of this id is under way
        encoder error r1           |
        encoder pushed r2          | !unknown request
        encoder staged r2~1 8      | encoder0 push r2~1 8 1000 to n1
        encoder pushed r2~1        | denoiser0 ready r2~1 0 {"_prealloc_slot_id":50}, encoder0 work r3
        time 40                    | encoder0 abort r3 timed out, denoiser0 abort r2~1 timed out, encoder0 work r2~2, =retrying r3 1, =retrying r2 2
        encoder error r1~2         | encoder0 work r3~1, =failed r1: encoder error: out of memory
        time 100                   | encoder0 abort r3~1 timed out, encoder0 abort r2~2 timed out, =failed r3: not completed within 100 s, =failed r1~1: not completed within 100 s, =failed r2: not completed within 100 s
        "#,
    );
    assert_eq!(head.statistics().retried, 4);
    head.handle_timeout(Duration::from_secs(10_000));
    is_whole(&head);
}

#[test]
fn a_registration_is_taken_whole_or_not_at_all() {
    let mut head = head(1, Settings::new().with_max_slots(3));
    play(
        &mut head,
        r#"
        denoiser register 0 n 0+8 | =registered 1
        denoiser register 1 n 0+8 | !no denoiser takes work at this endpoint
        denoiser register 0 n 0+8 4+8 | !the slots at 0 and 4 overlap
        denoiser register 0 n 0+8 8+993 | !slot of 993 bytes at 8 reaches past its pool of 1000 bytes
        denoiser register 0 n 0+1 1+1 2+1 3+1 | !4 slots where 3 are kept
        "#,
    );
    let slot = PreallocatedSlot::new(0, 8, 0, POOL);
    let register = |role: &'static str, addr, session: &str| {
        let slots = [PreallocatedSlot::new(0, 8, 0, addr)];
        let mut message = Register::new(
            Role::Denoiser,
            session,
            POOL,
            POOL_LEN,
            "denoiser0",
            &slots[..],
        );
        message.role = role.into();
        Control::Register(message).to_vec()
    };
    let long = "s".repeat(RequestId::MAX_LEN + 1);
    for (payload, error) in [
        (
            register("decoder", POOL, "n"),
            ProtocolError::RoleMismatch {
                expected: Role::Denoiser,
                found: Role::Decoder,
            },
        ),
        (register("painter", POOL, "n"), ProtocolError::RoleUnknown),
        (
            register("denoiser", POOL + 1, "n"),
            ProtocolError::SlotAddress {
                addr: POOL + 1,
                expected: POOL,
            },
        ),
        (
            register("denoiser", POOL, &long),
            ProtocolError::TextTooLong {
                len: RequestId::MAX_LEN + 1,
                limit: RequestId::MAX_LEN,
            },
        ),
    ] {
        let control = Control::decode(&payload).unwrap();
        let before = format!("{head:?}");
        let result = head.handle_control(Role::Denoiser, &control, Duration::ZERO);
        assert_eq!(result, Err(error));
        assert_eq!(format!("{head:?}"), before);
    }
    // What was there before still is.
    assert_eq!(head.role_statistics(Role::Denoiser).unwrap().free_slots, 1);
    play(
        &mut head,
        "request r1 | encoder0 work r1
         encoder staged r1 8 | encoder0 push r1 8 1000 to n",
    );
    assert_eq!(slot.size, 8);
}

#[test]
fn a_late_output_of_a_forgotten_request_is_dropped_by_its_worker() {
    let mut head = head(2, Settings::new());
    play(
        &mut head,
        "encoder register 1 encoder-session | =registered 0
         denoiser register 0 denoiser-session | =registered 0
         request r1 | encoder0 work r1
         cancel r1 | encoder0 abort r1 cancelled, =failed r1: cancelled
         encoder staged r1 8 | encoder1 abort r1 unknown request, !unknown request
         denoiser allocated r1 0 8 | denoiser0 abort r1 unknown request, !unknown request
         encoder pushed r1 | !unknown request
         denoiser allocated r1 993 8 | denoiser0 abort r1 unknown request, !unknown request
         request r2 | encoder1 work r2
         encoder staged r2 8 | denoiser0 alloc r2 8 from encoder
         denoiser allocated r2 993 8 | !slot of 8 bytes at 993 reaches past its pool of 1000 bytes
         denoiser allocated r2 992 8 | encoder1 push r2 8 1992 to denoiser-session",
    );
}

#[test]
fn a_slot_id_in_the_scalars_of_a_sender_reaches_no_receiver() {
    let mut head = head(1, Settings::new());
    play(
        &mut head,
        r#"
        denoiser register 0 n 0+8 | =registered 1
        request r1 | encoder0 work r1
        encoder staged r1 9 {"_prealloc_slot_id":50,"a":1} | denoiser0 alloc r1 9 from encoder
        denoiser allocated r1 64 16 | encoder0 push r1 9 1064 to denoiser-session
        encoder pushed r1 | denoiser0 ready r1 64 {"a":1}
        "#,
    );
}

#[test]
fn messages_for_workers_and_no_messages_are_refused() {
    let mut head = head(1, Settings::new());
    let id = RequestId::from("r1");
    head.handle_request(&id, b"work".to_vec(), Duration::ZERO)
        .unwrap();
    sent(&mut head, &mut Vec::new());
    let before = format!("{head:?}");
    let control = |json: &str| vec![b"__transfer__".to_vec(), json.as_bytes().to_vec()];
    let tensors =
        |scalars: &[(&str, Scalar<'_>)]| vec![encode_to_vec(NO_TENSORS, &scalars).unwrap()];
    for (frames, error) in [
        (
            control(r#"{"msg_type":"transfer_alloc","request_id":"r1","data_size":1}"#),
            "a message from the head node, not to it",
        ),
        (
            control(r#"{"msg_type":"transfer_register_ack"}"#),
            "a message from the head node, not to it",
        ),
        (
            control(r#"{"msg_type":"transfer_hello","request_id":"r1"}"#),
            "unknown message type",
        ),
        (
            vec![b"r1".to_vec(), b"\x80\x04".to_vec()],
            "neither a control message nor a tensor message",
        ),
        (Vec::new(), "neither a control message nor a tensor message"),
        (tensors(&[]), "a tensor message without a request_id"),
        (
            tensors(&[("request_id", Scalar::from(1))]),
            "a tensor message without a request_id",
        ),
        (
            tensors(&[("request_id", "r1".into())]),
            "a tensor message from the encoder without an error in it",
        ),
        (
            tensors(&[("request_id", "r1".into()), ("error", "".into())]),
            "a tensor message from the encoder without an error in it",
        ),
        (
            tensors(&[("request_id", "r2".into()), ("_disagg_error", "x".into())]),
            "unknown request",
        ),
    ] {
        let result = head.handle_frames(Role::Encoder, &frames, Duration::ZERO);
        assert_eq!(result.unwrap_err().to_string(), error);
        assert_eq!(format!("{head:?}"), before);
    }
    let json = control(r#"{"msg_type":"transfer_done","request_id":"r1""#);
    assert!(
        head.handle_frames(Role::Encoder, &json, Duration::ZERO)
            .is_err()
    );
    let result = head.handle_reply(Role::PromptEncoder, &id, None, Duration::ZERO);
    let role = Role::PromptEncoder;
    assert_eq!(result, Err(ProtocolError::RoleNotHere { role }));
    assert_eq!(format!("{head:?}"), before);
    let error = tensors(&[
        ("request_id", "r1".into()),
        ("_disagg_error", "no prompt".into()),
    ]);
    head.handle_frames(Role::Encoder, &error, Duration::ZERO)
        .unwrap();
    assert_eq!(
        told(&head.poll_event().unwrap()),
        "=failed r1: encoder error: no prompt"
    );
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
        for line in way.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            act(&mut head, &words, &mut Duration::ZERO).unwrap();
        }
        head.handle_frames(Role::Decoder, &frames, Duration::ZERO)
            .unwrap();
        assert_eq!(told(&head.poll_event().unwrap()), event);
        is_whole(&head);
    }
}

#[test]
fn ids_that_no_frame_can_carry_are_refused() {
    let mut head = head(1, Settings::new());
    let lone = Value::parse(br#""\ud800""#).unwrap().as_str().unwrap();
    let long = "r".repeat(RequestId::MAX_LEN + 1);
    for (id, error) in [
        (RequestId::from(""), RequestError::NoText),
        (RequestId::from(lone), RequestError::NoText),
        (
            RequestId::from(long.as_str()),
            RequestError::IdTooLong {
                len: RequestId::MAX_LEN + 1,
                limit: RequestId::MAX_LEN,
            },
        ),
    ] {
        let result = head.handle_request(&id, Vec::new(), Duration::ZERO);
        assert_eq!(result, Err(error));
        is_whole(&head);
    }
    // Other texts are carried as they are, and written into JSON as Python does.
    let id = RequestId::from("größe 1");
    head.handle_request(&id, Vec::new(), Duration::ZERO)
        .unwrap();
    let mut buffer = Vec::new();
    let work = head.poll_transmit(&mut buffer).unwrap();
    assert_eq!(work.frames()[0], "größe 1".as_bytes());
    let staged = Staged::new("größe 1", 8, Object::EMPTY, Location::new("s", 0, 0), None);
    head.handle_control(Role::Encoder, &Control::Staged(staged), Duration::ZERO)
        .unwrap();
    let alloc = head.poll_transmit(&mut buffer).unwrap();
    let expected = r#"{"msg_type":"transfer_alloc","request_id":"gr\u00f6\u00dfe 1","data_size":8,"source_role":"encoder"}"#;
    assert_eq!(alloc.frames(), [b"__transfer__", expected.as_bytes()]);
}
