//! Files that are no files of tensors, and those that nearly are.

use std::fs;

use super::{convert, converted, others, refused, well_made};
use crate::common::{hostile, lines};
use crate::processes::Folder;
use crate::support::{folder, run, text};

#[test]
fn a_damaged_file_is_refused_and_leaves_nothing_behind() {
    let folder = folder();
    let files = well_made(folder.path());
    let known = ["first.bundle", "first.npz", "first.safetensors"];
    for file in &files {
        let whole = fs::read(file).unwrap();
        let damaged = file.with_file_name(format!(
            "damaged.{}",
            file.extension().unwrap().to_str().unwrap()
        ));
        let target = folder.path().join("out.npz");
        let mut codes = [0; 3];
        let step = (whole.len() / 40).max(1);
        for at in (0..whole.len()).step_by(step) {
            for changed in [whole[..at].to_vec(), {
                let mut bytes = whole.clone();
                bytes[at] ^= 0x55;
                bytes
            }] {
                fs::write(&damaged, changed).unwrap();
                let done = convert(&damaged, &target);
                let code = done.status.code().unwrap();
                codes[usize::try_from(code).unwrap()] += 1;
                if code == 0 {
                    fs::remove_file(&target).unwrap();
                } else {
                    assert_eq!(
                        text(&done.stderr).matches('\n').count(),
                        1,
                        "{}",
                        text(&done.stderr)
                    );
                }
            }
        }
        fs::remove_file(&damaged).unwrap();
        assert!(codes[2] > 30, "{file:?}: {codes:?}");
        assert_eq!(others(&folder, &known), [""; 0]);
    }
}

