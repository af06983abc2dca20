//! The data plane between threads: what moves, what is refused, and that nothing is lost by it.

#![cfg(feature = "std")]

mod script;
mod two;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use tensorwire::error::{DecodeErrorKind, EncodeError};
use tensorwire::json::Value;
use tensorwire::plane::memory::{Hub, NameTaken};
use tensorwire::plane::{
    DataPlane, ErrorKind, HostMemory, LoadError, MemoryKind, Region, RegionOptions, StoreError,
    Transfer,
};
use tensorwire::transfer::manifest::Storage;
use tensorwire::transfer::pool::{Pool, PoolError, WindowTable};
use tensorwire::{Options, TensorView};

use two::{Two, ended, options, two};

#[test]
fn a_push_moves_its_bytes_and_no_others() {
    let mut two = two();
    for len in [0, 1, 511, 512, 513, 4096, 8192] {
        let (landing, address) = two.landing(len.max(1));
        let transfer = two.transfer(7, len, address);
        assert_eq!(two.push(transfer), Ok(len as u64), "{len}");
        let slot = landing.close().unwrap();
        let bytes = two.written(&slot);
        assert!(bytes[..len].iter().all(|&byte| byte == 7));
        assert!(bytes[len..].iter().all(|&byte| byte == 0));
    }
    assert!(two.sender.poll_completion().is_none());
    two.assert_empty();
}

#[test]
fn the_pieces_of_a_transfer_go_each_to_its_place() {
    let mut two = two();
    let (first, first_address) = two.landing(512);
    let (second, second_address) = two.landing(1024);
    let pieces = [
        (100..300, first_address + 10),
        (300..400, second_address + 924),
        (400..400, second_address + 1023),
        (500..600, first_address),
    ];
    let transfer = |two: &Two| {
        let mut slot = two.filled(2048, 0);
        let bytes = two.ours.bytes_mut(&mut slot).unwrap();
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index / 100) as u8;
        }
        let mut transfer = Transfer::new(slot, "receiver");
        for (source, address) in pieces.clone() {
            transfer.add_piece(source, address).unwrap();
        }
        transfer
    };

    // With one more that does not fit, none of them is written.
    let mut too_long = transfer(&two);
    too_long.add_piece(0..1025, second_address).unwrap();
    let past = ErrorKind::PastWindow {
        len: 1025,
        room: 1024,
    };
    assert_eq!(two.push(too_long), Err(past));
    let (first, second) = (first.close().unwrap(), second.close().unwrap());
    assert!(two.written(&first).iter().all(|&byte| byte == 0));
    assert!(two.written(&second).iter().all(|&byte| byte == 0));

    let (first, second) = (first.open(), second.open());
    let transfer = transfer(&two);
    assert_eq!((transfer.pieces().len(), transfer.byte_len()), (4, 400));
    assert_eq!(two.push(transfer), Ok(400));
    let (first, second) = (first.close().unwrap(), second.close().unwrap());
    let bytes = two.written(&first);
    assert_eq!((bytes[0], bytes[99], bytes[100], bytes[109]), (5, 5, 1, 1));
    assert_eq!((bytes[110], bytes[209], bytes[210]), (2, 2, 0));
    let bytes = two.written(&second);
    assert_eq!((bytes[923], bytes[924], bytes[1023]), (0, 3, 3));
    drop((first, second));
    two.assert_empty();
}

#[test]
fn what_may_not_be_written_is_refused_with_its_reason() {
    let mut two = two();
    let base = two.theirs.base();
    let (landing, address) = two.landing(1024);
    assert_eq!(landing.offset(), 0);
    let out = |address, len| ErrorKind::OutOfBounds { address, len };
    for (what, len, address, expected) in [
        ("below", 1, base - 1, out(base - 1, 1)),
        ("at the end", 1, base + 8192, out(base + 8192, 1)),
        ("over the end", 2, base + 8191, out(base + 8191, 2)),
        ("zero", 16, 0, out(0, 16)),
        ("the last", 16, u64::MAX, out(u64::MAX, 16)),
        ("wraps", 16, u64::MAX - 7, out(u64::MAX - 7, 16)),
        ("no window", 16, base + 1024, ErrorKind::Closed),
        ("no window, no bytes", 0, base + 1024, ErrorKind::Closed),
        (
            "over its end",
            16,
            address + 1010,
            ErrorKind::PastWindow { len: 16, room: 14 },
        ),
        (
            "over all",
            2048,
            address,
            ErrorKind::PastWindow {
                len: 2048,
                room: 1024,
            },
        ),
    ] {
        let transfer = two.transfer(7, len, address);
        assert_eq!(two.push(transfer), Err(expected), "{what}");
    }
    let slot = landing.close().unwrap();
    assert!(two.written(&slot).iter().all(|&byte| byte == 0));
    let late = two.transfer(7, 16, address);
    assert_eq!(two.push(late), Err(ErrorKind::Closed));
    assert!(two.written(&slot).iter().all(|&byte| byte == 0));
    drop(slot);
    two.assert_empty();
}

