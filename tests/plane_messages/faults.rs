//! Lost, late, doubled and broken messages.

use std::time::Duration;

use tensorwire::plane::messages::{Error, InletError, Refusal};
use tensorwire::plane::{DataPlane, ErrorKind, PlaneError, Transfer};
use tensorwire::transport::ErrorKind as LinkError;
use tensorwire::transport::loopback::{Fault, Options, Script};

use super::{BLOCK, SESSION, Scripts, World, later};

/// (name, what happens to the push, to its answer, how the push ends, whether its bytes
/// are written, how many messages answer nothing)
#[expect(clippy::type_complexity, reason = "a table")]
#[rustfmt::skip]
const FAULTS: &[(&str, Option<Fault>, Option<Fault>, Result<(), Error>, bool, u64)] = &[
    ("none", None, None, Ok(()), true, 0),
    ("push lost", Some(Fault::Drop), None, Err(Error::TimedOut), false, 0),
    ("answer lost", None, Some(Fault::Drop), Err(Error::TimedOut), true, 0),
    ("push doubled", Some(Fault::Duplicate), None, Ok(()), true, 1),
    ("answer doubled", None, Some(Fault::Duplicate), Ok(()), true, 1),
    ("push cut", Some(Fault::TruncateBytes(1)), None, Err(Error::Refused(Refusal::Malformed)), false, 0),
    ("frame of push lost", Some(Fault::TruncateFrames(1)), None, Err(Error::Refused(Refusal::Malformed)), false, 0),
    ("all of push lost", Some(Fault::TruncateBytes(9999)), None, Err(Error::TimedOut), false, 0),
    ("answer cut", None, Some(Fault::TruncateBytes(1)), Err(Error::TimedOut), true, 1),
    ("push fails", Some(Fault::Fail), None, Err(Error::Link(LinkError::Other)), false, 0),
    ("connection lost in push", Some(Fault::Disconnect), None, Err(Error::Link(LinkError::Disconnected)), false, 0),
    ("peer gone at push", Some(Fault::Close), None, Err(Error::Link(LinkError::Closed)), false, 0),
    ("receiving push fails", Some(Fault::FailReceive), None, Err(Error::Link(LinkError::Closed)), false, 0),
    ("answer fails", None, Some(Fault::Fail), Err(Error::TimedOut), true, 0),
    ("peer gone at answer", None, Some(Fault::Close), Err(Error::Link(LinkError::Closed)), true, 0),
    ("receiving answer fails", None, Some(Fault::FailReceive), Err(Error::Link(LinkError::Other)), true, 0),
];

fn scripts(push: Option<Fault>, answer: Option<Fault>) -> Scripts {
    let script = |fault: Option<Fault>| match fault {
        Some(fault) => Script::from([(0, fault)]),
        None => Script::new(),
    };
    (script(push), script(answer))
}

#[test]
fn each_fault_ends_its_push_truly_and_the_next_push_works() {
    for &(name, push, answer, expected, is_written, ignored) in FAULTS {
        let mut world = World::scripted(Options::new(), [scripts(push, answer)]);
        let landing = world.received.pool().allocate(BLOCK).unwrap().open();
        let address = world.address(landing.offset());
        let id = world.push(0xaa, BLOCK, address);
        world.take_all();
        let ended = world.end().unwrap();
        assert_eq!(ended.id(), id, "{name}");
        let result = ended.result().map(|bytes| assert_eq!(bytes, BLOCK as u64));
        assert_eq!(result.map_err(|error| *error), expected, "{name}");
        // The slot is back, and with it all the pool.
        drop(ended);
        assert_eq!(world.region.pool().stats().allocated_bytes(), 0, "{name}");
        assert_eq!(world.sender.in_flight(), 0, "{name}");

        let slot = landing.close().unwrap();
        let fill = if is_written { 0xaa } else { 0 };
        assert_eq!(
            world.received.bytes(&slot).unwrap(),
            [fill; BLOCK],
            "{name}"
        );

        let landing = slot.open();
        world.push(0xbb, BLOCK, address);
        assert_eq!(world.take_all(), 1, "{name}");
        let ended = world.end().unwrap();
        assert_eq!(ended.result(), Ok(BLOCK as u64), "{name}");
        assert!(world.end().is_none(), "{name}");
        assert_eq!(world.sender.ignored(), ignored, "{name}");
        let slot = landing.close().unwrap();
        assert_eq!(
            world.received.bytes(&slot).unwrap(),
            [0xbb; BLOCK],
            "{name}"
        );
    }
}

#[test]
fn a_doubled_push_is_not_written_into_a_window_that_was_opened_again() {
    let mut world = World::scripted(Options::new(), [scripts(Some(Fault::Duplicate), None)]);
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.push(0xaa, BLOCK, address);
    assert!(world.inlet.poll().unwrap().is_ok());
    let mut slot = landing.close().unwrap();
    world.received.bytes_mut(&mut slot).unwrap().fill(0);

    let landing = slot.open();
    let refused = world.inlet.poll().unwrap().unwrap_err();
    assert_eq!(refused, InletError::Refused(Refusal::Stale { newest: 1 }));
    let slot = landing.close().unwrap();
    assert_eq!(world.received.bytes(&slot).unwrap(), [0; BLOCK]);
    assert_eq!(world.end().unwrap().result(), Ok(BLOCK as u64));
}

