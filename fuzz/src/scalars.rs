//! Trees of scalars are read back as they were written.

use arbitrary::{Arbitrary, Unstructured};
use tensorwire::error::DecodeErrorKind;
use tensorwire::message::{Decoder, NO_TENSORS, encode_into, encode_to_vec, encoded_len};

use super::tree::{self, Tree};

/// The metadata object and `scalar_fields` are the first two levels.
const LEVELS_OUTSIDE: usize = 2;
const DEPTH_LIMIT: usize = 128;

pub fn run(data: &[u8]) {
    let Ok(members) = Vec::<(String, Tree)>::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    check(&members);
}

pub fn check(members: &[(String, Tree)]) {
    let places = tree::places(members);
    let scalars = tree::scalars(members, &mut places.as_slice());
    let frame = encode_to_vec(NO_TENSORS, scalars.as_slice()).unwrap();
    assert_eq!(encoded_len(NO_TENSORS, scalars.as_slice()), Ok(frame.len()));
    assert!(frame.iter().all(|byte| matches!(byte, 0x20..=0x7e)));
    let mut roomy = vec![0xa5; frame.len() + 7];
    let written = encode_into(NO_TENSORS, scalars.as_slice(), &mut roomy).unwrap();
    assert_eq!(written, frame);
    assert_eq!(roomy[frame.len()..], [0xa5; 7]);

    let mut decoder = Decoder::new();
    let frames = [frame.as_slice()];
    let result = decoder.decode(&frames);
    if LEVELS_OUTSIDE + tree::members_depth(members) > DEPTH_LIMIT {
        let limit = DEPTH_LIMIT;
        let kind = result.unwrap_err().kind();
        assert_eq!(kind, DecodeErrorKind::DepthLimit { limit });
        return;
    }
    let message = result.unwrap();
    tree::assert_members(members, message.scalars());
    assert_eq!(
        encode_to_vec(NO_TENSORS, &message.scalars()).unwrap(),
        frame
    );

    let result = serde_json::from_slice::<serde_json::Value>(&frame);
    if !tree::members_are_finite(members) {
        assert!(result.is_err());
    } else if LEVELS_OUTSIDE + tree::members_depth(members) < DEPTH_LIMIT {
        tree::assert_serde_members(members, &result.unwrap()["scalar_fields"]);
    }
}
