//! Rooms, meetings, lent places.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::bundle;
use tensorwire::transport::iceoryx2::{
    Builder, DirectoryFault, Error, Lent, METADATA_COPY, Message, Receiver, Sender,
};
use tensorwire::transport::{Frames, LendFrames, Loan, Observed, RecvFrames, SendFrames, Wait};

use super::unique_name;
use crate::{PATIENCE, copied, pattern};

const SHORT: Duration = Duration::from_millis(20);

/// A channel of few and small messages.
pub(super) fn channel(depth: usize) -> Builder {
    Builder::new(&unique_name())
        .depth(depth)
        .message_bytes(1 << 16)
}

#[test]
fn a_channel_has_one_receiver_at_a_time() {
    let channel = channel(4);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.clone().receiver().unwrap();
    let again = || channel.clone().receiver().map(drop);
    assert_eq!(again(), Err(Error::ReceiverExists));

    sender.send(&[b"kept"]).unwrap();
    sender.send(&[b"lost with its receiver"]).unwrap();
    let message = receiver.recv().unwrap();
    drop(receiver);
    assert_eq!(again(), Err(Error::ReceiverExists));
    drop(message);
    let mut receiver = channel.clone().receiver().unwrap();
    sender.send(&[b"next"]).unwrap();
    assert_eq!(copied(&receiver.recv().unwrap()), [b"next"]);
}

#[test]
fn kept_messages_are_places_that_the_sender_lacks() {
    let channel = channel(2);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let mut kept = Vec::new();
    for number in 0..2_u8 {
        sender.try_send(&[&[number], &[number; 100]]).unwrap();
        kept.push(receiver.recv().unwrap());
    }
    for _ in 0..2 {
        assert_eq!(sender.try_send(&[b"no room"]), Err(Error::WouldBlock));
        let error = sender.send_frames(&[b"no room"], Wait::UpTo(SHORT));
        assert_eq!(error, Err(Error::TimedOut));
    }
    assert_eq!(sender.counters().queue_full, 4);
    drop(kept.remove(0));
    sender.try_send(&[b"room"]).unwrap();
    assert_eq!(copied(&receiver.recv().unwrap()), [b"room"]);

    // What is kept outlives both ends.
    drop((sender, receiver));
    assert_eq!(copied(&kept[0]), [vec![1], vec![1; 100]]);
}

#[test]
fn what_has_no_room_at_all_is_refused_with_the_numbers() {
    let channel = channel(2);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let limit = 1 << 16;
    for excess in [1, 1000, 1 << 20] {
        let tensor = vec![1; limit - 64 + excess];
        let actual = bundle::encoded_len([tensor.len()]).unwrap();
        let error = Error::TooLarge { limit, actual };
        assert_eq!(sender.send(&[&tensor]), Err(error));
    }
    sender.send(&[&vec![2; limit - 64]]).unwrap();
    assert_eq!(receiver.recv().unwrap().byte_count(), limit - 64);
}