#[test]
fn a_window_never_reaches_into_its_neighbour() {
    let mut two = two();
    let (first, address) = two.landing(512);
    let (second, _) = two.landing(512);
    let transfer = two.transfer(7, 513, address);
    let past = ErrorKind::PastWindow {
        len: 513,
        room: 512,
    };
    assert_eq!(two.push(transfer), Err(past));
    // Nor by way of a piece that has entered the window before.
    let mut transfer = two.transfer(7, 16, address);
    transfer.add_piece(0..512, address + 1).unwrap();
    let past = ErrorKind::PastWindow {
        len: 512,
        room: 511,
    };
    assert_eq!(two.push(transfer), Err(past));
    let (first, second) = (first.close().unwrap(), second.close().unwrap());
    assert!(two.written(&first).iter().all(|&byte| byte == 0));
    assert!(two.written(&second).iter().all(|&byte| byte == 0));
}

#[test]
fn peers_that_are_not_there_are_told_apart() {
    let mut two = two();
    let (landing, address) = two.landing(512);
    let stranger = Transfer::new(two.filled(1, 0), "nobody");
    assert_eq!(two.push(stranger), Err(ErrorKind::UnknownSession));
    // A session without a piece to write has nothing to refuse.
    let none = Transfer::new(two.filled(1, 0), "receiver");
    assert_eq!(two.push(none), Ok(0));

    // Its region is dropped, its session is there.
    let Two {
        hub,
        mut sender,
        ours,
        receiver,
        theirs,
    } = two;
    let mut push = |address| {
        let mut transfer = Transfer::new(ours.pool().allocate(1).unwrap(), "receiver");
        transfer.add_piece(0..1, address).unwrap();
        let id = sender.push(transfer).unwrap();
        ended(&mut sender, id).1
    };
    assert_eq!(push(address), Ok(1));
    drop(theirs);
    let out = |address| Err(ErrorKind::OutOfBounds { address, len: 1 });
    assert_eq!(push(address), out(address));
    assert_eq!(push(1), out(1));
    // The landing is a number by now.
    drop(landing.close().unwrap());

    let _: NameTaken = hub.join("receiver").unwrap_err();
    drop(receiver);
    assert_eq!(push(address), Err(ErrorKind::PeerGone));
    let again = hub.join("receiver").unwrap();
    assert_eq!(push(address), out(address));
    drop(again);
    assert_eq!(push(address), Err(ErrorKind::PeerGone));
    assert_eq!(ours.pool().stats().allocations(), 0);
}

#[test]
fn a_slot_is_pushed_by_the_plane_of_its_region_alone() {
    let mut two = two();
    let (_landing, address) = two.landing(512);
    let mut foreign = Transfer::new(two.theirs.pool().allocate(1).unwrap(), "receiver");
    foreign.add_piece(0..1, address).unwrap();
    assert_eq!(two.push(foreign), Err(ErrorKind::ForeignSlot));
    let loose = Pool::new(1).unwrap().allocate(1).unwrap();
    assert_eq!(
        two.push(Transfer::new(loose, "receiver")),
        Err(ErrorKind::ForeignSlot)
    );

    // One that was dropped meanwhile has no bytes.
    let region = two.sender.register(options()).unwrap();
    let mut orphan = Transfer::new(region.pool().allocate(1).unwrap(), "receiver");
    orphan.add_piece(0..1, address).unwrap();
    drop(region);
    assert_eq!(two.push(orphan), Err(ErrorKind::ForeignSlot));
    let first = two.transfer(1, 1, address);
    assert_eq!(two.push(first), Ok(1));

    // To oneself, and from any of several regions.
    let more = two.receiver.register(options()).unwrap();
    let mut transfer = Transfer::new(more.pool().allocate(1).unwrap(), "receiver");
    transfer.add_piece(0..1, address).unwrap();
    let id = two.receiver.push(transfer).unwrap();
    assert_eq!(ended(&mut two.receiver, id).1, Ok(1));
}

