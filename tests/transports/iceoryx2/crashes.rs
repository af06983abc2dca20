//! Processes killed with SIGKILL.

use std::env;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::iceoryx2::{Builder, Error, Message, Receiver, Sender};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait};

use super::channels::Folder;
use super::unique_name;
use crate::{PATIENCE, pattern};

const ROUNDS: usize = 20;

/// Tells a process of this test what to be: a role, a directory, a channel.
const ROLE: &str = "TENSORWIRE_TEST_IOX_ROLE";

const DEPTH: usize = 3;

/// Gives the pools of each channel a size of their own, by which their files can be
/// told from those of other channels and processes.
fn message_bytes(name: &str) -> usize {
    let hash = name.bytes().fold(0, |hash: usize, byte| {
        (hash * 31 + usize::from(byte)) % 1021
    });
    1_234_560 + hash * 4096
}

fn channel(folder: &str, name: &str) -> Builder {
    Builder::new(name)
        .directory(folder)
        .depth(DEPTH)
        .message_bytes(message_bytes(name))
}

/// Frames of message `number`, of some hundred kilobytes in all.
fn frames(number: usize) -> [Vec<u8>; 3] {
    let len = 1000 + number % 7 * 50_000;
    [
        number.to_le_bytes().to_vec(),
        pattern(number, 1, len),
        pattern(number, 2, 33),
    ]
}

fn send(sender: &mut Sender, number: usize, wait: Wait) -> Result<(), Error> {
    let frames = frames(number);
    sender.send_frames(&frames.each_ref().map(Vec::as_slice), wait)
}

/// Checks that a message is whole, and returns its number.
fn check(message: &Message) -> usize {
    let number = message.frame(0).unwrap().try_into().unwrap();
    let number = usize::from_le_bytes(number);
    let expected = frames(number);
    assert_eq!(message.frames().len(), expected.len());
    for (frame, expected) in message.frames().iter().zip(&expected) {
        assert!(frame.as_ref() == expected, "message {number} is torn");
    }
    number
}

/// Starts this very program again, in a role.
fn start(role: &str, folder: &Folder, name: &str) -> Killed {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "iceoryx2::crashes::in_a_role", "--nocapture"])
        .env(ROLE, format!("{role} {} {name}", folder.0.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Killed(child)
}

/// A process that does not live on.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No test: what the other processes do, until they are killed.
#[test]
fn in_a_role() {
    let Ok(role) = env::var(ROLE) else { return };
    let [role, folder, name] = role.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{role}")
    };
    let channel = channel(folder, name);
    match role {
        "send" => {
            let mut sender = channel.sender().unwrap();
            for number in 0.. {
                send(&mut sender, number, Wait::Forever).unwrap();
            }
        }
        "receive" => {
            let mut receiver = channel.receiver().unwrap();
            let mut kept;
            let mut last: Option<usize> = None;
            loop {
                // Always one kept and one received, so that it dies with both.
                let message = receiver.recv().unwrap();
                let number = check(&message);
                assert!(
                    last.is_none_or(|last| number == last + 1),
                    "a gap at {number}"
                );
                last = Some(number);
                kept = message;
                assert!(!kept.frames().is_empty());
            }
        }
        role => panic!("{role}"),
    }
}

/// How many files of pools the channel has.
fn pools(name: &str) -> usize {
    let size = (message_bytes(name) * DEPTH) as u64;
    let files = fs::read_dir("/dev/shm").unwrap().flatten();
    let sizes = files.filter_map(|file| file.metadata().ok().map(|found| found.len()));
    sizes
        .filter(|len| (size..size + 4096).contains(len))
        .count()
}

