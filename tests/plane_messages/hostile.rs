//! Messages that are no pushes, or pushes of somebody who means no good.

use tensorwire::DType;
use tensorwire::message::{Decoder, Scalar, encode_to_vec};
use tensorwire::plane::messages::{InletError, Malformed, Refusal};
use tensorwire::tensor::Descriptor;
use tensorwire::transport::loopback;
use tensorwire::transport::{Frames, RecvFrames, SendFrames};

use super::{BLOCK, World, counting};

/// What a message is to do: its kind is what the inlet's owner is told, its text the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    /// No id can be read, so nothing is answered.
    Unanswered,
    /// An id can be read, and no more: `malformed`.
    Malformed,
    Refused(Refusal),
}

use Told::{Malformed as Broken, Refused, Unanswered};

/// A message of one piece of eight bytes for `ADDR`, with some text in place of another.
const PUSH: &str = concat!(
    r#"{"tensor_descriptors":[{"field_name":"pieces","shape":[8],"dtype":"uint8","list_index":0}],"#,
    r#""scalar_fields":{"_plane":"push","session":"receiver","origin":1,"push":ID,"addresses":[ADDR]}}"#,
);

/// (text of `PUSH`, what stands there instead, what becomes of it)
#[rustfmt::skip]
const MUTATIONS: &[(&str, &str, Told)] = &[
    // What it is.
    (r#""push","#, r#""answer","#, Unanswered),
    (r#""_plane":"push","#, "", Unanswered),
    (r#""_plane":"push","#, r#""_plane":"push","_plane":"push","#, Unanswered),
    (r#""_plane":"push","#, r#""_plane":7,"#, Unanswered),
    // Whose it is.
    (r#""push":ID"#, r#""push":ID,"push":ID"#, Unanswered),
    (r#""push":ID"#, r#""push":-1"#, Unanswered),
    (r#""push":ID"#, r#""push":1e3"#, Unanswered),
    (r#""push":ID"#, r#""push":18446744073709551616"#, Unanswered),
    (r#""origin":1,"#, "", Unanswered),
    (r#""origin":1,"#, r#""origin":NaN,"#, Unanswered),
    // For whom it is.
    (r#""session":"receiver","#, "", Broken),
    (r#""session":"receiver","#, r#""session":null,"#, Broken),
    (r#""receiver""#, r#""Receiver""#, Refused(Refusal::UnknownSession)),
    (r#""receiver""#, r#""""#, Refused(Refusal::UnknownSession)),
    (r#""receiver""#, r#""receiver\ud800""#, Refused(Refusal::UnknownSession)),
    // Where it goes.
    (r#","addresses":[ADDR]"#, "", Broken),
    ("[ADDR]", "ADDR", Broken),
    ("[ADDR]", "[null]", Broken),
    ("[ADDR]", "[-1]", Broken),
    ("[ADDR]", "[7.0]", Broken),
    ("[ADDR]", "[[[[[[[[]]]]]]]]", Broken),
    ("[ADDR]", "[18446744073709551616]", Broken),
    ("[ADDR]", "[]", Refused(Refusal::Count { tensors: 1, addresses: 0 })),
    ("[ADDR]", "[ADDR,ADDR]", Refused(Refusal::Count { tensors: 1, addresses: 2 })),
    ("[ADDR]", "[ADDR,{},null]", Refused(Refusal::Count { tensors: 1, addresses: 3 })),
    ("[ADDR]", "[0]", Refused(Refusal::OutOfBounds { address: 0, len: 8 })),
    ("[ADDR]", "[18446744073709551615]", Refused(Refusal::OutOfBounds { address: u64::MAX, len: 8 })),
    ("[ADDR]", "[CLOSED]", Refused(Refusal::Closed)),
    ("[ADDR]", "[BEFORE]", Refused(Refusal::Closed)),
    ("[ADDR]", "[LAST]", Refused(Refusal::PastWindow { len: 8, room: 7 })),
    // What it is of.
    (r#""pieces""#, r#""piece""#, Refused(Refusal::Piece { piece: 0 })),
    ("uint8", "int8", Refused(Refusal::Piece { piece: 0 })),
    ("[8]", "[2,4]", Refused(Refusal::Piece { piece: 0 })),
    (r#""list_index":0"#, r#""list_index":1"#, Refused(Refusal::Piece { piece: 0 })),
    (r#""list_index":0"#, r#""list_index":-1"#, Refused(Refusal::Piece { piece: 0 })),
    (r#""list_index":0"#, r#""list_index":4097"#, Unanswered),
    ("[8]", "[7]", Broken),
    ("[8]", "[9]", Broken),
    ("[8]", "[1099511627776]", Broken),
    ("[8]", "[18446744073709551615]", Unanswered),
    ("[8]", "[9223372036854775807,2]", Unanswered),
    ("uint8", "uint9", Unanswered),
    // What it is made of.
    ("{", "", Unanswered),
    (r#","addresses""#, r#","x":"y"addresses""#, Unanswered),
];

/// What was told of a message that is no good.
fn told<E: std::fmt::Debug>(error: InletError<E>, answer: Option<Refusal>) -> Told {
    match (error, answer) {
        (InletError::Malformed(_), None) => Unanswered,
        (InletError::Malformed(_), Some(Refusal::Malformed)) => Broken,
        (InletError::Refused(refusal), Some(answer)) if answer == refusal => Refused(refusal),
        other => panic!("{other:?}"),
    }
}

/// An inlet with one open window, and a link to it of somebody's own.
fn world() -> (
    World,
    tensorwire::transfer::pool::Landing,
    loopback::Loopback,
) {
    let world = World::new();
    let landing = world.received.pool().allocate(BLOCK).unwrap();
    let before = world.received.pool().allocate(BLOCK).unwrap();
    // The window is the second block, the slot before it belongs to its owner.
    let (landing, before) = match before.offset() > landing.offset() {
        true => (before, landing),
        false => (landing, before),
    };
    let landing = landing.open();
    drop(before);
    let (near, far) = loopback::pair();
    world.adder.add(far);
    (world, landing, near)
}

/// Reads an answer's reason out of the message, as a peer of another make would.
fn refusal(answer: &loopback::Message) -> Option<String> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(answer.frames()).unwrap();
    let scalars = message.scalars();
    assert!(scalars.field("_plane").unwrap().as_str().unwrap() == "answer");
    let reason = scalars.get("refused")?.as_str().unwrap().to_string();
    Some(format!("{reason}{}", scalars.get("numbers").unwrap().raw()))
}

/// What the answer to a refused push reads.
fn expected(refusal: Refusal) -> String {
    let numbers: &[u64] = match &refusal {
        Refusal::Count { tensors, addresses } => &[*tensors, *addresses],
        Refusal::OutOfBounds { address, len } => &[*address, *len],
        Refusal::PastWindow { len, room } => &[*len, *room],
        Refusal::Piece { piece } => &[*piece],
        Refusal::TooMany { limit, actual } => &[*limit, *actual],
        _ => &[],
    };
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    format!("{}[{}]", refusal.name(), numbers.join(","))
}

#[test]
fn each_mutation_of_a_push_is_told_and_the_next_push_works() {
    let (mut world, landing, mut link) = world();
    let offset = landing.offset();
    let address = world.address(offset);
    let fill = |text: &str, id: usize| {
        text.replace("ADDR", &address.to_string())
            .replace("CLOSED", &world.address(offset + BLOCK).to_string())
            .replace("BEFORE", &(address - 1).to_string())
            .replace("LAST", &(address + BLOCK as u64 - 7).to_string())
            .replace("ID", &id.to_string())
    };
    let messages: Vec<_> = (1..)
        .zip(MUTATIONS)
        .map(|(n, &(from, to, told))| {
            let mutated = PUSH.replacen(from, to, 1);
            assert_ne!(mutated, PUSH, "{from}");
            (fill(&mutated, 2 * n), fill(PUSH, 2 * n + 1), told, to)
        })
        .collect();
    for (mutated, good, expected_told, name) in messages {
        link.send(&[mutated.as_bytes(), &[0xbb; 8]]).unwrap();
        let error = world.inlet.poll().unwrap().unwrap_err();
        let answer = link.try_recv_into(&mut loopback::Message::default());
        let answer = match expected_told {
            Unanswered => {
                assert_eq!(answer, Err(loopback::Error::WouldBlock), "{name}");
                None
            }
            Broken => Some(Refusal::Malformed),
            Refused(refusal) => Some(refusal),
        };
        assert_eq!(told(error, answer), expected_told, "{name}: {error}");

        link.send(&[good.as_bytes(), &[0xaa; 8]]).unwrap();
        let written = world.inlet.poll().unwrap().unwrap();
        assert_eq!((written.bytes(), written.is_answered()), (8, true));
        assert_eq!(refusal(&link.recv().unwrap()), None, "{name}");
    }
    // Of the bad ones, nothing was written; of the good ones, all.
    let slot = landing.close().unwrap();
    let bytes = world.received.bytes(&slot).unwrap();
    assert_eq!(bytes[..8], [0xaa; 8]);
    assert!(bytes[8..].iter().all(|&byte| byte == 0));
}

#[test]
fn answers_say_why_in_names_and_numbers() {
    let (mut world, landing, mut link) = world();
    let address = world.address(landing.offset());
    let refusals = MUTATIONS.iter().filter_map(|&(from, to, told)| match told {
        Refused(refusal) => Some((from, to, expected(refusal))),
        Broken => Some((from, to, expected(Refusal::Malformed))),
        Unanswered => None,
    });
    for (n, (from, to, expected)) in (1..).zip(refusals) {
        let text = PUSH
            .replacen(from, to, 1)
            .replace("ADDR", &address.to_string())
            .replace("CLOSED", &(address + BLOCK as u64).to_string())
            .replace("BEFORE", &(address - 1).to_string())
            .replace("LAST", &(address + BLOCK as u64 - 7).to_string())
            .replace("ID", &n.to_string());
        link.send(&[text.as_bytes(), &[0; 8]]).unwrap();
        assert!(world.inlet.poll().unwrap().is_err());
        let answer = refusal(&link.recv().unwrap());
        assert_eq!(answer.as_deref(), Some(&*expected), "{to}");
    }
}

#[test]
fn what_is_no_message_at_all_is_told_and_not_answered() {
    let (mut world, _landing, mut link) = world();
    for (name, frames) in [
        ("no bytes", &[&b""[..]][..]),
        ("garbage", &[b"\xff\x00\xfe"]),
        ("control", &[b"__transfer__", br#"{"msg_type":"transfer_push"}"#]),
        ("work", &[b"request-1", b"\x80\x04"]),
        ("scalars alone", &[br#"{"tensor_descriptors":[],"scalar_fields":{}}"#]),
        ("no scalars", &[br#"{"tensor_descriptors":[]}"#]),
        ("a pusher's answer", &[br#"{"tensor_descriptors":[],"scalar_fields":{"_plane":"answer","origin":1,"push":1,"written":0}}"#]),
    ] {
        link.send(frames).unwrap();
        let error = world.inlet.poll().unwrap().unwrap_err();
        assert!(matches!(error, InletError::Malformed(_)), "{name}: {error}");
        let answer = link.try_recv_into(&mut loopback::Message::default());
        assert_eq!(answer, Err(loopback::Error::WouldBlock), "{name}");
    }
    assert!(world.inlet.poll().is_none());
}

#[test]
fn numbers_of_a_peer_allocate_nothing() {
    let (mut world, landing, mut link) = world();
    let address = world.address(landing.offset()).to_string();
    let many = format!("[{}0]", "0,".repeat(50_000));
    for (n, (from, to)) in (1..).zip([
        ("[8]", "[4611686018427387904]"),
        ("[8]", "[0,4611686018427387904]"),
        (r#""list_index":0"#, r#""list_index":4096"#),
        ("[ADDR]", &many),
    ]) {
        let text = PUSH.replacen(from, to, 1);
        let text = text.replace("ADDR", &address).replace("ID", &n.to_string());
        link.send(&[text.as_bytes(), &[0; 8]]).unwrap();
        let (bytes, taken) = counting::allocated_bytes(|| world.inlet.poll());
        assert!(taken.unwrap().is_err());
        assert!(
            bytes < 8192,
            "{bytes} bytes for {}",
            &to[..to.len().min(40)]
        );
    }
}

#[test]
fn more_pieces_than_are_allowed_are_refused_with_the_numbers() {
    let (world, landing, mut link) = world();
    let mut inlet = world.inlet.with_max_pieces(2);
    let address = world.received.address_of(landing.offset()).unwrap();
    for pieces in 1..=4_u32 {
        let tensors = (0..pieces).map(|index| {
            let piece = Descriptor::new("pieces", DType::UInt8, &[1]).unwrap();
            piece.with_list_index(index)
        });
        let tensors: Vec<_> = tensors.collect();
        let addresses = vec![Scalar::from(address); pieces as usize];
        let scalars = [
            ("_plane", Scalar::from("push")),
            ("session", "receiver".into()),
            ("origin", 1.into()),
            ("push", pieces.into()),
            ("addresses", Scalar::List(&addresses)),
        ];
        let metadata = encode_to_vec(&tensors, &scalars).unwrap();
        let mut frames = vec![&metadata[..]];
        frames.extend(std::iter::repeat_n(&[0_u8][..], pieces as usize));
        link.send(&frames).unwrap();
        let taken = inlet.poll().unwrap();
        let (limit, actual) = (2, u64::from(pieces));
        let refused = InletError::Refused(Refusal::TooMany { limit, actual });
        let expected = if actual > 2 { Err(refused) } else { Ok(actual) };
        assert_eq!(taken.map(|written| written.bytes()), expected);
    }
}

#[test]
fn answers_that_are_none_are_ignored_and_numbers_that_disagree_are_told() {
    use tensorwire::plane::DataPlane as _;
    use tensorwire::plane::messages::{Error, Plane};

    let (near, mut far) = loopback::pair();
    let mut near = Some(near);
    let connect = move |_: &str| near.take().ok_or(loopback::Error::Closed);
    let mut sender = Plane::new("sender", connect);
    let region = sender.register(super::REGION).unwrap();
    let push = || {
        let slot = region.pool().allocate(1).unwrap();
        let mut transfer = tensorwire::plane::Transfer::new(slot, "s");
        transfer.add_piece(0..8, 0).unwrap();
        transfer
    };
    sender.push(push()).unwrap();
    let message = far.recv().unwrap();
    let mut decoder = Decoder::new();
    let pushed = decoder.decode(message.frames()).unwrap();
    let origin = pushed.scalars().field("origin").unwrap().as_u64().unwrap();
    let other = origin.wrapping_add(1);
    let answer = |rest: &str| {
        format!(r#"{{"tensor_descriptors":[],"scalar_fields":{{"_plane":"answer",{rest}}}}}"#)
    };
    let ignored = [
        String::new(),
        "[]".into(),
        answer(&format!(r#""origin":{other},"push":1,"written":8"#)),
        answer(&format!(r#""origin":{origin},"push":2,"written":8"#)),
        answer(&format!(r#""origin":{origin},"push":1"#)),
        answer(&format!(r#""origin":{origin},"push":1,"written":-8"#)),
        answer(&format!(
            r#""origin":{origin},"push":1,"written":8,"written":8"#
        )),
        answer(&format!(
            r#""origin":{origin},"push":1,"written":8,"refused":"busy","numbers":[]"#
        )),
        answer(&format!(r#""origin":{origin},"push":1,"refused":"busy""#)),
        answer(&format!(
            r#""origin":{origin},"push":1,"refused":7,"numbers":[]"#
        )),
        answer(&format!(
            r#""origin":{origin},"push":1,"refused":"busy","numbers":["x"]"#
        )),
        format!(
            r#"{{"tensor_descriptors":[{{"field_name":"x","shape":[],"dtype":"int8"}}],"scalar_fields":{{"_plane":"answer","origin":{origin},"push":1,"written":8}}}}"#
        ),
        answer(&format!(
            r#""origin":{origin},"push":1,"written":8,"long":"{}""#,
            "x".repeat(4096)
        )),
    ];
    for (n, text) in (1..).zip(&ignored) {
        far.send(&[text.as_bytes()]).unwrap();
        assert!(sender.poll_completion().is_none(), "{text}");
        assert_eq!(sender.ignored(), n, "{text}");
    }

    for (push_id, rest, expected) in [
        (
            1,
            r#""written":7"#,
            Error::Amount {
                pushed: 8,
                written: 7,
            },
        ),
        (
            2,
            r#""refused":"of a newer peer","numbers":[1,2,3,4,5,6,7,8,9]"#,
            Error::Refused(Refusal::Other),
        ),
        (
            3,
            r#""refused":"busy","numbers":[]"#,
            Error::Refused(Refusal::Busy),
        ),
        (
            4,
            r#""refused":"past_window","numbers":[8,1]"#,
            Error::Refused(Refusal::PastWindow { len: 8, room: 1 }),
        ),
    ] {
        if push_id > 1 {
            sender.push(push()).unwrap();
        }
        let text = answer(&format!(r#""origin":{origin},"push":{push_id},{rest}"#));
        far.send(&[text.as_bytes()]).unwrap();
        let ended = sender.poll_completion().unwrap();
        assert_eq!(ended.result(), Err(&expected));
    }
}

#[test]
fn errors_say_what_in_lower_case() {
    let (mut world, _landing, mut link) = world();
    link.send(&[br#"{"tensor_descriptors":[],"scalar_fields":{"_plane":"push","origin":1}}"#])
        .unwrap();
    let error = world.inlet.poll().unwrap().unwrap_err();
    let InletError::Malformed(malformed) = error else {
        panic!("{error:?}");
    };
    assert_eq!(malformed, Malformed::Missing { key: "push" });
    assert_eq!(error.to_string(), "no push: no scalar \"push\"");
}