#[test]
fn a_region_gives_the_bytes_of_its_own_slots_alone() {
    let two = two();
    let mut slot = two.filled(512, 9);
    assert_eq!(two.ours.bytes(&slot).unwrap(), [9; 512]);
    assert_eq!(two.theirs.bytes(&slot), Err(ErrorKind::ForeignSlot));
    assert_eq!(two.theirs.bytes_mut(&mut slot), Err(ErrorKind::ForeignSlot));
    let loose = Pool::new(1).unwrap().allocate(1).unwrap();
    assert_eq!(two.ours.bytes(&loose), Err(ErrorKind::ForeignSlot));

    // Two at once, to write to.
    let mut other = two.filled(512, 0);
    let first = two.ours.bytes_mut(&mut slot).unwrap();
    let second = two.ours.bytes_mut(&mut other).unwrap();
    first.swap_with_slice(second);
    assert_eq!(two.ours.bytes(&other).unwrap(), [9; 512]);

    let base = two.ours.base();
    assert_eq!(two.ours.address_of(8192), Ok(base + 8192));
    assert!(two.ours.address_of(8193).is_err());
    assert!(two.ours.address_of(usize::MAX).is_err());
    assert_eq!(base % 4096, 0);
    assert_eq!((two.ours.len(), two.ours.kind()), (8192, MemoryKind::Host));
}

#[test]
fn regions_that_cannot_be_are_refused() {
    let mut plane = Hub::new().join("").unwrap();
    for kind in [MemoryKind::Pinned, MemoryKind::Device { ordinal: 3 }] {
        let found = plane.register(options().with_kind(kind));
        assert_eq!(found.unwrap_err(), ErrorKind::Unsupported { kind });
    }
    for (options, expected) in [
        (
            RegionOptions::new(1).with_min_block(3),
            PoolError::BadMinBlock { min_block: 3 },
        ),
        (
            RegionOptions::new(usize::MAX),
            PoolError::PoolTooLarge { len: usize::MAX },
        ),
        (RegionOptions::new(1 << 62), PoolError::OutOfMemory),
    ] {
        let found = plane.register(options);
        assert_eq!(found.unwrap_err(), ErrorKind::Pool(expected));
    }
    assert_eq!(HostMemory::new(0).unwrap_err(), PoolError::ZeroLength);

    let region = |len, min_block| {
        let memory = Box::new(HostMemory::new(len).unwrap());
        Region::new(memory, min_block, std::sync::Arc::new(WindowTable::new()))
    };
    // Memory of no power of two: what lies past one is left over.
    assert_eq!(region(5000, 512).unwrap().len(), 4096);
    assert_eq!(region(512, 512).unwrap().len(), 512);
    let too_small = PoolError::TooLarge {
        needed: 512,
        pool: 511,
    };
    assert_eq!(region(511, 512).unwrap_err(), ErrorKind::Pool(too_small));
}

