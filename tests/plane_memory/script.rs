//! Pushes that are held, cut off, refused, and late.

use std::time::Duration;

use tensorwire::plane::memory::{Fault, Hold, Plane};
use tensorwire::plane::{DataPlane, ErrorKind};

use super::two::{ended, two};

#[test]
fn one_write_at_a_time_goes_into_a_window() {
    let mut two = two();
    let script = two.sender.script();
    let (landing, address) = two.landing(512);
    script.hold(Hold::InWindow);
    let first = two.sender.push(two.transfer(1, 256, address)).unwrap();
    assert!(two.sender.poll_completion().is_none());
    let second = two
        .sender
        .push(two.transfer(2, 256, address + 256))
        .unwrap();
    script.resume();
    // The first one was written before the second one's end is told.
    let (_, result) = ended(&mut two.sender, first);
    assert_eq!(result, Ok(256));
    let (_, result) = ended(&mut two.sender, second);
    assert_eq!(result, Err(ErrorKind::Busy));
    assert!(ErrorKind::Busy.is_wait());
    let slot = landing.close().unwrap();
    assert_eq!(two.written(&slot)[..257], [&[1; 256][..], &[0]].concat());
}

#[test]
fn a_landing_is_not_closed_under_a_push() {
    let mut two = two();
    let script = two.sender.script();
    script.hold(Hold::InWindow);
    let (landing, address) = two.landing(512);
    let id = two.sender.push(two.transfer(1, 512, address)).unwrap();
    let landing = landing.close().unwrap_err().into_landing();
    script.release(1);
    assert_eq!(ended(&mut two.sender, id).1, Ok(512));
    let slot = landing.close().unwrap();
    assert_eq!(two.written(&slot), [1; 512]);

    // Dropped under a push, its block is nobody's until that is over.
    let (landing, address) = (slot.open(), address);
    let id = two.sender.push(two.transfer(2, 512, address)).unwrap();
    drop(landing);
    assert_eq!(two.theirs.pool().stats().quarantined_blocks(), 1);
    assert_ne!(two.landing(512).1, address);
    script.resume();
    let (slot, result) = ended(&mut two.sender, id);
    assert_eq!(result, Ok(512));
    drop(slot);
    assert_eq!(two.theirs.pool().reclaim(), 1);
    two.assert_empty();
}

#[test]
fn a_push_that_comes_late_finds_its_window_closed() {
    let mut two = two();
    let script = two.sender.script();
    script.hold(Hold::BeforeWindow);
    let (landing, address) = two.landing(512);
    let id = two.sender.push(two.transfer(1, 512, address)).unwrap();
    let slot = landing.close().unwrap();
    script.resume();
    assert_eq!(ended(&mut two.sender, id).1, Err(ErrorKind::Closed));
    assert_eq!(two.written(&slot), [0; 512]);
}

#[test]
fn a_script_decides_what_becomes_of_a_push() {
    let mut two = two();
    let script = two.sender.script();
    let cut = Fault::Cut {
        bytes: 100,
        kind: ErrorKind::TimedOut,
    };
    for (fault, expected, written) in [
        (Fault::Pass, Ok(512), 512),
        (cut, Err(ErrorKind::TimedOut), 100),
        (Fault::Fail(ErrorKind::Backend), Err(ErrorKind::Backend), 0),
        (Fault::Refuse(ErrorKind::Busy), Err(ErrorKind::Busy), 0),
    ] {
        script.add_fault(fault);
        let (landing, address) = two.landing(512);
        let transfer = two.transfer(5, 512, address);
        assert_eq!(two.push(transfer), expected, "{fault:?}");
        let slot = landing.close().unwrap();
        let bytes = two.written(&slot);
        assert_eq!(bytes.iter().filter(|&&byte| byte == 5).count(), written);
    }
    // What was said is used up, one by one.
    script.add_fault(Fault::Pass);
    script.add_fault(Fault::Fail(ErrorKind::PeerGone));
    for expected in [Ok(1), Err(ErrorKind::PeerGone), Ok(1)] {
        let (_landing, address) = two.landing(512);
        let transfer = two.transfer(5, 1, address);
        assert_eq!(two.push(transfer), expected);
    }
    two.assert_empty();
}

#[test]
fn completions_wait_until_they_are_released() {
    let mut two = two();
    let script = two.sender.script();
    script.hold(Hold::BeforeCompletion);
    let landings = [1, 2, 3, 4].map(|fill| {
        let (landing, address) = two.landing(512);
        let id = two.sender.push(two.transfer(fill, 512, address)).unwrap();
        (landing, id)
    });
    let told = |plane: &mut Plane| {
        std::iter::from_fn(|| plane.poll_completion())
            .map(|completion| completion.id().value())
            .collect::<Vec<_>>()
    };
    assert!(told(&mut two.sender).is_empty());
    assert!(two.sender.wait_completion(Duration::ZERO).is_none());
    script.release(2);
    assert_eq!(told(&mut two.sender), [0, 1]);
    // Those held before go on; the one after is held anew.
    script.resume();
    script.hold(Hold::BeforeCompletion);
    let (_landing, address) = two.landing(512);
    let _ = two.sender.push(two.transfer(9, 512, address)).unwrap();
    assert_eq!(told(&mut two.sender), [2, 3]);
    assert!(told(&mut two.sender).is_empty());
    for ((landing, _), fill) in landings.into_iter().zip(1..) {
        let slot = landing.close().unwrap();
        assert_eq!(two.written(&slot), [fill; 512]);
    }
    // What never ends is freed with its plane.
    assert_eq!(two.ours.pool().stats().allocations(), 1);
    drop(two.sender);
    assert_eq!(two.ours.pool().stats().allocations(), 0);
}

#[test]
fn waiting_ends_with_the_release_and_with_nothing_to_wait_for() {
    let mut two = two();
    assert!(two.sender.wait_completion(Duration::MAX).is_none());
    let script = two.sender.script();
    script.hold(Hold::BeforeCompletion);
    let (_landing, address) = two.landing(512);
    let id = two.sender.push(two.transfer(9, 512, address)).unwrap();
    let mut sender = two.sender;
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || sender.wait_completion(Duration::MAX).map(|x| x.id()));
        script.release(1);
        assert_eq!(waits.join().unwrap(), Some(id));
    });
}