#[test]
fn a_killed_sender_tears_no_message_and_leaves_nothing_behind() {
    let (folder, name) = (Folder::new(), unique_name());
    let channel = channel(folder.0.to_str().unwrap(), &name);
    let mut receiver: Receiver = channel.clone().receiver().unwrap();
    let mut message = Message::default();
    for round in 0..ROUNDS {
        let child = start("send", &folder, &name);
        for expected in 0..5 + round * 3 {
            receiver.recv_into(&mut message).unwrap();
            assert_eq!(check(&message), expected, "round {round}");
        }
        drop(child);
        // What it sent before still comes, and is whole.
        let wait = Wait::UpTo(Duration::from_millis(1));
        let mut next = 5 + round * 3;
        while receiver.recv_frames(&mut message, wait).is_ok() {
            assert_eq!(check(&message), next, "round {round}");
            next += 1;
        }
    }
    // The next one to open an end cleans up.
    let sender = channel.clone().sender().unwrap();
    assert_eq!(pools(&name), 1);
    drop((sender, receiver, message));
    assert_eq!(pools(&name), 0);
    let nodes = fs::read_dir(folder.0.join("nodes")).unwrap().count();
    let services = fs::read_dir(folder.0.join("services")).unwrap().count();
    assert_eq!((nodes, services), (0, 0));
}

#[test]
fn a_killed_receiver_holds_no_sender_up() {
    let (folder, name) = (Folder::new(), unique_name());
    let channel = channel(folder.0.to_str().unwrap(), &name);
    let mut sender = channel.clone().sender().unwrap();
    let mut number = 0;
    for round in 0..ROUNDS {
        let child = start("receive", &folder, &name);
        // Each of these waits for the next receiver if there is none.
        for _ in 0..10 + round {
            send(&mut sender, number, Wait::UpTo(PATIENCE)).unwrap();
            number += 1;
        }
        drop(child);
        if round % 4 == 0 {
            // Timeouts hold while the dead one has all the places.
            let start = Instant::now();
            let wait = Wait::UpTo(Duration::from_millis(30));
            while send(&mut sender, number, wait).is_ok() {
                number += 1;
            }
            assert!(start.elapsed() < PATIENCE);
        }
    }
    // With a living receiver all goes on.
    let receiver = thread::spawn(move || {
        let mut receiver = channel.receiver().unwrap();
        check(&receiver.recv().unwrap())
    });
    let start = Instant::now();
    while !receiver.is_finished() {
        if send(&mut sender, number, Wait::UpTo(Duration::from_millis(20))).is_ok() {
            number += 1;
        }
        assert!(start.elapsed() < PATIENCE);
    }
    receiver.join().unwrap();
}

#[test]
fn a_sender_that_waits_finds_out_that_the_receiver_was_killed() {
    let (folder, name) = (Folder::new(), unique_name());
    let channel = channel(folder.0.to_str().unwrap(), &name);
    let mut sender = channel.sender().unwrap();
    let child = start("receive", &folder, &name);
    for number in 0..5 {
        send(&mut sender, number, Wait::UpTo(PATIENCE)).unwrap();
    }
    drop(child);
    while send(&mut sender, 5, Wait::Never).is_ok() {}
    // Nobody else opens anything that would clean up.
    let error = send(&mut sender, 5, Wait::UpTo(Duration::from_millis(300)));
    assert_eq!(error, Err(Error::TimedOut));
    assert!(!sender.has_receiver());
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_task_that_waits_to_send_finds_out_that_the_receiver_was_killed() {
    use tensorwire::transport::tokio::Async;

    let (folder, name) = (Folder::new(), unique_name());
    let channel = channel(folder.0.to_str().unwrap(), &name);
    let mut sender = Async::new(channel.sender().unwrap()).unwrap();
    let child = start("receive", &folder, &name);
    for number in 0..5 {
        let frames = frames(number);
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let wait = Wait::UpTo(PATIENCE);
        sender.send_frames(&frames, wait).await.unwrap();
    }
    drop(child);
    // What it still takes in goes down with the dead one.
    let mut sends = 0;
    let wait = Wait::UpTo(Duration::from_millis(400));
    while sender.send_frames(&[b"x"], wait).await.is_ok() {
        sends += 1;
        assert!(sends <= DEPTH);
    }
    assert!(!sender.get_ref().has_receiver());
}