#[test]
fn tensors_are_pushed_and_found_by_their_manifest() {
    let mut two = two();
    let (latents, mask) = ([0.5_f32; 6], [true, false, true]);
    let tensors = [
        TensorView::from_slice("latents", &[2, 3], &latents).unwrap(),
        TensorView::from_slice("mask", &[3], &mask).unwrap(),
    ];
    let stored = two.ours.store(&tensors).unwrap();
    assert_eq!((stored.used_len(), stored.slot().len()), (515, 1024));
    let (slot, used_len, manifest) = stored.into_parts();
    let (landing, address) = two.landing(used_len);
    let mut transfer = Transfer::new(slot, "receiver");
    transfer.add_piece(0..used_len, address).unwrap();
    assert_eq!(two.push(transfer), Ok(515));

    let slot = landing.close().unwrap();
    let manifest = Value::parse(&manifest).unwrap().as_object().unwrap();
    let options = Options::new();
    let mut storage = Storage::<2>::new();
    let found = two.theirs.load(&slot, manifest, &mut storage, &options);
    let found = found.unwrap();
    let read = found.tensor("latents").unwrap();
    assert_eq!(read.as_slice::<f32>().unwrap(), latents);
    let read = found.tensor("mask").unwrap();
    assert_eq!(read.as_slice::<bool>().unwrap(), mask);

    // A manifest of a larger slot, a slot of another region, no room, no name.
    let mut storage = Storage::<2>::new();
    let small = two.theirs.pool().allocate(512).unwrap();
    let found = two.theirs.load(&small, manifest, &mut storage, &options);
    let Err(LoadError::Decode(error)) = found else {
        panic!("{found:?}");
    };
    let out = DecodeErrorKind::OutOfSlot {
        offset: 512,
        byte_len: 3,
        slot_len: 512,
    };
    assert_eq!(error.kind(), out);
    let found = two.ours.load(&slot, manifest, &mut storage, &options);
    assert_eq!(found.unwrap_err(), LoadError::Plane(ErrorKind::ForeignSlot));
    let large = TensorView::from_slice("large", &[9000], &[0_u8; 9000]).unwrap();
    let too_large = PoolError::TooLarge {
        needed: 9000,
        pool: 8192,
    };
    assert_eq!(
        two.ours.store([&large]).unwrap_err(),
        StoreError::Plane(ErrorKind::Pool(too_large))
    );
    assert!(matches!(
        two.ours.store([&tensors[0], &tensors[0]]),
        Err(StoreError::Encode(EncodeError::DuplicateField { .. }))
    ));

    // Nothing to move has a place too.
    let none = two.ours.store(&[] as &[TensorView<'_>]).unwrap();
    assert_eq!((none.used_len(), none.manifest()), (0, &b"{}"[..]));
    assert_eq!(none.slot().len(), 512);
    drop((none, slot, small));
    two.assert_empty();
}

#[test]
fn a_plane_is_used_as_an_object_too() {
    let mut two = two();
    let (_landing, address) = two.landing(512);
    let transfer = two.transfer(1, 3, address);
    let plane: &mut dyn DataPlane<Error = ErrorKind> = &mut two.sender;
    assert_eq!(plane.session_id(), "sender");
    plane.push(transfer).unwrap();
    let completion = plane.poll_completion().unwrap();
    assert_eq!(completion.result(), Ok(3));
}

/// Senders on threads push patterns into the landings of receivers on others, some of
/// which give up too early; whoever gets `Ok` finds its pattern whole.
#[test]
fn threads_see_whole_patterns_and_lose_no_slot() {
    const PAIRS: usize = 3;
    const ROUNDS: usize = 400;
    let hub = Hub::new();
    let mut receiver = hub.join("receiver").unwrap();
    let theirs = receiver.register(options()).unwrap();
    let start = Barrier::new(PAIRS * 2);
    let arrived = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for pair in 0..PAIRS {
            let (orders, ordered) = mpsc::channel::<(u64, u8)>();
            let (results, resulted) = mpsc::channel::<Result<u64, ErrorKind>>();
            let (hub, start, theirs) = (&hub, &start, &theirs);
            let arrived = &arrived;
            scope.spawn(move || {
                let mut plane = hub.join(&format!("sender-{pair}")).unwrap();
                let ours = plane.register(options()).unwrap();
                start.wait();
                for (address, fill) in ordered {
                    let mut slot = ours.pool().allocate(1024).unwrap();
                    ours.bytes_mut(&mut slot).unwrap().fill(fill);
                    let mut transfer = Transfer::new(slot, "receiver");
                    transfer.add_piece(0..500, address).unwrap();
                    transfer.add_piece(500..1024, address + 500).unwrap();
                    let id = plane.push(transfer).unwrap();
                    let _ = results.send(ended(&mut plane, id).1);
                }
                assert_eq!(ours.pool().stats().allocations(), 0);
            });
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    let fill = (round * PAIRS + pair) as u8 | 1;
                    let Ok(mut slot) = theirs.pool().allocate(1024) else {
                        std::thread::yield_now();
                        continue;
                    };
                    theirs.bytes_mut(&mut slot).unwrap().fill(0);
                    let address = theirs.address_of(slot.offset()).unwrap();
                    let landing = slot.open();
                    orders.send((address, fill)).unwrap();
                    if round % 3 == 0 {
                        // Gives up. A slot is kept until the push has ended, as nobody could
                        // tell it from one for whoever opens the place next; a push
                        // that has begun keeps the place itself.
                        let closed = landing.close();
                        let slot = closed.map_err(drop).ok();
                        let result = resulted.recv().unwrap();
                        assert!(result.is_ok() || slot.is_some());
                        continue;
                    }
                    assert_eq!(resulted.recv().unwrap(), Ok(1024));
                    let slot = landing.close().unwrap();
                    let bytes = theirs.bytes(&slot).unwrap();
                    assert!(bytes.iter().all(|&byte| byte == fill));
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(arrived.load(Ordering::Relaxed) > 0);
    theirs.pool().reclaim();
    let stats = theirs.pool().stats();
    assert_eq!((stats.allocations(), stats.quarantined_blocks()), (0, 0));
}
