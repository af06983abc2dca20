//! Senders and receivers that come and go.

use std::thread;

use tensorwire::transport::iceoryx2::{Error, MAX_SENDERS, Message};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait};

use super::channels::channel;
use crate::copied;

#[test]
fn a_sender_that_comes_later_is_met_at_the_next_receive() {
    let channel = channel(3);
    let mut receiver = channel.clone().receiver().unwrap();
    let mut message = Message::default();
    for round in 0..3_u8 {
        let mut sender = channel.clone().sender().unwrap();
        assert_eq!(sender.try_send(&[b"early"]), Err(Error::WouldBlock));
        assert_eq!(sender.try_send(&[b"early"]), Err(Error::WouldBlock));
        let error = receiver.try_recv_into(&mut message).unwrap_err();
        assert_eq!(error, Error::WouldBlock);
        for _ in 0..3 {
            sender.try_send(&[&[round]]).unwrap();
        }
        drop(sender);
        for _ in 0..3 {
            receiver.try_recv_into(&mut message).unwrap();
            assert_eq!(copied(&message), [[round]]);
        }
    }
}

#[test]
fn a_sender_that_comes_later_is_met_behind_what_lies_there() {
    let channel = channel(3);
    let mut first = channel.clone().sender().unwrap();
    let mut receiver = channel.clone().receiver().unwrap();
    first.send(&[b"first"]).unwrap();
    let mut second = channel.sender().unwrap();
    assert_eq!(second.try_send(&[b"early"]), Err(Error::WouldBlock));
    assert_eq!(copied(&receiver.recv().unwrap()), [b"first"]);
    // Without another receive in between.
    second.try_send(&[b"second"]).unwrap();
    first.try_send(&[b"third"]).unwrap();
    let mut more = [receiver.recv().unwrap(), receiver.recv().unwrap()].map(|m| copied(&m));
    more.sort();
    assert_eq!(more, [[b"second".to_vec()], [b"third".to_vec()]]);
}

#[test]
fn who_only_tries_finds_out_that_the_receiver_is_another() {
    let channel = channel(2);
    let mut sender = channel.clone().sender().unwrap();
    for round in 0..3_u8 {
        let mut receiver = channel.clone().receiver().unwrap();
        // The one before took its messages along.
        for _ in 0..2 {
            sender.try_send(&[&[round]]).unwrap();
        }
        assert_eq!(sender.try_send(&[&[round]]), Err(Error::WouldBlock));
        if round == 1 {
            assert_eq!(copied(&receiver.recv().unwrap()), [[round]]);
        }
    }
}

/// Six maps of it have room in the address space, twelve do not.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sender_whose_pool_cannot_be_mapped_is_told_of_and_loses_nothing() {
    const HUGE: usize = 1 << 44;
    let failed = Err(Error::Failed {
        doing: "connect to a sender",
    });
    let huge = channel(1).message_bytes(HUGE);
    let senders: Vec<_> = (0..6).map(|_| huge.clone().sender().unwrap()).collect();
    assert_eq!(huge.receiver().map(drop), failed);
    for mut sender in senders {
        assert_eq!(sender.try_send(&[b"lost?"]), Err(Error::WouldBlock));
    }

    let channel = channel(1);
    let mut receiver = channel.clone().receiver().unwrap();
    let mut small = channel.clone().sender().unwrap();
    let huge = channel.message_bytes(HUGE);
    let mut senders: Vec<_> = (0..6).map(|_| huge.clone().sender().unwrap()).collect();
    let mut message = Message::default();
    assert_eq!(receiver.recv_frames(&mut message, Wait::Never), failed);
    let mut last = senders.pop().unwrap();
    assert_eq!(last.try_send(&[b"lost?"]), Err(Error::WouldBlock));
    // The others go on.
    let receiver = thread::spawn(move || copied(&receiver.recv().unwrap()));
    small.send(&[b"received"]).unwrap();
    assert_eq!(receiver.join().unwrap(), [b"received"]);
}

#[test]
fn senders_come_and_go_and_none_loses_a_message() {
    let channel = channel(4);
    let mut receiver = channel.clone().receiver().unwrap();
    let one = |id: u8| {
        let channel = channel.clone();
        move || {
            let mut sender = channel.sender().unwrap();
            for number in 0..20_u8 {
                sender.send(&[&[id, number]]).unwrap();
            }
        }
    };
    let threads: Vec<_> = (0..12).map(|id| thread::spawn(one(id))).collect();
    let mut next = [0; 12];
    let mut message = Message::default();
    for _ in 0..12 * 20 {
        receiver.recv_into(&mut message).unwrap();
        let &[id, number] = message.frame(0).unwrap() else {
            panic!("{message:?}")
        };
        assert_eq!(number, next[usize::from(id)], "sender {id}");
        next[usize::from(id)] += 1;
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(receiver.try_recv_into(&mut message), Err(Error::WouldBlock));

    let senders: Vec<_> = (0..MAX_SENDERS)
        .map(|_| channel.clone().sender().unwrap())
        .collect();
    let refused = channel.clone().sender().map(drop);
    assert_eq!(refused, Err(Error::TooManySenders));
    drop(senders);
    channel.sender().unwrap();
}
