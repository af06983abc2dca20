//! Endpoints that are files: what is there already, and what stays.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;

use crate::processes::signal;
use crate::support::{
    PATIENCE, Process, TRANSPORTS, folder, printed, run, send_to, text, write_small,
};

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// What is said of an endpoint that cannot be bound.
fn refused(transport: &str, endpoint: &str) -> String {
    let arguments = format!("recv --transport {transport} --timeout 0 --bind");
    let output = run(arguments.split(' ').chain([endpoint]));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

#[test]
fn a_file_is_not_replaced_by_a_socket() {
    for transport in TRANSPORTS {
        let folder = folder();
        let file = folder.path().join("precious");
        fs::write(&file, "precious").unwrap();
        let link = folder.path().join("link");
        symlink("precious", &link).unwrap();
        for name in ["precious", "link"] {
            let says = refused(transport, &folder.ipc(name));
            assert!(says.contains("is there and is no socket"), "{says}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("precious"));
    }
}

/// Nor is it disturbed by whoever tried.
#[test]
fn a_process_that_listens_is_not_pushed_aside() {
    for transport in TRANSPORTS {
        let folder = folder();
        let small = write_small(folder.path());
        let endpoint = folder.ipc("socket");
        let receiver = Process::words(
            &format!("recv --json --transport {transport} --count 1 --timeout 60 --bind"),
            &[&endpoint],
        );
        receiver.bound();
        for _ in 0..3 {
            let says = refused(transport, &endpoint);
            assert!(says.contains("another process is there"), "{says}");
        }
        send_to(&endpoint, &["--transport", transport, &small]);
        assert_eq!(receiver.succeeded(transport).len(), 1, "{transport}");
    }
}

#[test]
fn the_socket_of_a_process_that_was_killed_is_replaced() {
    for transport in TRANSPORTS {
        let folder = folder();
        let endpoint = folder.ipc("socket");
        let line = format!("recv --transport {transport} --bind");
        let killed = Process::words(&line, &[&endpoint]);
        killed.bound();
        signal("KILL", killed.id());
        killed.end();
        assert!(is_socket(&folder.path().join("socket")), "{transport}");
        let next = Process::words(&line, &[&endpoint]);
        assert_eq!(next.bound(), endpoint);
        signal("INT", next.id());
        assert_eq!(next.end().0, Some(130));
    }
}

#[test]
fn nothing_is_left_of_a_socket_afterwards() {
    for transport in TRANSPORTS {
        let folder = folder();
        let endpoint = folder.ipc("socket");
        let line = format!("recv --transport {transport} --bind");
        for end in ["INT", "TERM"] {
            let receiver = Process::words(&line, &[&endpoint]);
            receiver.bound();
            signal(end, receiver.id());
            let (code, _, notes) = receiver.end();
            assert_eq!(code, Some(130), "{notes:?}");
            assert!(folder.names().is_empty(), "{transport}, {end}");
        }
        let arguments =
            format!("bench --json --transport {transport} --size 1 --duration 0 --endpoint");
        let bench = run(arguments.split(' ').chain([&*endpoint]));
        let report: serde_json::Value = serde_json::from_str(printed(&bench)).unwrap();
        assert_eq!(report["endpoint"], *endpoint);
        assert!(folder.names().is_empty(), "{transport}, bench");
    }
}

/// An endpoint that another process has taken meanwhile is left to that one.
#[test]
fn the_socket_of_another_process_is_not_removed() {
    let folder = folder();
    let path = folder.path().join("socket");
    let receiver = Process::words("recv --bind", &[&folder.ipc("socket")]);
    receiver.bound();
    let made = |path: &Path| fs::symlink_metadata(path).unwrap().modified().unwrap();
    let first = made(&path);
    // The clock of the file system goes by steps.
    let other = crate::processes::within(PATIENCE, "another time", || {
        fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        (made(&path) != first).then_some(other)
    });
    signal("INT", receiver.id());
    assert_eq!(receiver.end().0, Some(130));
    assert!(is_socket(&path));
    drop(other);
}

/// What `ipc://*` is bound to, which the library chose, is gone too.
#[test]
fn a_socket_of_a_chosen_name_is_removed() {
    let folder = folder();
    let mut command = crate::support::command(["recv", "--bind", "ipc://*"]);
    command.current_dir(folder.path()).env_remove("TMPDIR");
    let receiver = Process::spawn(command);
    let bound = receiver.bound();
    assert!(bound.starts_with("ipc://"), "{bound}");
    crate::processes::within(PATIENCE, "a socket", || folder.names().first().cloned());
    signal("INT", receiver.id());
    assert_eq!(receiver.end().0, Some(130));
    assert!(folder.names().is_empty());
}
