//! Files: whose they are, and what is not to be opened.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use tensorwire::plane::{DataPlane, ErrorKind};

use crate::{Folder, MIB, base, push, register};

#[test]
fn files_are_their_owners_alone_and_their_names_no_guess() {
    let folder = Folder::new();
    let mut planes: Vec<_> = (0..3).map(|_| folder.plane()).collect();
    let mut regions = Vec::new();
    let mut expected = Vec::new();
    for (number, plane) in (1..).zip(&mut planes) {
        for number in 1..=number {
            regions.push(register(plane, MIB));
            expected.push(folder.segment(plane.session_id(), number));
        }
        let half = &plane.session_id()["shm-1-".len()..][..16];
        expected.push(folder.0.join(format!("tensorwire-1-plane-{half}")));
    }
    expected.sort();
    let names = folder.names();
    let found: Vec<_> = names.iter().map(|name| folder.0.join(name)).collect();
    assert_eq!(found, expected);
    let user = fs::metadata(&folder.0).unwrap().uid();
    for path in found {
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.is_file(), "{path:?}");
        assert_eq!(metadata.mode() & 0o7777, 0o600, "{path:?}");
        assert_eq!(metadata.uid(), user, "{path:?}");
    }
    // Not one digit that all share, but the bit that says what it is.
    for at in 7..32 {
        let digit = |session: &str| session.as_bytes()["shm-1-".len() + at];
        let sessions: Vec<_> = (0..40)
            .map(|_| folder.plane().session_id().to_owned())
            .collect();
        assert!(sessions.iter().any(|one| digit(one) != digit(&sessions[0])));
    }
    drop((regions, planes));
    assert!(folder.names().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_made_for_its_owner_alone() {
    let folder = Folder::new();
    let deep = folder.0.join("deep").join("er");
    let builder = tensorwire::plane::shared::Builder::new().with_folder(&deep);
    let plane = builder.build().unwrap();
    for path in [deep.as_path(), deep.parent().unwrap()] {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700);
    }
    drop(plane);
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let builder = tensorwire::plane::shared::Builder::new().with_folder(file);
    assert!(builder.build().unwrap_err().io_kind().is_some());
}

/// A session that there is not, but for what the test puts into its place.
const SESSION: &str = "shm-1-8123456789abcdef0123456789abcdef";

/// Makes something at its second path; a good segment is at the first.
type Make = fn(&Path, &Path);

/// What is not a file of one name.
const MAKERS: [(&str, Make); 5] = [
    ("a link to a segment", |good, path| {
        symlink(good, path).unwrap()
    }),
    ("a second name of one", |good, path| {
        fs::hard_link(good, path).unwrap()
    }),
    ("a link to nothing", |_, path| {
        symlink("/nowhere", path).unwrap()
    }),
    ("a folder", |_, path| fs::create_dir(path).unwrap()),
    ("a pipe", |_, path| {
        let made = Command::new("mkfifo")
            .arg("-m")
            .arg("600")
            .arg(path)
            .status();
        assert!(made.unwrap().success());
    }),
];

/// Copies a good segment to `path`, and cuts it or draws it out to `len` bytes.
fn copy(good: &Path, path: &Path, len: u64) -> File {
    fs::copy(good, path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.set_len(len).unwrap();
    file
}

#[test]
fn what_lies_under_a_good_name_is_checked_before_it_is_used() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, MIB);
    let theirs = register(&mut peer, MIB);
    let landing = theirs.pool().allocate(MIB).unwrap().open();
    let good = folder.segment(peer.session_id(), 1);
    let len = fs::metadata(&good).unwrap().len();
    assert_eq!(len, 3 << 20);
    // Another session whose pools have the same numbers.
    let (head, low) = (SESSION.len() - 4, peer.session_id());
    let session = format!("{}{}", &SESSION[..head], &low[head..]);
    let path = folder.segment(&session, 1);
    let address = base(&session, 1);
    let mut push_there = || push(&mut plane, &region, (1, 8), &session, address);

    // The copy is good, if somebody holds it.
    let file = copy(&good, &path, len);
    assert_eq!(push_there(), Err(ErrorKind::PeerGone));
    file.lock().unwrap();
    assert_eq!(push_there(), Ok(8));
    fs::remove_file(&path).unwrap();
    assert_eq!(push_there(), Err(ErrorKind::PeerGone));
    assert_eq!(push_there(), Err(ErrorKind::UnknownSession));

    // Of a wrong length.
    for other in [0, 1, 63, 64, 4096, 2 << 20, len - 1, len + 1, len * 2] {
        let file = copy(&good, &path, other);
        file.lock().unwrap();
        assert_eq!(
            push_there(),
            Err(ErrorKind::UnknownSession),
            "{other} bytes"
        );
        fs::remove_file(&path).unwrap();
    }
    // With another header: (byte, what stands there)
    let words: [(u64, u64); 11] = [
        (0, 0),
        (8, 2),
        (16, 0),
        (16, 2 << 44),
        (24, u64::MAX),
        (24, 2 << 20),
        (32, 0),
        (32, u64::MAX),
        (40, 1 << 20),
        (48, 1 << 20),
        (56, 4 << 20),
    ];
    for (at, word) in words {
        let file = copy(&good, &path, len);
        file.lock().unwrap();
        file.write_all_at(&word.to_ne_bytes(), at).unwrap();
        assert_eq!(
            push_there(),
            Err(ErrorKind::UnknownSession),
            "{word} at {at}"
        );
        fs::remove_file(&path).unwrap();
    }
    // More than its owner may read and write it.
    for mode in [0o644, 0o666, 0o700, 0o620, 0o4600] {
        let file = copy(&good, &path, len);
        file.lock().unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(push_there(), Err(ErrorKind::UnknownSession), "{mode:o}");
        fs::remove_file(&path).unwrap();
    }
    // Of another user.
    let file = copy(&good, &path, len);
    file.lock().unwrap();
    match chown(&path, Some(12_345), None) {
        Ok(()) => assert_eq!(push_there(), Err(ErrorKind::UnknownSession)),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            eprintln!("skipped: a file of another user, which only root can make");
        }
    }
    fs::remove_file(&path).unwrap();
    // Not a file of one name.
    for (what, make) in MAKERS {
        make(&good, &path);
        assert_eq!(push_there(), Err(ErrorKind::UnknownSession), "{what}");
        // And a sweep neither hangs on it nor follows it.
        drop(folder.plane());
        assert!(
            good.exists() && fs::symlink_metadata(&path).is_ok(),
            "{what}"
        );
        if path.is_dir() {
            fs::remove_dir(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
    }
    assert!(landing.close().is_ok());
}

#[test]
fn a_plane_that_has_lost_its_files_does_not_push() {
    let folder = Folder::new();
    let (mut plane, mut peer) = (folder.plane(), folder.plane());
    let region = register(&mut plane, MIB);
    let theirs = register(&mut peer, MIB);
    let _landing = theirs.pool().allocate(MIB).unwrap().open();
    let session = peer.session_id().to_owned();
    assert_eq!(
        push(&mut plane, &region, (1, 8), &session, base(&session, 1)),
        Ok(8)
    );
    let half = &plane.session_id()["shm-1-".len()..][..16];
    fs::remove_file(folder.0.join(format!("tensorwire-1-plane-{half}"))).unwrap();
    let pushed = push(&mut plane, &region, (1, 8), &session, base(&session, 1));
    assert_eq!(pushed, Err(ErrorKind::Backend));
}
