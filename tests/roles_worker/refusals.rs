//! What is turned away, and how much is taken.

use tensorwire::message::CONTROL_MARKER;
use tensorwire::transfer::message::Push;
use tensorwire::transfer::pool::Pool;
use tensorwire::transfer::worker::{
    CallError, Event, Output, ProtocolError, PushOrder, Received, Settings,
};
use tensorwire::transfer::{Instance, Receiver, RequestId, Role, Sender};

use super::bed::{BLOCK, Bed, MANIFEST, SECOND, sent, site};

#[test]
fn as_many_requests_as_are_taken_and_no_more() {
    let settings = Settings::new()
        .with_max_requests(2)
        .with_preallocated(1, BLOCK);
    let full = ProtocolError::Full { limit: 2 };
    let mut bed = Bed::with_settings(Role::Denoiser, settings);
    bed.alloc("a", 8).unwrap();
    bed.alloc("b", 8).unwrap();
    bed.look();
    bed.log.clear();
    assert_eq!(bed.alloc("c", 8), Err(full));
    let id = bed.slot_id.to_string();
    assert_eq!(bed.ready(MANIFEST, 0, Some(&id)), Err(full));
    bed.look();
    assert_eq!((bed.instance.len(), &*bed.log), (2, " ERROR ERROR"));

    let mut bed = Bed::with_settings(Role::Encoder, settings);
    bed.work("a").unwrap();
    bed.work("b").unwrap();
    assert_eq!(bed.work("c"), Err(full));
    bed.look();
    assert_eq!((bed.instance.len(), &*bed.log), (2, " ERROR"));
}

#[test]
fn refusals_that_nobody_fetches_do_not_pile_up() {
    let mut bed = Bed::with_settings(Role::Encoder, Settings::new().with_max_requests(1));
    for index in 0..10_000 {
        let id = index.to_string();
        assert!(bed.control(Push::new(&*id, "there", 0, 8)).is_err());
    }
    assert!((1..100).contains(&sent(&mut bed.instance).len()));
}

#[test]
fn frames_that_are_no_message_for_the_role_are_turned_away() {
    let long = "x".repeat(RequestId::MAX_LEN + 1);
    let too_long = ProtocolError::TextTooLong {
        len: long.len(),
        limit: RequestId::MAX_LEN,
    };
    let mut bed = Bed::new(Role::Encoder);
    let frames = |frames: &[&[u8]], bed: &mut Bed| {
        let frames: Vec<Vec<u8>> = frames.iter().map(|frame| frame.to_vec()).collect();
        bed.instance
            .handle_frames(&frames, SECOND)
            .map(|input| format!("{input:?}"))
    };
    assert_eq!(frames(&[], &mut bed), Err(ProtocolError::NoText));
    assert_eq!(frames(&[b"r"], &mut bed), Err(ProtocolError::NoText));
    assert_eq!(
        frames(&[b"\xff", b"pickle"], &mut bed),
        Err(ProtocolError::NoText)
    );
    assert_eq!(
        frames(&[long.as_bytes(), b"pickle"], &mut bed),
        Err(too_long)
    );
    // An id that looks like the start of a tensor message is one all the same.
    assert!(
        frames(&[b"{", b"1", b"pickle"], &mut bed)
            .unwrap()
            .starts_with("Work")
    );
    assert!(bed.control(Push::new(&*long, "there", 0, 8)).is_err());
    let invalid = frames(&[CONTROL_MARKER], &mut bed);
    assert!(matches!(invalid, Err(ProtocolError::Invalid(_))));
    assert!(bed.transmit().is_empty());

    let mut bed = Bed::new(Role::Denoiser);
    let role = Role::Denoiser;
    assert_eq!(
        frames(&[b"r", b"pickle"], &mut bed),
        Err(ProtocolError::NotOfRole { role })
    );
    assert_eq!(frames(&[b"{}"], &mut bed), Ok("Tensors".into()));
    assert_eq!(bed.alloc(&long, 8), Err(too_long));
    assert!(bed.transmit().is_empty());
}

#[test]
fn halves_of_other_roles_and_slots_that_are_not_there_are_refused() {
    let pool = Pool::new(1 << 20).unwrap();
    let settings = Settings::new().with_preallocated(2, 1 << 20);
    let role = Role::Decoder;
    let error = Sender::new(role, site(&pool), settings).unwrap_err();
    assert_eq!(error, CallError::NotOfRole { role });
    let role = Role::Encoder;
    let error = Receiver::new(role, site(&pool), settings).unwrap_err();
    assert_eq!(error, CallError::NotOfRole { role });
    let error = Instance::new(Role::Denoiser, site(&pool), settings).unwrap_err();
    assert!(matches!(error, CallError::Pool(_)), "{error}");
    assert_eq!(pool.stats().allocated_bytes(), 0);
}

#[test]
fn machines_and_what_they_hand_out_go_to_any_thread() {
    fn is_send<T: Send>() {}
    is_send::<Instance>();
    is_send::<Received>();
    is_send::<Output>();
    is_send::<PushOrder>();
    is_send::<Event>();
}
