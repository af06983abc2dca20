//! Arbitrary frames decode or fail within bounds, and the same each time.

use tensorwire::Storage;
use tensorwire::error::{DecodeError, DecodeErrorKind};
use tensorwire::message::{Decoder, MessageKind, classify};

use super::case::{Case, Frame};
use super::check::{self, Summary};

/// A message to leave traces of in storage.
const TRACES: [&[u8]; 3] = [
    br#"{"tensor_descriptors":[{"field_name":"zz","shape":[2],"dtype":"uint8"},{"field_name":"\u0061","shape":[],"dtype":"bool","list_index":3}],"scalar_fields":{"a":1}}"#,
    &[1, 2],
    &[0],
];

pub fn run(data: &[u8]) {
    let Some(case) = Case::read(data) else {
        return;
    };
    let options = case.options();
    let mut fresh = Decoder::with_options(options);
    let result = fresh.decode(&case.frames);
    match &result {
        Ok(message) => {
            check::message(message);
            let text = str::from_utf8(case.frames[0].as_ref()).unwrap();
            let scalars = message.scalars().as_value();
            assert!(text.contains(scalars.raw()) || scalars.raw() == "{}");
            assert_eq!(classify(&case.frames), MessageKind::Tensors);
        }
        Err(error) => check::error(*error, &case.frames),
    }
    let expected = result.map(|message| Summary::of(&message));

    // Again, and where another message was before.
    for _ in 0..2 {
        assert_eq!(summary(&mut fresh, &case), expected);
    }
    let mut used = Decoder::with_options(options);
    let _ = used.decode(&TRACES);
    assert_eq!(summary(&mut used, &case), expected);

    // In two phases.
    if let Some((metadata, payloads)) = case.frames.split_first() {
        let message = used
            .decode_metadata(metadata.as_ref())
            .and_then(|metadata| metadata.attach(payloads));
        assert_eq!(message.map(|message| Summary::of(&message)), expected);
    }

    in_storage::<0>(&case, &expected);
    in_storage::<1>(&case, &expected);
    in_storage::<2>(&case, &expected);
    in_storage::<5>(&case, &expected);
}

fn summary(decoder: &mut Decoder, case: &Case) -> Result<Summary, DecodeError> {
    let message = decoder.decode(&case.frames)?;
    Ok(Summary::of(&message))
}

/// The same in the caller's storage, if it has room.
fn in_storage<const N: usize>(case: &Case, expected: &Result<Summary, DecodeError>) {
    let mut storage = Storage::<N>::new();
    let _ = case.options().decode(&TRACES, &mut storage);
    let result = case
        .options()
        .decode::<Frame, N>(&case.frames, &mut storage);
    let result = result.map(|message| Summary::of(&message));
    let full = DecodeErrorKind::StorageFull { capacity: N };
    match (&result, expected) {
        (Err(error), Ok(summary)) => {
            assert_eq!(error.kind(), full);
            assert!(summary.tensors.len() > N);
        }
        (Err(error), Err(_)) if error.kind() == full => check::error(*error, &case.frames),
        _ => {
            assert_eq!(&result, expected);
            assert!(result.is_err() || result.unwrap().tensors.len() <= N);
        }
    }
}
