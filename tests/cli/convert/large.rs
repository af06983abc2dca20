//! Long work: memory, the bar, and Ctrl-C.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use super::{converted, others, rich};
use crate::limited::{FULL_DISK, limited, limited_command};
use crate::processes::{signal, within};
use crate::support::{PATIENCE, Process, command, folder, text, write_bundle};
use crate::terminal::Terminal;

/// A file of one tensor of so many bytes, which take no room.
fn sparse(path: &Path, length: u64) {
    let text =
        format!(r#"{{"x":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}"#);
    let mut file = File::create(path).unwrap();
    file.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_len(8 + text.len() as u64 + length).unwrap();
}

#[test]
fn ctrl_c_leaves_what_was_there() {
    let folder = folder();
    let (input, target) = (
        folder.path().join("in.safetensors"),
        folder.path().join("out.npz"),
    );
    sparse(&input, 3 << 30);
    fs::write(&target, "before").unwrap();
    let known = ["in.safetensors", "out.npz"];
    // Who went on would come to a file that is too large, which is another end.
    let limit = format!("trap '' XFSZ && ulimit -f {}", 4 << 20);
    let arguments = ["convert".as_ref(), input.as_path(), target.as_path()];
    let command = limited_command(&limit, &arguments);
    let process = Process::spawn(command);
    let draft = || (!others(&folder, &known).is_empty()).then_some(());
    within(PATIENCE, "the draft", draft);
    signal("INT", process.id());
    let (code, stdout, stderr) = process.end();
    assert_eq!(code, Some(130), "{stderr:?}");
    assert!(stdout.is_empty() && stderr.len() == 1, "{stderr:?}");
    assert!(stderr[0].starts_with("interrupted: "), "{stderr:?}");
    assert_eq!(fs::read(&target).unwrap(), b"before");
    assert_eq!(others(&folder, &known), [""; 0]);
}

/// 192 MiB of address space, so that a map of a file would not pass either.
#[cfg(target_os = "linux")]
const LITTLE_MEMORY: &str = "ulimit -v 196608";

#[test]
#[cfg(target_os = "linux")]
fn a_large_tensor_is_never_in_memory_as_a_whole() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let length = 200 << 20;
    sparse(Path::new(&path("in.safetensors")), length);
    for (input, output) in [
        ("in.safetensors", "a.bundle"),
        ("a.bundle", "b.npz"),
        ("b.npz", "c.safetensors"),
    ] {
        let done = limited(LITTLE_MEMORY, &["convert", &path(input), &path(output)]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    }
    assert!(fs::metadata(path("c.safetensors")).unwrap().len() > length);
    // What has all of it in memory does not pass.
    assert!(
        !limited(LITTLE_MEMORY, &["inspect", "--bundle", &path("a.bundle")])
            .status
            .success()
    );
}

/// The table of so many frames would be 1.6 GB, and none of it takes room on the disk.
#[test]
#[cfg(target_os = "linux")]
fn the_table_of_a_sparse_bundle_is_not_read_for_its_length() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let length = 4_u64 << 30;
    let mut file = File::create(path("in.bundle")).unwrap();
    file.write_all(b"TWBUNDLE\x01\0\0\0").unwrap();
    file.write_all(&100_000_000_u32.to_le_bytes()).unwrap();
    file.write_all(&length.to_le_bytes()).unwrap();
    file.set_len(length).unwrap();
    let done = limited(
        LITTLE_MEMORY,
        &["convert", &path("in.bundle"), &path("out.npz")],
    );
    let stderr = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("bundle of 100000000 frames: more than 4096 descriptors"),
        "{stderr}"
    );
}

#[test]
fn a_long_conversion_shows_a_bar_on_a_terminal_and_nowhere_else() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    sparse(Path::new(&path("in.safetensors")), 100 << 20);
    let arguments = [
        "convert".to_owned(),
        path("in.safetensors"),
        path("out.bundle"),
    ];
    let (screen, code) = Terminal::start(100, command(&arguments), true).end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("100.00 MiB") && screen.contains(" left"),
        "{screen:?}"
    );
    // It is gone at the end.
    let last = screen.trim_end().rsplit(['\r', '\n']).next().unwrap();
    assert!(last.contains("wrote 1 tensor, 100.0 MiB to "), "{screen:?}");
    converted(
        Path::new(&path("in.safetensors")),
        Path::new(&path("again.bundle")),
    );
    let small = write_bundle(folder.path(), "small.bundle", &rich(&[]));
    let arguments = [
        "convert".to_owned(),
        small.display().to_string(),
        path("small.npz"),
    ];
    let (screen, _) = Terminal::start(100, command(&arguments), true).end();
    assert!(screen.starts_with("wrote "), "{screen:?}");
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    sparse(Path::new(&path("in.safetensors")), 4 << 20);
    for target in ["out.bundle", "out.npz", "out.safetensors"] {
        fs::write(path(target), "before").unwrap();
        let arguments = ["convert", &path("in.safetensors"), &path(target)];
        let done = limited(FULL_DISK, &arguments);
        let stderr = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.starts_with("error: cannot write ") && stderr.contains(target),
            "{stderr}"
        );
        assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
        assert_eq!(fs::read(path(target)).unwrap(), b"before");
        fs::remove_file(path(target)).unwrap();
        assert_eq!(others(&folder, &["in.safetensors"]), [""; 0]);
    }
}
