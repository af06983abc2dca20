//! What `reencode` leaves in its folder: the frames of one message, whole and in order.

use std::fs;
use std::path::Path;
use std::process::Output;

use tensorwire::TensorView;
use tensorwire::message::{NO_SCALARS, encode_to_vec};

#[cfg(unix)]
use crate::limited::{FULL_DISK, limited};
use crate::support::{folder, printed, run, text, write_bundle};

/// A message of so many tensors of one byte.
fn message(tensors: usize) -> Vec<Vec<u8>> {
    let bytes: Vec<_> = (0..tensors).map(|index| vec![index as u8]).collect();
    let names: Vec<_> = (0..tensors).map(|index| format!("t{index}")).collect();
    let views: Vec<_> = names
        .iter()
        .zip(&bytes)
        .map(|(name, bytes)| TensorView::from_slice(name.as_str(), &[1], bytes).unwrap())
        .collect();
    let mut frames = vec![encode_to_vec(&views, &NO_SCALARS).unwrap()];
    frames.extend(bytes);
    frames
}

fn arguments<'a>(bundle: &'a Path, out: &'a Path) -> [&'a Path; 5] {
    [
        "reencode".as_ref(),
        "--bundle".as_ref(),
        bundle,
        "--out".as_ref(),
        out,
    ]
}

fn reencode(bundle: &Path, out: &Path) -> Output {
    run(arguments(bundle, out))
}

fn names(out: &Path) -> Vec<String> {
    let entries = fs::read_dir(out).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn frames_of_any_number_come_in_the_order_of_their_names() {
    for (tensors, first, last) in [
        (0, "frame000.bin", "frame000.bin"),
        (999, "frame000.bin", "frame999.bin"),
        (1000, "frame0000.bin", "frame1000.bin"),
    ] {
        let folder = folder();
        let frames = message(tensors);
        let bundle = write_bundle(folder.path(), "m.bundle", &frames);
        let out = folder.path().join("out");
        assert_eq!(printed(&reencode(&bundle, &out)), "");
        let names = names(&out);
        assert_eq!(
            (names.len(), names[0].as_str(), names[tensors].as_str()),
            (frames.len(), first, last)
        );
        for (name, frame) in names.iter().zip(&frames) {
            assert!(fs::read(out.join(name)).unwrap() == *frame, "{name}");
        }
        // The same message once more is no other.
        assert_eq!(printed(&reencode(&bundle, &out)), "");
    }
}

#[test]
fn a_frame_of_another_message_is_found_whatever_its_number() {
    let folder = folder();
    let bundle = write_bundle(folder.path(), "m.bundle", &message(1));
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    for (left, refused) in [
        ("frame002.bin", true),
        ("frame007.bin", true),
        ("frame1000.bin", true),
        ("frame0001.bin", true),
        ("frame.bin", false),
        ("frame01.bin", false),
        ("frame00x.bin", false),
        ("frame007.bin.bak", false),
    ] {
        fs::write(out.join(left), "old").unwrap();
        let done = reencode(&bundle, &out);
        let stderr = text(&done.stderr);
        if refused {
            assert_eq!(done.status.code(), Some(1), "{left}");
            assert!(
                stderr.contains(&format!("{left} is of another message: remove it")),
                "{stderr}"
            );
            assert_eq!(names(&out), [left]);
        } else {
            assert_eq!(printed(&done), "", "{left}");
            assert_eq!(names(&out).len(), 3, "{left}");
            for name in ["frame000.bin", "frame001.bin"] {
                fs::remove_file(out.join(name)).unwrap();
            }
        }
        assert_eq!(fs::read(out.join(left)).unwrap(), b"old");
        fs::remove_file(out.join(left)).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_the_frames_that_were_there() {
    let folder = folder();
    let mut frames = message(1);
    frames[0] =
        br#"{"tensor_descriptors":[{"field_name":"x","shape":[1000000],"dtype":"int8"}]}"#.to_vec();
    frames[1] = vec![1; 1_000_000];
    let bundle = write_bundle(folder.path(), "m.bundle", &frames);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    for name in ["frame000.bin", "frame001.bin"] {
        fs::write(out.join(name), "before").unwrap();
    }
    let done = limited(FULL_DISK, &arguments(&bundle, &out));
    let stderr = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: cannot write ") && stderr.contains("frame001.bin"),
        "{stderr}"
    );
    assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
    assert_eq!(names(&out), ["frame000.bin", "frame001.bin"]);
    for name in names(&out) {
        assert_eq!(fs::read(out.join(name)).unwrap(), b"before");
    }
}
