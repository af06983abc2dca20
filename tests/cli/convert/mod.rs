//! Files into other files: round trips, refusals, hostile files, and what is left behind.

mod hostile;
mod large;
mod python;
mod refusals;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tensorwire::message::encode_to_vec;
use tensorwire::{DType, TensorView};

use crate::common::{frames, lines};
use crate::processes::Folder;
use crate::support::{Process, folder, read_bundle, run, text, write_bundle};

fn convert(input: &Path, output: &Path) -> Output {
    run(["convert".as_ref(), input, output])
}

/// Converts what can be.
fn converted(input: &Path, output: &Path) {
    let done = convert(input, output);
    let stderr = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    assert!(stderr.starts_with("wrote "), "{stderr}");
    assert!(done.stdout.is_empty());
}

/// Converts what cannot be, and gives what was said.
fn refused(input: &Path, output: &Path, code: i32) -> String {
    let done = convert(input, output);
    let stderr = text(&done.stderr).to_owned();
    assert_eq!(done.status.code(), Some(code), "{input:?}: {stderr}");
    assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
    assert!(
        stderr.starts_with("error: ") && stderr.len() < 600,
        "{stderr}"
    );
    assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()));
    stderr
}

/// What lies in a folder besides these.
fn others(folder: &Folder, known: &[&str]) -> Vec<String> {
    let names = folder
        .names()
        .into_iter()
        .map(|name| name.into_string().unwrap());
    names
        .filter(|name| !known.contains(&name.as_str()))
        .collect()
}

/// A message of one tensor of each of these, members of a list, and scalars of every kind.
fn rich(dtypes: &[DType]) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    for (index, dtype) in dtypes.iter().enumerate() {
        bytes.push(vec![index as u8 % 2; dtype.size() * 3]);
    }
    let mut tensors: Vec<_> = dtypes
        .iter()
        .zip(&bytes)
        .map(|(dtype, bytes)| TensorView::from_bytes(dtype.name(), *dtype, &[3, 1], bytes).unwrap())
        .collect();
    let list = [1.5_f32, 2.5];
    for index in [3, 0] {
        tensors.push(
            TensorView::from_slice("sk\u{ef}p", &[2], &list)
                .unwrap()
                .with_list_index(index),
        );
    }
    tensors.push(TensorView::from_slice("layers.0", &[], &[7_i64]).unwrap());
    tensors.push(TensorView::from_slice::<u8>("../x\n\"", &[0, 5], &[]).unwrap());
    let scalars = br#"{"request_id":"r\u00e91","seed":123456789012345678901234567890,"cfg":{"scale":[7.5,NaN]},"none":null}"#;
    let scalars = tensorwire::json::Value::parse(scalars).unwrap();
    let metadata = encode_to_vec(&tensors, &scalars).unwrap();
    let mut frames = vec![metadata];
    frames.extend(tensors.iter().map(|tensor| tensor.bytes().to_vec()));
    frames
}

fn dtypes_but(missing: &[DType]) -> Vec<DType> {
    let all = DType::ALL.iter().copied();
    all.filter(|dtype| !missing.contains(dtype)).collect()
}

/// Those that numpy has not.
const NOT_NUMPYS: &[DType] = &[
    DType::BFloat16,
    DType::Float8E4M3Fn,
    DType::Float8E4M3Fnuz,
    DType::Float8E5M2,
    DType::Float8E5M2Fnuz,
    DType::Float8E8M0Fnu,
];

/// A file of each format that is well made.
fn well_made(folder: &Path) -> Vec<PathBuf> {
    let first = write_bundle(
        folder,
        "first.bundle",
        &rich(&[DType::Float32, DType::Bool]),
    );
    let mut files = vec![first.clone()];
    for name in ["first.npz", "first.safetensors"] {
        let path = folder.join(name);
        converted(&first, &path);
        files.push(path);
    }
    files
}

#[test]
fn a_bundle_comes_back_byte_for_byte_from_each_format() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    for (format, missing) in [
        ("safetensors", &[DType::Complex128][..]),
        ("npz", NOT_NUMPYS),
        ("bundle", &[]),
    ] {
        let first = write_bundle(folder.path(), "first.bundle", &rich(&dtypes_but(missing)));
        let middle = path(&format!("middle.{format}"));
        converted(&first, &middle);
        converted(&middle, &path("again.bundle"));
        assert!(
            fs::read(&first).unwrap() == fs::read(path("again.bundle")).unwrap(),
            "{format}"
        );
        let again = path(&format!("again.{format}"));
        converted(&path("again.bundle"), &again);
        assert!(
            fs::read(&middle).unwrap() == fs::read(&again).unwrap(),
            "{format}"
        );
    }
    let both = write_bundle(
        folder.path(),
        "both.bundle",
        &rich(&dtypes_but(&[NOT_NUMPYS, &[DType::Complex128]].concat())),
    );
    converted(&both, &path("a.npz"));
    converted(&path("a.npz"), &path("b.safetensors"));
    converted(&path("b.safetensors"), &path("c.npz"));
    converted(&path("c.npz"), &path("d.bundle"));
    assert!(fs::read(&both).unwrap() == fs::read(path("d.bundle")).unwrap());
}

