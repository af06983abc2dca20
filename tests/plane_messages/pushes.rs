//! What arrives, and from where.

use std::thread;
use std::time::Duration;

use tensorwire::message::{Cost, Decoder};
use tensorwire::plane::messages::{Links, Plane};
use tensorwire::plane::{DataPlane, RegionOptions, Transfer};
use tensorwire::transport::loopback::{self, Loopback, Message, Options};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait};

use super::{BLOCK, REGION, SESSION, World, connect, counting, nobody};

#[test]
fn every_piece_arrives_in_its_place_and_nothing_beside() {
    let mut world = World::new();
    let landing = world.received.pool().allocate(BLOCK).unwrap().open();
    let mut slot = world.slot(0);
    let bytes = world.region.bytes_mut(&mut slot).unwrap();
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at % 251) as u8 + 1;
    }
    let expected = bytes.to_vec();

    let pieces = [
        (0..100, 50),
        (100..100, 0),
        (4000..4096, 1000),
        (7..8, 4095),
    ];
    let mut transfer = Transfer::new(slot, SESSION);
    for (source, to) in pieces.clone() {
        let address = world.address(landing.offset() + to);
        transfer.add_piece(source, address).unwrap();
    }
    let id = world.sender.push(transfer).unwrap();
    assert_eq!(world.sender.in_flight(), 1);
    assert!(world.sender.poll_completion().is_none());

    let written = world.inlet.poll().unwrap().unwrap();
    assert!(written.is_answered());
    let completion = world.sender.poll_completion().unwrap();
    assert_eq!((completion.id(), completion.result()), (id, Ok(197)));
    let (slot, _) = completion.into_parts();
    assert_eq!(world.region.bytes(&slot).unwrap(), expected);

    let slot = landing.close().unwrap();
    let mut model = [0; BLOCK];
    for (source, to) in pieces {
        model[to..][..source.len()].copy_from_slice(&expected[source]);
    }
    assert_eq!(world.received.bytes(&slot).unwrap(), model);
}

#[test]
fn pushes_of_many_threads_reach_one_inlet() {
    const PUSHERS: u8 = 4;
    const ROUNDS: usize = 20;
    let listen = Links::new();
    let adder = listen.adder();
    let mut receiver = Plane::new(SESSION, nobody());
    let region = receiver.register(REGION).unwrap();
    let mut inlet = receiver.inlet(listen);
    let windows: Vec<_> = (0..PUSHERS)
        .map(|_| region.pool().allocate(BLOCK).unwrap().open())
        .collect();

    let pushers = (1..=PUSHERS).zip(&windows).map(|(fill, window)| {
        let address = region.address_of(window.offset()).unwrap();
        let connect = connect(adder.clone(), Options::new(), []);
        thread::spawn(move || {
            let mut sender = Plane::new("sender", connect);
            let region = sender.register(REGION).unwrap();
            let mut slot = region.pool().allocate(BLOCK).unwrap();
            for _ in 0..ROUNDS {
                region.bytes_mut(&mut slot).unwrap().fill(fill);
                let mut transfer = Transfer::new(slot, SESSION);
                transfer.add_piece(0..BLOCK, address).unwrap();
                sender.push(transfer).unwrap();
                let ended = sender.wait_completion(Duration::from_secs(60)).unwrap();
                let (back, result) = ended.into_parts();
                assert_eq!(result, Ok(BLOCK as u64));
                slot = back;
            }
        })
    });
    let pushers: Vec<_> = pushers.collect();
    for _ in 0..usize::from(PUSHERS) * ROUNDS {
        inlet.wait(Duration::from_secs(60)).unwrap().unwrap();
    }
    for pusher in pushers {
        pusher.join().unwrap();
    }
    for (fill, window) in (1..).zip(windows) {
        let slot = window.close().unwrap();
        assert_eq!(region.bytes(&slot).unwrap(), [fill; BLOCK]);
    }
}