#[test]
fn a_pool_that_cannot_be_made_is_refused() {
    let open = |bytes| {
        let channel = channel(8).message_bytes(bytes).sender();
        channel.map(drop).unwrap_err()
    };
    for bytes in [usize::MAX, usize::MAX >> 5, 1 << 58, (1 << 41) + 1] {
        let error = open(bytes);
        let expected = Error::TooLarge {
            limit: 1 << 41,
            actual: bytes,
        };
        assert_eq!(error, expected);
        let text = format!("{bytes} bytes for one place of the pool");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn ends_and_messages_may_go_to_other_threads() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Sender>();
    sent::<Lent<'_>>();
    sent::<Receiver>();
    shared::<Message>();
    shared::<Error>();
}

#[test]
fn names_and_directories_that_will_not_do_are_refused() {
    for name in ["", &"x".repeat(256), "x\u{e9}", "x\0y", "iox2://x"] {
        let error = Builder::new(name).sender().map(drop).unwrap_err();
        assert_eq!(error, Error::Name, "{name:?}");
        assert!(error.to_string().contains("1 to 255 ASCII"), "{error}");
    }
    // Control characters and what a path would not have are lawful.
    let unique = unique_name();
    for name in [
        &format!("{unique} a/../\t~:*?\x7f"),
        &format!("{unique:x<255}"),
    ] {
        Builder::new(name).sender().unwrap();
    }
    let folder = Folder::new();
    let open = |path: PathBuf| {
        let channel = Builder::new(&unique_name()).directory(path);
        channel.sender().map(drop)
    };
    let refused = |fault| Err(Error::Directory(fault));
    let missing = folder.0.join("a/b");
    assert_eq!(open(missing), refused(DirectoryFault::Inaccessible));
    let long = folder.0.join("x".repeat(250));
    assert_eq!(open(long), refused(DirectoryFault::Path));
    let public = folder.0.join("public");
    fs::create_dir(&public).unwrap();
    fs::set_permissions(&public, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(open(public.clone()), refused(DirectoryFault::Insecure));
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&folder.0, &link).unwrap();
    for link in [link.clone(), link.join(""), link.join(".")] {
        assert_eq!(open(link), refused(DirectoryFault::Insecure));
    }
    // Long enough for a node, and too long for a socket.
    let long = PathBuf::from("/tmp").join("x".repeat(80));
    assert_eq!(open(long.clone()), refused(DirectoryFault::Path));
    assert!(!long.exists());
    let own = folder.0.join("own");
    assert_eq!(open(own.clone()), Ok(()));
    let mode = fs::metadata(own).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn lent_frames_are_read_where_they_were_written() {
    let channel = channel(2);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let mut message = Message::default();
    let cases: &[&[usize]] = &[&[0], &[0, 0, 0], &[8, 4000, 0, 1, 64], &[1], &[5; 700]];
    for (number, &lengths) in cases.iter().enumerate() {
        // Dropped, it gives the place back, which is the next to be lent.
        let places: Vec<usize> = (0..3)
            .map(|_| {
                let mut loan = sender.lend_frames(lengths, Wait::Never).unwrap();
                loan.frames_mut().next().unwrap().as_ptr() as usize
            })
            .collect();
        assert!(places.iter().all(|place| *place == places[0]));
        let mut loan = sender.lend_frames(lengths, Wait::Never).unwrap();
        let mut addresses = Vec::new();
        for (index, frame) in loan.frames_mut().enumerate() {
            frame.copy_from_slice(&pattern(number, index, lengths[index]));
            addresses.push(frame.as_ptr() as usize);
        }
        // What was written stays.
        for (index, frame) in loan.frames_mut().enumerate() {
            assert_eq!(*frame, pattern(number, index, lengths[index]));
        }
        loan.send(Wait::Never).unwrap();
        receiver.try_recv_into(&mut message).unwrap();
        assert_eq!(message.frames().len(), lengths.len());
        for (index, frame) in message.frames().iter().enumerate() {
            assert_eq!(frame.as_ref(), pattern(number, index, lengths[index]));
            if index > 0 {
                assert_eq!(frame.as_ref().as_ptr() as usize % 64, 0);
            }
        }
        let receipt = message.receipt().unwrap();
        assert_eq!(receipt.copied_bytes(), lengths[0]);
    }
    assert_eq!(sender.counters().messages_sent, 5);
    assert_eq!(receiver.counters().messages_received, 5);
    let empty = sender.lend_frames(&[], Wait::Never).map(drop);
    assert_eq!(empty, Err(Error::EmptyMessage));
}

#[test]
fn a_loan_that_nobody_gets_comes_back_as_it_was() {
    let channel = channel(1);
    let mut sender = channel.clone().sender().unwrap();
    let receiver = channel.clone().receiver().unwrap();
    let lengths = [8, 30_000];
    let mut loan = sender.lend_frames(&lengths, Wait::Never).unwrap();
    for (index, frame) in loan.frames_mut().enumerate() {
        frame.copy_from_slice(&pattern(1, index, lengths[index]));
    }
    drop(receiver);
    let (loan, error) = loan.send(Wait::Never).unwrap_err();
    assert_eq!(error, Error::WouldBlock);
    let (loan, error) = loan.send(Wait::UpTo(SHORT)).unwrap_err();
    assert_eq!(error, Error::TimedOut);

    let receiver = thread::spawn(move || {
        thread::sleep(SHORT);
        let mut receiver = channel.receiver().unwrap();
        copied(&receiver.recv().unwrap())
    });
    loan.send(Wait::UpTo(PATIENCE)).unwrap();
    let expected = [pattern(1, 0, 8), pattern(1, 1, 30_000)];
    assert_eq!(receiver.join().unwrap(), expected);
}

#[test]
fn files_belong_to_their_owner_and_go_with_the_channel() {
    let folder = Folder::new();
    // Nobody else's pool has that size.
    let bytes = 3_456_768 + 4096 * (std::process::id() as usize % 1021);
    let open = || {
        let channel = Builder::new(&unique_name()).directory(&folder.0);
        let channel = channel.message_bytes(bytes).depth(1);
        let mut sender = channel.clone().sender().unwrap();
        let mut receiver = channel.receiver().unwrap();
        sender.send(&[b"x"]).unwrap();
        let message = receiver.recv().unwrap();
        (sender, receiver, message)
    };
    let pools = || -> Vec<u32> {
        let files = fs::read_dir("/dev/shm").unwrap().flatten();
        let found = files.filter_map(|file| file.metadata().ok());
        let pool = bytes as u64..bytes as u64 + 4096;
        let pools = found.filter(|found| pool.contains(&found.len()));
        pools.map(|found| found.mode() & 0o777).collect()
    };
    fn files(path: &Path) -> Vec<(PathBuf, u32)> {
        let entries = fs::read_dir(path).unwrap().flatten();
        let files = entries.flat_map(|entry| {
            let found = entry.metadata().unwrap();
            match found.is_dir() {
                true => files(&entry.path()),
                false => vec![(entry.path(), found.mode() & 0o777)],
            }
        });
        files.collect()
    }
    let ends = open();
    assert_eq!(pools(), [0o600]);
    let found = files(&folder.0);
    assert!(found.len() >= 2, "{found:?}");
    assert!(found.iter().all(|(_, mode)| mode & 0o077 == 0), "{found:?}");
    // So does the counter of all channels, which stays.
    let user = fs::metadata(&folder.0).unwrap().uid();
    let shared = fs::read_dir("/dev/shm").unwrap().flatten();
    let counters = shared.filter(|file| {
        let name = file.file_name().into_string().unwrap();
        name.starts_with(&format!("tw_{user}_")) && name.ends_with(".global_mgmt")
    });
    let modes: Vec<_> = counters
        .map(|file| file.metadata().unwrap().mode() & 0o777)
        .collect();
    assert_eq!(modes, [0o600]);
    drop(ends);
    assert_eq!(pools(), [0_u32; 0]);
    assert_eq!(files(&folder.0), []);
}

#[test]
fn timeouts_are_kept() {
    let channel = channel(1);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let mut kept = Message::default();
    sender.send(&[b"the only place"]).unwrap();
    receiver.recv_into(&mut kept).unwrap();
    let mut message = Message::default();
    for time in [1, 7, 40, 230].map(Duration::from_millis) {
        let mut fastest = [Duration::MAX; 2];
        // One of five, as machines have other things to do.
        for _ in 0..5 {
            let start = Instant::now();
            let error = receiver.recv_frames(&mut message, Wait::UpTo(time));
            let receiving = start.elapsed();
            assert_eq!(error, Err(Error::TimedOut));
            let start = Instant::now();
            let error = sender.send_frames(&[b""], Wait::UpTo(time));
            let sending = start.elapsed();
            assert_eq!(error, Err(Error::TimedOut));
            for (fastest, waited) in fastest.iter_mut().zip([receiving, sending]) {
                assert!(waited >= time, "{time:?}: {waited:?}");
                *fastest = waited.min(*fastest);
            }
            if fastest.iter().all(|waited| *waited < time + TOLERANCE) {
                break;
            }
        }
        for waited in fastest {
            assert!(waited < time + TOLERANCE, "{time:?}: {waited:?}");
        }
    }
}

const TOLERANCE: Duration = Duration::from_millis(50);

#[test]
fn no_wake_up_is_lost() {
    // There and back, each end asleep when its message comes.
    let there = channel(2).spin(Duration::ZERO);
    let back = channel(2).spin(Duration::ZERO);
    let mut out = there.clone().sender().unwrap();
    let mut echo_out = back.clone().sender().unwrap();
    let mut echo_in = there.receiver().unwrap();
    let mut incoming = back.receiver().unwrap();
    const ROUNDS: u32 = 2000;
    let echo = thread::spawn(move || {
        for _ in 0..ROUNDS {
            let message = echo_in.recv().unwrap();
            echo_out.send(&[message.frame(0).unwrap()]).unwrap();
        }
    });
    let start = Instant::now();
    for number in 0..ROUNDS {
        out.send(&[&number.to_le_bytes()]).unwrap();
        let message = incoming.recv().unwrap();
        assert_eq!(message.frame(0), Some(&number.to_le_bytes()[..]));
    }
    echo.join().unwrap();
    // Sleepers look again by themselves after 100 ms: that many rounds of it would show.
    let elapsed = start.elapsed();
    assert!(elapsed < ROUNDS * Duration::from_millis(10), "{elapsed:?}");
}

#[test]
fn an_armed_descriptor_is_readable_once_a_message_came() {
    let channel = channel(2);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let socket = UnixDatagram::from(receiver.as_fd().try_clone_to_owned().unwrap());
    let mut message = Message::default();
    for round in 0..3_u8 {
        receiver.arm().unwrap();
        let error = receiver.try_recv_into(&mut message);
        assert_eq!(error, Err(Error::WouldBlock));
        sender.send(&[&[round]]).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(socket.recv(&mut [0; 8]).is_ok());
        receiver.try_recv_into(&mut message).unwrap();
        assert_eq!(copied(&message), [[round]]);
    }
    // What comes before it is armed is found by the look after.
    sender.send(&[b"before"]).unwrap();
    receiver.arm().unwrap();
    receiver.try_recv_into(&mut message).unwrap();
}

#[test]
fn a_first_frame_too_large_for_metadata_is_read_where_it_lies() {
    let channel = Builder::new(&unique_name()).message_bytes(METADATA_COPY + 200);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    for (len, copied) in [(METADATA_COPY, METADATA_COPY), (METADATA_COPY + 1, 0)] {
        sender.send(&[&pattern(1, 0, len), b"tail"]).unwrap();
        let message = receiver.recv().unwrap();
        assert_eq!(message.frame(0).unwrap(), pattern(1, 0, len));
        assert_eq!(message.receipt().unwrap().copied_bytes(), copied);
        assert!(message.receipt().unwrap().retained_bytes() >= len);
    }
}

#[test]
fn four_thousand_frames_and_a_quarter_of_a_gigabyte_pass() {
    let channel = Builder::new(&unique_name())
        .depth(2)
        .message_bytes((256 << 20) + (1 << 20));
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    let frames: Vec<Vec<u8>> = (0..4096)
        .map(|index| pattern(1, index, index % 7))
        .collect();
    let borrowed: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    sender.send(&borrowed).unwrap();
    assert_eq!(copied(&receiver.recv().unwrap()), frames);

    let mut loan = sender.lend_frames(&[8, 256 << 20], Wait::Never).unwrap();
    for frame in loan.frames_mut() {
        frame.fill(0x5a);
    }
    loan.send(Wait::Never).unwrap();
    let message = receiver.recv().unwrap();
    let large = message.frame(1).unwrap();
    assert_eq!(large.len(), 256 << 20);
    assert!(large.chunks(4096).all(|page| page[0] == 0x5a));
    // As large as it is, it was not copied.
    assert_eq!(message.receipt().unwrap().copied_bytes(), 8);
}

#[test]
fn no_signal_is_taken_over() {
    let caught = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("SigCgt:"));
        let mask = line.unwrap().rsplit('\t').next().unwrap();
        u64::from_str_radix(mask, 16).unwrap()
    };
    let channel = channel(1);
    let mut sender = channel.clone().sender().unwrap();
    let mut receiver = channel.receiver().unwrap();
    sender.send(&[b"x"]).unwrap();
    receiver.recv().unwrap();
    // SIGHUP, SIGINT, SIGTERM.
    for signal in [1, 2, 15] {
        assert_eq!(caught() & 1 << (signal - 1), 0, "signal {signal}");
    }
}

/// A folder that goes when it is dropped.
pub(super) struct Folder(pub PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let name = unique_name().replace('/', "-");
        let path = std::env::temp_dir().join(format!("tw-{name}"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
