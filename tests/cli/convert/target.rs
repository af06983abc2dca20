//! Where the new file goes: links stay links, and who may read it stays as it was.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{convert, converted, others, rich};
use crate::support::{folder, text, write_bundle};

#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let first = write_bundle(folder.path(), "first.bundle", &rich(&[]));
    converted(&first, &path("new.npz"));
    fs::write(path("usual"), "").unwrap();
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("new.npz"), mode("usual"));
    for permissions in [0o600, 0o640, 0o444, 0o666] {
        fs::write(path("old.npz"), "before").unwrap();
        fs::set_permissions(path("old.npz"), fs::Permissions::from_mode(permissions)).unwrap();
        converted(&first, &path("old.npz"));
        assert_eq!(mode("old.npz"), permissions);
        assert!(fs::read(path("old.npz")).unwrap() == fs::read(path("new.npz")).unwrap());
        fs::remove_file(path("old.npz")).unwrap();
    }
}

#[test]
fn a_link_leads_to_the_new_file_whether_there_was_one_or_not() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let first = write_bundle(folder.path(), "first.bundle", &rich(&[]));
    fs::create_dir(path("deep")).unwrap();
    symlink("deep/link.npz", path("link.npz")).unwrap();
    symlink("../real.npz", path("deep/link.npz")).unwrap();
    for before in [false, true] {
        assert_eq!(path("real.npz").exists(), before);
        converted(&first, &path("link.npz"));
        for link in ["link.npz", "deep/link.npz"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        assert!(
            fs::symlink_metadata(path("real.npz"))
                .unwrap()
                .file_type()
                .is_file()
        );
    }
    let known = ["deep", "first.bundle", "link.npz", "real.npz"];
    assert_eq!(others(&folder, &known), [""; 0]);
}

#[test]
fn the_name_of_a_file_writes_nothing_to_the_terminal() {
    let folder = folder();
    let first = write_bundle(folder.path(), "first.bundle", &rich(&[]));
    let done = convert(&first, &folder.path().join("a\u{1b}[2J\n\u{202e}.npz"));
    let stderr = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.ends_with("/a\\u{1b}[2J\\u{a}\\u{202e}.npz\n"),
        "{stderr}"
    );
}