#[test]
fn a_plane_pushes_to_several_sessions_and_waits_for_all() {
    let mut ends = Vec::new();
    let mut adders = Vec::new();
    for name in ["a", "b", "c"] {
        let listen = Links::new();
        adders.push((name, listen.adder()));
        let mut receiver = Plane::new(name, nobody());
        let region = receiver.register(REGION).unwrap();
        let landing = region.pool().allocate(BLOCK).unwrap().open();
        ends.push((receiver.inlet(listen), region, landing));
    }
    let mut sender = Plane::new("sender", move |session: &str| {
        let (near, far) = loopback::pair();
        let adder = adders.iter().find(|(name, _)| *name == session);
        adder.ok_or(loopback::Error::Closed)?.1.add(far);
        Ok::<_, loopback::Error>(near)
    });
    let region = sender.register(REGION).unwrap();
    for (inlet, received, landing) in &ends {
        let slot = region.pool().allocate(BLOCK).unwrap();
        let mut transfer = Transfer::new(slot, inlet.session_id());
        let address = received.address_of(landing.offset()).unwrap();
        transfer.add_piece(0..BLOCK, address).unwrap();
        sender.push(transfer).unwrap();
    }
    assert!(sender.wait_completion(Duration::ZERO).is_none());
    // The inlets answer on another thread, one after the other, the last one first.
    let inlets = thread::spawn(move || {
        for (inlet, ..) in ends.iter_mut().rev() {
            inlet.wait(Duration::from_secs(60)).unwrap().unwrap();
        }
        ends
    });
    let wait = Duration::from_secs(60);
    let mut ids: Vec<_> = (0..3)
        .map(|_| {
            let ended = sender.wait_completion(wait).unwrap();
            assert_eq!(ended.result(), Ok(BLOCK as u64));
            ended.id().value()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    // None is under way: it does not wait.
    assert!(sender.wait_completion(wait).is_none());
    drop(inlets.join().unwrap());
}

/// A link that notes where the frames lie that are sent.
struct Noting {
    link: Loopback,
    frames: std::sync::mpsc::Sender<Vec<(usize, usize)>>,
}

impl SendFrames for Noting {
    type SendError = loopback::Error;

    fn send_frames(&mut self, frames: &[&[u8]], wait: Wait) -> Result<(), loopback::Error> {
        let places = frames
            .iter()
            .map(|frame| (frame.as_ptr().addr(), frame.len()));
        self.frames.send(places.collect()).unwrap();
        self.link.send_frames(frames, wait)
    }
}

impl RecvFrames for Noting {
    type Message = Message;
    type RecvError = loopback::Error;

    fn recv_frames(&mut self, message: &mut Message, wait: Wait) -> Result<(), loopback::Error> {
        self.link.recv_frames(message, wait)
    }
}

#[test]
fn a_large_push_is_copied_once_by_the_transport_and_once_into_its_window() {
    const LEN: usize = 64 << 20;
    let large = RegionOptions::new(LEN);
    let listen = Links::new();
    let adder = listen.adder();
    let mut receiver = Plane::new(SESSION, nobody());
    let received = receiver.register(large).unwrap();
    let mut inlet = receiver.inlet(listen);
    let (note, noted) = std::sync::mpsc::channel();
    let mut sender = Plane::new("sender", move |_: &str| {
        let (near, far) = loopback::pair();
        adder.add(far);
        let frames = note.clone();
        Ok::<_, loopback::Error>(Noting { link: near, frames })
    });
    let region = sender.register(large).unwrap();
    let landing = received.pool().allocate(LEN).unwrap().open();
    let mut slot = region.pool().allocate(LEN).unwrap();
    region.bytes_mut(&mut slot).unwrap().fill(7);
    let start = region.bytes(&slot).unwrap().as_ptr().addr();
    let mut transfer = Transfer::new(slot, SESSION);
    let half = LEN / 2;
    let address = received.address_of(landing.offset()).unwrap();
    transfer.add_piece(half..LEN, address).unwrap();
    transfer.add_piece(0..half, address + half as u64).unwrap();

    let (allocated, pushed) = counting::allocated_bytes(|| sender.push(transfer));
    pushed.unwrap();
    // The loopback's own copy, which stands for the wire, and nothing of that size beside.
    assert!((LEN..LEN + (1 << 16)).contains(&allocated), "{allocated}");
    let frames = noted.recv().unwrap();
    assert_eq!(frames[1..], [(start + half, half), (start, half)]);

    let (allocated, written) = counting::allocated_bytes(|| inlet.poll());
    assert_eq!(written.unwrap().unwrap().bytes(), LEN as u64);
    assert!(allocated < 1 << 16, "{allocated}");
    let ended = sender.poll_completion().unwrap();
    assert_eq!(ended.result(), Ok(LEN as u64));
    let slot = landing.close().unwrap();
    let bytes = received.bytes(&slot).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 7));
}

#[test]
fn a_push_is_an_ordinary_tensor_message() {
    let (near, mut far) = loopback::pair();
    let mut near = Some(near);
    let mut sender = Plane::new("sender", move |_: &str| {
        near.take().ok_or(loopback::Error::Closed)
    });
    let region = sender.register(REGION).unwrap();
    let mut slot = region.pool().allocate(BLOCK).unwrap();
    region.bytes_mut(&mut slot).unwrap()[..5].copy_from_slice(b"12345");
    let mut transfer = Transfer::new(slot, "s\u{e9}ance");
    transfer.add_piece(3..5, u64::MAX - 1).unwrap();
    transfer.add_piece(0..3, 77).unwrap();
    sender.push(transfer).unwrap();

    let received = far.recv().unwrap();
    let mut decoder = Decoder::new();
    let message = decoder.decode(received.frames()).unwrap();
    let pieces = message.list("pieces").unwrap();
    let bytes: Vec<_> = pieces.present().map(|(_, piece)| piece.bytes()).collect();
    assert_eq!(bytes, [&b"45"[..], b"123"]);
    let cost: Cost = message.cost();
    assert_eq!((cost.payload_bytes(), cost.misaligned()), (5, 0));
    let scalars = message.scalars();
    let keys: Vec<_> = scalars.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["_plane", "session", "origin", "push", "addresses"]);
    assert!(scalars.field("_plane").unwrap().as_str().unwrap() == "push");
    assert!(scalars.field("session").unwrap().as_str().unwrap() == "s\u{e9}ance");
    assert_eq!(scalars.field("push").unwrap().as_u64(), Ok(1));
    let addresses = scalars.field("addresses").unwrap();
    assert_eq!(addresses.raw(), "[18446744073709551614,77]");
}