#[test]
fn a_doubled_push_whose_first_answer_was_lost_is_answered_as_the_first() {
    let lost = scripts(Some(Fault::Duplicate), Some(Fault::Drop));
    let mut world = World::scripted(Options::new(), [lost.clone()]);
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.push(0xaa, BLOCK, address);
    assert_eq!(world.take_all(), 1);
    assert_eq!(world.end().unwrap().result(), Ok(BLOCK as u64));

    let mut world = World::scripted(Options::new(), [lost]);
    let address = world.address(0);
    world.push(0xaa, BLOCK, address);
    assert_eq!(world.take_all(), 0);
    let closed = Error::Refused(Refusal::Closed);
    assert_eq!(world.end().unwrap().result(), Err(&closed));
    assert_eq!(closed.kind(), ErrorKind::Closed);
}

#[test]
fn an_answer_that_comes_late_is_ignored() {
    let mut world = World::new();
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.sender = world.sender.with_timeout(Duration::from_secs(1));
    let given_up = world.push(1, 8, address);
    world.sender = world.sender.with_timeout(Duration::from_secs(86_400));
    let waiting = world.push(2, 16, address);

    let ended = world.end().unwrap();
    assert_eq!(
        (ended.id(), ended.result()),
        (given_up, Err(&Error::TimedOut))
    );
    assert_eq!(world.take_all(), 2);
    let ended = world.end().unwrap();
    assert_eq!((ended.id(), ended.result()), (waiting, Ok(16)));
    assert_eq!(world.sender.ignored(), 1);
    // It answered: the link is kept.
    assert_eq!(world.sender.links(), 1);
}

#[test]
fn a_push_of_nothing_that_succeeds_settles_those_before_it() {
    // Late, but not lost; by far more than the steps up to the settling push take.
    let late = scripts(Some(Fault::Delay(Duration::from_secs(1))), None);
    let mut world = World::scripted(Options::new(), [late]);
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.push(0xaa, BLOCK, address);
    assert_eq!(world.take_all(), 0);
    let ended = world.end().unwrap();
    assert_eq!(ended.result(), Err(&Error::TimedOut));
    assert_eq!(world.sender.links(), 0);

    let nothing = Transfer::new(world.slot(0), SESSION);
    let id = world.sender.push(nothing).unwrap();
    let written = world.inlet.poll().unwrap().unwrap();
    assert_eq!((written.bytes(), written.is_answered()), (0, true));
    let ended = world.end().unwrap();
    assert_eq!((ended.id(), ended.result()), (id, Ok(0)));

    let refused = world.inlet.wait(Duration::from_secs(60)).unwrap();
    let newest = id.value();
    assert_eq!(
        refused.unwrap_err(),
        InletError::Refused(Refusal::Stale { newest })
    );
    let slot = landing.close().unwrap();
    assert_eq!(world.received.bytes(&slot).unwrap(), [0; BLOCK]);
}

#[test]
fn a_push_that_comes_after_its_window_closed_is_refused() {
    let mut world = World::new();
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.push(0xaa, BLOCK, address);
    let slot = landing.close().unwrap();
    assert_eq!(world.take_all(), 0);
    assert_eq!(world.received.bytes(&slot).unwrap(), [0; BLOCK]);
    let ended = world.end().unwrap();
    assert_eq!(ended.result(), Err(&Error::Refused(Refusal::Closed)));
}

#[test]
fn all_that_is_under_way_on_a_link_ends_with_it() {
    let closing = (Script::from([(2, Fault::Close)]), Script::new());
    let mut world = World::scripted(Options::new(), [closing]);
    let address = world.address(0);
    let ids: Vec<_> = (0..3).map(|fill| world.push(fill, 1, address)).collect();
    let ended: Vec<_> = std::iter::from_fn(|| world.sender.poll_completion()).collect();
    let gone = Err(&Error::Link(LinkError::Closed));
    let told: Vec<_> = ended
        .iter()
        .map(|ended| (ended.id(), ended.result()))
        .collect();
    assert_eq!(told, [(ids[0], gone), (ids[1], gone), (ids[2], gone)]);
    assert_eq!(world.sender.links(), 0);
}

#[test]
fn under_seeded_faults_every_push_ends_once_and_truly() {
    let rates = [
        (Fault::Drop, 60),
        (Fault::Duplicate, 60),
        (Fault::TruncateBytes(3), 40),
        (Fault::TruncateFrames(1), 40),
        (Fault::Fail, 30),
        (Fault::FailReceive, 30),
        (Fault::Disconnect, 30),
        (Fault::Close, 20),
    ];
    for seed in 0..200 {
        let script = |part: u64| Script::seeded(seed * 1000 + part, &rates);
        let scripts = (0..40).map(|link| (script(2 * link), script(2 * link + 1)));
        let mut world = World::scripted(Options::new(), scripts);
        let landing = world.received.pool().allocate(BLOCK).unwrap().open();
        let offset = landing.offset();
        let address = world.address(offset);
        // Byte `n` is what push `n` writes.
        let mut truth = Vec::new();
        for n in 0..20 {
            let id = world.push(0xaa, 1, address + n);
            if n % 3 == 0 {
                world.take_all();
                while let Some(ended) = world.sender.poll_completion() {
                    truth.push((ended.id().value(), ended.result().is_ok()));
                }
            }
            assert_eq!(id.value(), n + 1);
        }
        world.take_all();
        while let Some(ended) = world.sender.poll_completion_at(later()) {
            truth.push((ended.id().value(), ended.result().is_ok()));
        }
        truth.sort_unstable();
        let ids: Vec<_> = truth.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, (1..=20).collect::<Vec<_>>(), "seed {seed}");
        let slot = landing.close().unwrap();
        let bytes = world.received.bytes(&slot).unwrap();
        for (id, is_ok) in truth {
            let is_written = bytes[id as usize - 1] == 0xaa;
            assert!(is_written || !is_ok, "seed {seed}, push {id}");
        }
        assert!(bytes[20..].iter().all(|&byte| byte == 0));
        assert_eq!(world.region.pool().stats().allocated_bytes(), 0);
    }
}