#[test]
fn recorded_messages_come_back_or_are_refused_by_name() {
    let folder = folder();
    let (mut came_back, mut refusals) = (0, 0);
    for line in lines("tensors.jsonl").iter().step_by(9) {
        let first = write_bundle(folder.path(), "first.bundle", &frames(line));
        for format in ["npz", "safetensors"] {
            let middle = folder.path().join(format!("middle.{format}"));
            let done = convert(&first, &middle);
            if done.status.code() == Some(0) {
                let last = folder.path().join("last.bundle");
                converted(&middle, &last);
                assert!(
                    fs::read(&first).unwrap() == fs::read(&last).unwrap(),
                    "{}",
                    line["name"]
                );
                came_back += 1;
            } else {
                let stderr = text(&done.stderr);
                assert_eq!(done.status.code(), Some(1), "{stderr}");
                let reason = [
                    "numpy does not have",
                    ".safetensors does not have",
                    "scalar ",
                    "has a NUL",
                ];
                assert!(
                    reason.iter().any(|reason| stderr.contains(reason)),
                    "{stderr}"
                );
                refusals += 1;
            }
        }
    }
    assert!(came_back > 30, "{came_back}, {refusals} refused");
}

#[test]
fn the_format_is_the_extensions_unless_it_is_said() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let first = write_bundle(folder.path(), "noname", &rich(&[]));
    converted(&first, &path("OUT.NPZ"));
    assert!(
        fs::read(path("OUT.NPZ"))
            .unwrap()
            .starts_with(b"PK\x03\x04")
    );
    let said = refused(&path("OUT.NPZ"), &path("other"), 2);
    assert!(said.contains("--to"), "{said}");
    let arguments = |from: &str, to: &str, input: &str, output: &str| {
        [
            "convert",
            "--from",
            from,
            "--to",
            to,
            path(input).to_str().unwrap(),
            path(output).to_str().unwrap(),
        ]
        .map(str::to_owned)
    };
    assert_eq!(
        run(arguments("npz", "safetensors", "OUT.NPZ", "other"))
            .status
            .code(),
        Some(0)
    );
    let said = refused(&path("other"), &path("x.bundle"), 2);
    assert!(said.contains("--from"), "{said}");
    assert_eq!(
        run(arguments("safetensors", "bundle", "other", "last"))
            .status
            .code(),
        Some(0)
    );
    assert!(fs::read(&first).unwrap() == fs::read(path("last")).unwrap());
    assert!(refused(&first, &path("x.npy"), 2).contains("write .npz instead"));
    assert!(refused(&path("not there.npz"), &path("x.bundle"), 1).contains("not there.npz"));
    assert!(refused(&first, &path("no/folder.npz"), 1).contains("folder.npz"));
    // A file becomes another in its own place.
    fs::copy(&first, path("same.bundle")).unwrap();
    converted(&path("same.bundle"), &path("same.bundle"));
    assert!(fs::read(&first).unwrap() == fs::read(path("same.bundle")).unwrap());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path("same.bundle"), path("link.bundle")).unwrap();
        converted(&path("OUT.NPZ"), &path("link.bundle"));
        assert!(
            fs::symlink_metadata(path("link.bundle"))
                .unwrap()
                .is_symlink()
        );
        assert!(refused(&first, Path::new("/dev/null"), 2).contains("--to"));
        let device = run([
            "convert",
            "--to",
            "npz",
            first.to_str().unwrap(),
            "/dev/null",
        ]);
        assert!(text(&device.stderr).contains("is no file"));
    }
}

#[test]
fn files_of_tensors_are_sent_as_messages() {
    let folder = folder();
    let files = well_made(folder.path());
    let expected = read_bundle(&files[0]);
    let single = folder.path().join("la\u{e9}tents.npy");
    fs::write(&single, hostile::array("<f4", "(2, 1)", &[7; 8])).unwrap();
    let saved = folder.path().join("saved");
    let (receiver, endpoint) =
        Process::receiver("--count 4 --timeout 60 --save", &[saved.to_str().unwrap()]);
    let mut arguments = vec!["send".as_ref(), "--connect".as_ref(), Path::new(&endpoint)];
    arguments.extend(files.iter().map(PathBuf::as_path));
    arguments.push(&single);
    let sent = run(&arguments);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    assert_eq!(receiver.end().0, Some(0));
    let mut bundles: Vec<_> = fs::read_dir(&saved)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    bundles.sort();
    assert_eq!(bundles.len(), 4);
    for bundle in &bundles[..3] {
        assert!(read_bundle(bundle) == expected, "{bundle:?}");
    }
    let last = read_bundle(&bundles[3]);
    assert!(
        text(&last[0]).contains(r#""field_name":"la\u00e9tents","shape":[2,1],"dtype":"float32""#)
    );
    assert_eq!(last[1], [7; 8]);
    let damaged = folder.path().join("damaged.npz");
    fs::write(&damaged, "PK").unwrap();
    let refused = run([
        "send".as_ref(),
        "--connect".as_ref(),
        Path::new(&endpoint),
        &damaged,
    ]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