/// A zip archive of stored members, each of these bytes, with the size that it states.
fn archive(members: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, data, size) in members {
        let offset = bytes.len() as u32;
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let mut common = vec![20, 0, 0, 8, 0, 0, 0, 0, 0x21, 0];
        for number in [crc.sum(), *size, *size] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(*data);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (bytes.len() as u32, members.len() as u16);
    let length = directory.len() as u32;
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes().repeat(2));
    bytes.extend(length.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// The archive with another number in a field of its members, `at` bytes from the start of the
/// local header; in the directory it is two bytes further on.
fn with_field(archive: &[u8], at: usize, number: u16) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    for (magic, at) in [(b"PK\x03\x04", at), (b"PK\x01\x02", at + 2)] {
        let start = bytes.windows(4).position(|four| four == magic).unwrap() + at;
        bytes[start..start + 2].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

pub(super) fn array(description: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{description}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn a_hostile_file_gets_its_exit_code_and_one_line() {
    let member = array("|u1", "(2,)", &[1, 2]);
    let size = member.len() as u32;
    let huge = array("<f8", "(1152921504606846975,)", &[1, 2]);
    let lists = array("|S8", "()", br#"["a"]   "#);
    let longer = [&member[..], b"more"].concat();
    let fortran = |shape: &str| {
        let bytes = array("|u1", shape, &[]);
        let at = bytes.windows(5).position(|five| five == b"False").unwrap();
        [&bytes[..at], b"True ", &bytes[at + 5..]].concat()
    };
    let zip = |members: &[(&str, &[u8])]| {
        let members: Vec<_> = members
            .iter()
            .map(|(name, data)| (*name, *data, data.len() as u32))
            .collect();
        archive(&members)
    };
    // Well made, but for the checksum.
    let other_scalars = {
        let scalars = array("|S10", "()", br#"{"seed":1}"#);
        let mut bytes = zip(&[("tensorwire.scalar_fields.npy", &scalars)]);
        let at = bytes.windows(4).position(|four| four == b"\":1}").unwrap();
        bytes[at + 2] = b'2';
        bytes
    };
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let control = [
        b"__transfer__".to_vec(),
        br#"{"msg_type":"transfer_alloc"}"#.to_vec(),
    ];
    let cases: Vec<(&str, Vec<u8>, i32, &str)> = vec![
        ("x.npz", zip(&[("a.npy", &member)]), 0, ""),
        ("x.npz", zip(&[("../../etc/a.npy", &member)]), 0, ""),
        (
            "x.npz",
            zip(&[("a.npy", &member), ("a.npy", &member)]),
            2,
            "one name",
        ),
        ("x.npz", zip(&[("a\0b.npy", &member)]), 2, "NUL"),
        (
            "x.npz",
            zip(&[("a.txt", &member)]),
            1,
            "\"a.txt\" is no array",
        ),
        (
            "x.npz",
            zip(&[("a.npy", b"pickle")]),
            2,
            "ends in its header",
        ),
        ("x.npz", zip(&[("a.npy", &huge)]), 2, "and there are"),
        (
            "x.npz",
            zip(&[("a.npy", &array("|O", "()", b"x"))]),
            1,
            "Python objects",
        ),
        (
            "x.npz",
            zip(&[("a.npy", &array("|S3", "()", b"abc"))]),
            1,
            "texts",
        ),
        (
            "x.npz",
            zip(&[("tensorwire.lists.npy", &lists), ("a.npy", &member)]),
            2,
            "name of a list",
        ),
        (
            "x.npz",
            zip(&[("tensorwire.scalar_fields.npy", &lists)]),
            2,
            "BadEntry",
        ),
        (
            "x.npz",
            zip(&[("tensorwire.scalar_fields.npy", &member)]),
            2,
            "BadEntry",
        ),
        (
            "x.npz",
            archive(&[("a.npy", &member, size + 1)]),
            2,
            "share bytes",
        ),
        ("x.npz", archive(&[("a.npy", &member, u32::MAX - 1)]), 2, ""),
        (
            "x.npz",
            with_field(&zip(&[("a.npy", &longer)]), 22, member.len() as u16),
            2,
            "larger than its declared uncompressed size",
        ),
        ("x.npz", other_scalars, 2, "BadEntry"),
        // The end of an archive is all of one without members, whatever its name.
        ("x.zip", archive(&[]), 0, ""),
        (
            "x.npz",
            with_field(&zip(&[("a.npy", &member)]), 8, 12),
            1,
            "\"a\" is compressed by Bzip2, which is not read; in Python: numpy.savez_compressed",
        ),
        (
            "x.npz",
            with_field(&zip(&[("a.npy", &member)]), 6, 0x801),
            1,
            "encrypted",
        ),
        (
            "x.npy",
            array(&"q".repeat(60_000), "(2,)", &[1, 2]),
            1,
            "...\" (60000 bytes)) is of a dtype that tensors do not have",
        ),
        ("x.npz", b"PK\x03\x04".to_vec(), 2, "npz"),
        ("x.npz", Vec::new(), 2, "npz"),
        ("x.npy", member.clone(), 0, ""),
        ("x.npy", huge, 2, "and there are"),
        ("x.npy", fortran("(2, 0, 3)"), 0, ""),
        ("x.npy", fortran("(2, 3)"), 1, "Fortran's order"),
        ("x.npy", [&member[..], b"more"].concat(), 2, "and there are"),
        (
            "x.npy",
            array("|u1", "(18446744073709551615, 2)", b""),
            2,
            "more bytes than memory",
        ),
        ("x.npy", Vec::new(), 2, "ends in its header"),
        ("x.safetensors", header("{}"), 0, ""),
        (
            "x.safetensors",
            u64::MAX.to_le_bytes().to_vec(),
            2,
            "HeaderLimit",
        ),
        (
            "x.safetensors",
            header(
                r#"{"a":{"dtype":"F64","shape":[1152921504606846975],"data_offsets":[0,9223372036854775800]}}"#,
            ),
            2,
            "Truncated",
        ),
        (
            "x.safetensors",
            header(r#"{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}"#),
            2,
            "smaller than a byte",
        ),
        ("x.safetensors", Vec::new(), 2, "Truncated"),
        ("x.bundle", b"TWBUNDLX".repeat(4), 2, "BadMagic"),
        ("x.bundle", Vec::new(), 2, "Truncated"),
        (
            "x.bundle",
            tensorwire::bundle::encode_to_vec(&control).unwrap(),
            1,
            "control message",
        ),
    ];
    let folder = folder();
    for (name, bytes, code, said) in cases {
        let input = folder.path().join(name);
        fs::write(&input, &bytes).unwrap();
        let target = folder.path().join("out.safetensors");
        if code == 0 {
            converted(&input, &target);
            fs::remove_file(&target).unwrap();
        } else {
            let stderr = refused(&input, &target, code);
            assert!(stderr.contains(said), "{name}: {stderr} lacks {said}");
        }
        fs::remove_file(&input).unwrap();
        assert_eq!(others(&folder, &[]), [""; 0], "{said}");
    }
}

/// What `inspect` says of a bundle, `convert` says as well, which reads it piece by piece.
fn same_verdict(folder: &Folder, bundle: &[u8], what: &str) -> i32 {
    let (input, target) = (
        folder.path().join("x.bundle"),
        folder.path().join("out.npz"),
    );
    fs::write(&input, bundle).unwrap();
    let inspected = run(["inspect".as_ref(), "--bundle".as_ref(), input.as_path()]);
    let converted = convert(&input, &target);
    let code = inspected.status.code().unwrap();
    // It says of which file, too.
    let named = format!("{}: ", input.display());
    let said = &text(&converted.stderr).replacen(&named, "", 1);
    if code == 0 {
        // What is well made may be no more than numpy has.
        assert!(converted.status.code() < Some(2), "{what}: {said}");
    } else {
        assert_eq!(converted.status.code(), Some(code), "{what}: {said}");
        // Of the length of a frame it says the place in the file.
        let same = |text: &str| match text.split_once(": frame of ") {
            Some((_, numbers)) => numbers.split(" at byte ").next().map(str::to_owned),
            None => Some(text.to_owned()),
        };
        assert_eq!(same(said), same(text(&inspected.stderr)), "{what}");
    }
    code
}

#[test]
fn every_hostile_message_has_the_same_verdict_as_for_inspect() {
    let folder = folder();
    let mut codes = [0; 3];
    for case in lines("hostile.jsonl") {
        let frames = hostile::message(&case);
        // A control message, which convert does not look into.
        if case["id"] == "E49" {
            continue;
        }
        // A bundle has a frame.
        let Ok(bundle) = tensorwire::bundle::encode_to_vec(&frames) else {
            continue;
        };
        let code = same_verdict(&folder, &bundle, case["id"].as_str().unwrap());
        codes[usize::try_from(code).unwrap()] += 1;
    }
    assert!(codes[0] > 20 && codes[1] == 0 && codes[2] > 60, "{codes:?}");
}

#[test]
fn every_byte_of_a_bundle_counts_as_for_inspect() {
    let folder = folder();
    let metadata = br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"int8"}]}"#;
    let frames: [&[u8]; 2] = [metadata, &[1, 2]];
    let whole = tensorwire::bundle::encode_to_vec(&frames).unwrap();
    let mut codes = [0; 3];
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        for bundle in [&whole[..at], &changed] {
            let code = same_verdict(&folder, bundle, &format!("byte {at}"));
            codes[usize::try_from(code).unwrap()] += 1;
        }
    }
    assert!(codes[0] > 0 && codes[1] == 0 && codes[2] > 300, "{codes:?}");
}

#[test]
fn a_member_that_does_not_match_its_checksum_leaves_what_was_there() {
    let folder = folder();
    let member = array("|u1", "(4000000,)", &vec![7; 4_000_000]);
    let size = member.len() as u32;
    let mut bytes = archive(&[("a.npy", &member, size), ("b.npy", &member, size)]);
    // In the bytes of `b`, after `a` has been written.
    let at = member.len() + 100_000;
    bytes[at] ^= 1;
    let input = folder.path().join("in.npz");
    fs::write(&input, bytes).unwrap();
    let target = folder.path().join("out.bundle");
    fs::write(&target, "before").unwrap();
    let said = refused(&input, &target, 2);
    assert!(
        said.contains("tensor \"b\"") && said.contains("damaged"),
        "{said}"
    );
    assert_eq!(fs::read(&target).unwrap(), b"before");
    assert_eq!(others(&folder, &["in.npz", "out.bundle"]), [""; 0]);
}
