//! Bundles in files: written piece by piece, mapped and read in place.

#![cfg(feature = "std")]

use std::io::{self, Write};

use tensorwire::bundle::{Error, ErrorKind, write_to};

use crate::bundle_of;

#[test]
fn a_writer_gets_the_bytes_of_the_buffer() {
    for count in [1, 2, 64, 65, 200] {
        let frames: Vec<_> = (0..count).map(|length| vec![9; length]).collect();
        let mut written = Vec::new();
        let length = write_to(&frames, &mut written).unwrap();
        assert_eq!(usize::try_from(length), Ok(written.len()));
        assert!(written == bundle_of(&frames));
    }
}

#[test]
fn what_is_no_bundle_is_not_begun() {
    let none: [&[u8]; 0] = [];
    let mut written = Vec::new();
    let error = write_to(&none, &mut written).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let inner = error.get_ref().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(inner.kind(), ErrorKind::NoFrames);
    assert!(written.is_empty());
}

#[test]
fn a_full_disk_is_the_writers_error() {
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    for room in 0..135 {
        let error = write_to(&["metadata", "payload"], Full(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    assert_eq!(write_to(&["metadata", "payload"], Full(135)).unwrap(), 135);
}

#[cfg(feature = "memmap2")]
mod mapped {
    use std::fs::{self, File};
    use std::path::PathBuf;

    use tensorwire::bundle::{ALIGNMENT, ErrorKind, Mapped, MappedError, write_to};
    use tensorwire::{Message, Storage};

    use crate::{bundle_of, golden, recorded, sample};

    /// A file of the test's own, gone at its end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let name = format!("tensorwire-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_mapped_message_decodes_where_it_lies() {
        let frames = recorded("mixed");
        let file = Temporary::new("mixed", b"");
        write_to(&frames, File::create(&file.0).unwrap()).unwrap();
        assert!(fs::read(&file.0).unwrap() == golden("mixed"));

        // SAFETY: the file is this test's own, which writes to it no more.
        let mapped = unsafe { Mapped::open(&file.0) }.unwrap();
        let bundle = mapped.bundle();
        assert!(bundle.frames().eq(&frames));
        for frame in bundle.frames() {
            assert_eq!(frame.as_ptr().addr() % ALIGNMENT, 0);
        }
        let mut room = [&[][..]; 8];
        let mut storage = Storage::<8>::new();
        let read = bundle.frames_in(&mut room).unwrap();
        let message = Message::decode(read, &mut storage).unwrap();
        // Aligned, so it casts: read in the file itself.
        let floats = message.tensor("a").unwrap().as_slice::<f32>().unwrap();
        let map = bundle.bytes().as_ptr_range();
        assert!(map.contains(&floats.as_ptr().cast()));
        assert_eq!(floats.len(), 4);
        let text = format!("{mapped:?}");
        assert_eq!(text, "Mapped { len: 4, total_len: 583 }");
    }

    #[test]
    fn a_map_outlives_the_handle_and_the_name_of_its_file() {
        let frames = [vec![1; 10], vec![2; 100_000]];
        let file = Temporary::new("handle", &bundle_of(&frames));
        let handle = File::open(&file.0).unwrap();
        // SAFETY: the file is this test's own, which writes to it no more.
        let mapped = unsafe { Mapped::from_file(&handle) }.unwrap();
        drop(handle);
        drop(file);
        assert!(mapped.bundle().frames().eq(&frames));
    }

    #[test]
    fn a_file_that_is_no_bundle_is_refused() {
        let mut trailing = sample();
        trailing.push(0);
        let cases: &[(&str, &[u8], ErrorKind)] = &[
            (
                "empty",
                b"",
                ErrorKind::Truncated {
                    expected: 24,
                    actual: 0,
                },
            ),
            (
                "short",
                &sample()[..200],
                ErrorKind::Truncated {
                    expected: 262,
                    actual: 200,
                },
            ),
            (
                "text",
                b"not a bundle, but long enough for one",
                ErrorKind::BadMagic,
            ),
            (
                "trailing",
                &trailing,
                ErrorKind::TrailingBytes {
                    expected: 262,
                    actual: 263,
                },
            ),
        ];
        for (name, bytes, kind) in cases {
            let file = Temporary::new(name, bytes);
            // SAFETY: the file is this test's own, which writes to it no more.
            let error = unsafe { Mapped::open(&file.0) }.unwrap_err();
            let MappedError::Bundle(inner) = error else {
                panic!("{name}: {error}");
            };
            assert_eq!(inner.kind(), *kind, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_the_systems_error() {
        let path = std::env::temp_dir().join("tensorwire-no-such-file");
        // SAFETY: there is no file.
        let error = unsafe { Mapped::open(path) }.unwrap_err();
        assert!(
            matches!(error, MappedError::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
        );
    }
}
