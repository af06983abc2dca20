//! What is bounded, and what is refused before anything is sent.

use std::time::Duration;

use tensorwire::plane::messages::{Error, Links, Plane};
use tensorwire::plane::{DataPlane, ErrorKind, MemoryKind, PlaneError, Transfer};
use tensorwire::transport::ErrorKind as LinkError;
use tensorwire::transport::loopback::{self, Loopback, Options};

use super::{BLOCK, REGION, SESSION, World};

#[test]
fn what_finds_no_room_waits_in_its_slot_and_goes_in_order() {
    let mut world = World::scripted(Options::new().with_high_water(1), []);
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    let ids: Vec<_> = (1..=5).map(|fill| world.push(fill, 1, address)).collect();
    let mut ended = Vec::new();
    while ended.len() < 5 {
        assert_eq!(world.take_all(), 1);
        let completion = world.sender.poll_completion().unwrap();
        assert_eq!(completion.result(), Ok(1));
        ended.push(completion.id());
    }
    assert_eq!(ended, ids);
    let slot = landing.close().unwrap();
    assert_eq!(world.received.bytes(&slot).unwrap()[0], 5);
}

#[test]
fn what_was_never_sent_in_its_time_never_arrives() {
    let mut world = World::scripted(Options::new().with_high_water(1), []);
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(landing.offset());
    world.push(1, 1, address);
    world.push(2, 1, address);
    for _ in 0..2 {
        let ended = world.end().unwrap();
        assert_eq!(ended.result(), Err(&Error::TimedOut));
    }
    assert_eq!(world.take_all(), 1);
    assert!(world.end().is_none());
    let slot = landing.close().unwrap();
    assert_eq!(world.received.bytes(&slot).unwrap()[0], 1);
}

#[test]
fn a_push_that_cannot_be_begun_comes_back_whole() {
    let mut world = World::new();
    world.sender = world
        .sender
        .with_max_push_bytes(100)
        .with_max_in_flight(1)
        .with_max_links(1);
    let address = world.address(0);
    let transfer = |world: &World, session: &str, len| {
        let mut transfer = Transfer::new(world.slot(0), session);
        transfer.add_piece(0..len, address).unwrap();
        transfer
    };

    let large = transfer(&world, SESSION, 101);
    let (back, error) = world.sender.push(large).unwrap_err();
    let (limit, actual) = (100, 101);
    assert_eq!(error, Error::TooLarge { limit, actual });
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert_eq!((back.byte_len(), back.session()), (101, SESSION));
    drop(back);

    let mut scattered = Transfer::new(world.slot(0), SESSION);
    for _ in 0..4097 {
        scattered.add_piece(0..0, address).unwrap();
    }
    let (_, error) = world.sender.push(scattered).unwrap_err();
    let (limit, actual) = (4096, 4097);
    assert_eq!(error, Error::TooManyPieces { limit, actual });

    let foreign = world.received.pool().allocate(1).unwrap();
    let foreign = Transfer::new(foreign, SESSION);
    let (_, error) = world.sender.push(foreign).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignSlot);

    let first = transfer(&world, SESSION, 1);
    world.sender.push(first).unwrap();
    let second = transfer(&world, SESSION, 1);
    let (_, error) = world.sender.push(second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);

    world.sender = world.sender.with_max_in_flight(2);
    let other = transfer(&world, "other", 1);
    let (other, error) = world.sender.push(other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    world.take_all();
    assert!(world.sender.poll_completion().is_some());
    // Now the only link is idle, and makes room for another.
    world.sender.push(other).unwrap();
    assert_eq!((world.sender.links(), world.sender.in_flight()), (1, 1));

    let kind = MemoryKind::Pinned;
    let error = world.sender.register(REGION.with_kind(kind)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported { kind });
}

#[test]
fn a_session_that_cannot_be_reached_is_told_at_once() {
    for (error, expected) in [
        (loopback::Error::Closed, ErrorKind::PeerGone),
        (loopback::Error::EmptyMessage, ErrorKind::UnknownSession),
    ] {
        let connect = move |_: &str| Err::<Loopback, _>(error);
        let mut sender = Plane::new("sender", connect);
        let region = sender.register(REGION).unwrap();
        let transfer = Transfer::new(region.pool().allocate(1).unwrap(), SESSION);
        let (_, told) = sender.push(transfer).unwrap_err();
        assert_eq!(told.kind(), expected);
    }
    assert_eq!(
        Error::NoLink(LinkError::Closed).to_string(),
        "no link to the session (Closed)"
    );
}

#[test]
fn a_region_that_was_dropped_takes_and_gives_nothing() {
    let mut world = World::scripted(Options::new().with_high_water(1), []);
    let other = world.receiver.register(REGION).unwrap();
    let landing = other.pool().allocate(BLOCK).unwrap().open();
    let gone = world.received.pool().allocate(BLOCK).unwrap().open();
    let address = world.address(gone.offset());
    let there = other.address_of(landing.offset()).unwrap();
    world.push(1, 8, address);
    world.push(2, 8, there);
    // The second is still to be sent when its bytes go.
    let World {
        mut sender,
        region,
        received,
        mut inlet,
        ..
    } = world;
    drop((received, region));
    assert!(inlet.poll().unwrap().is_err());
    let ended = sender.wait_completion(Duration::ZERO).unwrap();
    let out = ErrorKind::OutOfBounds { address, len: 8 };
    assert_eq!(ended.result().unwrap_err().kind(), out);
    let ended = sender.wait_completion(Duration::ZERO).unwrap();
    let error = ended.result().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignSlot);
    assert!(inlet.poll().is_none());
}

#[test]
fn a_session_of_two_regions_is_written_in_both() {
    let mut world = World::new();
    let other = world.receiver.register(REGION).unwrap();
    for region in [&world.received, &other] {
        let landing = region.pool().allocate(BLOCK).unwrap().open();
        let address = region.address_of(landing.offset()).unwrap();
        let mut transfer = Transfer::new(world.slot(9), SESSION);
        transfer.add_piece(0..BLOCK, address).unwrap();
        world.sender.push(transfer).unwrap();
        world.inlet.poll().unwrap().unwrap();
        let slot = landing.close().unwrap();
        assert_eq!(region.bytes(&slot).unwrap(), [9; BLOCK]);
    }
}

#[test]
fn a_listener_without_links_waits_for_one() {
    let mut receiver = Plane::new(SESSION, super::nobody());
    let _region = receiver.register(REGION).unwrap();
    let listen = Links::new();
    let adder = listen.adder();
    let mut inlet = receiver.inlet(listen);
    assert!(inlet.poll().is_none());
    assert!(inlet.wait(Duration::from_millis(5)).is_none());
    let added = std::thread::spawn(move || {
        let (mut near, far) = loopback::pair();
        adder.add(far);
        tensorwire::transport::SendFrames::send(&mut near, &[b"no push"]).unwrap();
        near
    });
    assert!(inlet.wait(Duration::from_secs(60)).unwrap().is_err());
    drop(added.join().unwrap());
    assert!(inlet.poll().is_none());
    assert!(inlet.listener().is_empty());
}
