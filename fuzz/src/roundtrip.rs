//! Whatever decodes encodes, to bytes that decode to the same and encode to themselves.

use tensorwire::error::EncodeError;
use tensorwire::message::{Decoder, encode_into, encode_to_vec, encoded_len};
use tensorwire::{Descriptor, TensorView};

use super::case::{Case, Frame};
use super::check::Summary;
use super::naive;

pub fn run(data: &[u8]) {
    let Some(case) = Case::read(data) else {
        return;
    };
    let mut decoder = Decoder::with_options(case.options());
    let Ok(message) = decoder.decode(&case.frames) else {
        return;
    };
    let views: Vec<TensorView<'_>> = message.tensors().collect();
    let encoded = encode_to_vec(&views, &message.scalars()).unwrap();
    assert_eq!(encoded_len(&views, &message.scalars()), Ok(encoded.len()));
    let summary = Summary::of(&message);

    // The very bytes that Python writes; so a canonical frame is its own encoding.
    let (limits, strict) = (&case.limits, case.strict);
    let oracle = naive::decode(&case.frames, limits, strict, case.generation).unwrap();
    let expected = naive::encode(&oracle.tensors, oracle.scalars);
    assert_eq!(encoded, expected.as_bytes());

    // From the caller's own parts.
    let parts: Vec<_> = summary
        .tensors
        .iter()
        .map(|tensor| {
            let shape = tensor.shape.as_slice();
            let descriptor = Descriptor::new(&tensor.name, tensor.dtype, shape).unwrap();
            match tensor.list_index {
                Some(index) => descriptor.with_list_index(index),
                None => descriptor,
            }
        })
        .collect();
    assert_eq!(encode_to_vec(&parts, &message.scalars()).unwrap(), encoded);

    // A buffer too short by any length is left blank.
    for capacity in [0, encoded.len() / 2, encoded.len() - 1] {
        let mut buffer = vec![0xa5; capacity];
        let needed = encoded.len();
        let error = encode_into(&views, &message.scalars(), &mut buffer).unwrap_err();
        assert_eq!(error, EncodeError::BufferTooSmall { needed, capacity });
        assert!(buffer.iter().all(|&byte| byte == 0));
    }

    // Escapes make a frame longer, so the caps of the case may not hold now.
    let mut frames = vec![Frame::new(&encoded, 0)];
    frames.extend_from_slice(&case.frames[1..]);
    let mut decoder = Decoder::new();
    let again = decoder.decode(&frames).unwrap();
    assert_eq!(Summary::of(&again), summary);
    let views: Vec<TensorView<'_>> = again.tensors().collect();
    assert_eq!(encode_to_vec(&views, &again.scalars()).unwrap(), encoded);
}
