//! From the host's memory into frames, and through transports.

use tensorwire::device::host::{Host, Stream};
use tensorwire::device::{Device, DeviceTensor, Download};
use tensorwire::json::Value;
use tensorwire::message::{Decoder, NO_SCALARS};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait, loopback};

use crate::common::{frames, lines};
use crate::{address, assert_same, downloaded, frames_of_bytes, uploaded};

#[test]
fn a_download_lends_the_tensors_memory() {
    let frames = frames_of_bytes(&[5, 0, 300_000]);
    let tensors = uploaded(&Host::new(), &frames);
    let lie: Vec<_> = tensors
        .iter()
        .map(|tensor| address(tensor.bytes()))
        .collect();
    let downloaded = downloaded(&tensors);
    assert!(
        downloaded
            .tensors()
            .map(|view| address(view.bytes()))
            .eq(lie.iter().copied())
    );
    // The frames outlive the tensors.
    drop(tensors);
    let parts = downloaded.into_parts(&NO_SCALARS).unwrap();
    assert_eq!(parts.len(), 4);
    for (index, part) in parts.iter().enumerate() {
        assert!(part.as_ref() == frames[index], "{index}");
        assert!(index == 0 || address(part.as_ref()) == lie[index - 1]);
    }
}

#[test]
fn a_download_is_in_the_order_asked_for() {
    let frames = frames_of_bytes(&[1, 2, 3]);
    let tensors = uploaded(&Host::new(), &frames);
    let asked = [2, 0, 2].map(|index| tensors.get(index).unwrap());
    let download = Host::new().download(&asked, &Stream, Wait::Never).unwrap();
    let frames = download.finish(Wait::Never).unwrap().into_frames();
    for ((info, frame), tensor) in frames.iter().zip(asked) {
        assert!(info.name() == tensor.info().name());
        assert_eq!(frame.as_ref(), tensor.bytes());
    }
    assert_eq!(frames.len(), 3);
}

#[test]
fn recorded_messages_come_out_as_they_went_in() {
    let (mut lists, mut holes, mut escaped, mut empty) = (0, 0, 0, 0);
    for line in lines("tensors.jsonl") {
        let name = line["name"].as_str().unwrap();
        let frames = frames(&line);
        let tensors = uploaded(&Host::new(), &frames);
        assert_same(&tensors, &frames);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let parts = downloaded(&tensors).into_parts(&message.scalars()).unwrap();
        assert_eq!(parts.len(), frames.len(), "{name}");
        for (part, frame) in parts.iter().zip(&frames) {
            assert!(part.as_ref() == frame, "{name}");
        }
        for view in message.tensors() {
            lists += usize::from(view.list_index().is_some());
            let hole =
                |list: tensorwire::message::TensorList<'_, '_, _>| list.present_len() < list.len();
            let list = view.name().to_cow().unwrap();
            holes += usize::from(message.list(&list).is_some_and(hole));
            escaped += usize::from(view.name().as_plain().is_none());
            empty += usize::from(view.byte_len() == 0);
        }
    }
    // The recordings have all that.
    assert!(lists > 0 && holes > 0 && escaped > 0 && empty > 0);
}

#[test]
fn lists_with_holes_and_escaped_names_keep_their_metadata() {
    let frames: [&[u8]; 5] = [
        br#"{"tensor_descriptors":[{"field_name":"caf\u00e9 \ud83d\ude00","shape":[1,2],"dtype":"uint8","list_index":2},{"field_name":"\"\\\n\u007f","shape":[],"dtype":"bool","list_index":-1},{"field_name":"caf\u00e9 \ud83d\ude00","shape":[0],"dtype":"complex128","list_index":0},{"field_name":"","shape":[4],"dtype":"float8_e8m0fnu","list_index":4096}],"scalar_fields":{"x":NaN,"\u00e9":[1e+16,-0.0]}}"#,
        &[1, 2],
        &[1],
        &[],
        &[9, 8, 7, 6],
    ];
    let tensors = uploaded(&Host::new(), &frames);
    assert_same(&tensors, &frames);
    let list = tensors.list("café 😀");
    assert!(list.map(|(index, _)| index).eq([2, 0]));
    let mut decoder = Decoder::new();
    let scalars = decoder.decode(&frames).unwrap().scalars();
    let parts = downloaded(&tensors).into_parts(&scalars).unwrap();
    for (part, frame) in parts.iter().zip(frames) {
        assert_eq!(part.as_ref(), frame);
    }
}

#[test]
fn tensors_of_one_name_make_no_message() {
    let frames = frames_of_bytes(&[1]);
    let tensors = uploaded(&Host::new(), &frames);
    let twice = [0, 0].map(|index| tensors.get(index).unwrap());
    let download = Host::new().download(&twice, &Stream, Wait::Never).unwrap();
    let downloaded = download.finish(Wait::Never).unwrap();
    assert!(downloaded.into_parts(&NO_SCALARS).is_err());
}

/// Sends what was uploaded to `receiver` and back to the host's memory; returns where the frames
/// lay that were received.
fn there_and_back<S: SendFrames, R: RecvFrames>(
    sender: &mut S,
    receiver: &mut R,
    lens: &[usize],
) -> (Vec<usize>, Vec<usize>) {
    let frames = frames_of_bytes(lens);
    let tensors = uploaded(&Host::new(), &frames);
    let sent = tensors.iter().map(|tensor| address(tensor.bytes()));
    let sent = sent.collect();
    let scalars = Value::parse(b"{}").unwrap();
    let mut parts = downloaded(&tensors).into_parts(&scalars).unwrap();
    sender.send_parts(&mut parts, Wait::Configured).unwrap();
    assert!(parts.is_empty());
    drop(tensors);

    let message = receiver.recv().unwrap();
    let received = message.frames()[1..].iter();
    let received = received.map(|frame| address(frame.as_ref())).collect();
    let again = uploaded(&Host::new(), message.frames());
    drop(message);
    assert_same(&again, &frames);
    (sent, received)
}

#[test]
fn over_loopback_the_frames_received_are_the_tensors_sent() {
    let (mut sender, mut receiver) = loopback::pair();
    let (sent, received) = there_and_back(&mut sender, &mut receiver, &[5, 3000, 400_000]);
    assert_eq!(sent, received);
}

#[cfg(feature = "zmq")]
#[test]
fn over_zmq_the_frames_received_are_the_tensors_sent() {
    use tensorwire::transport::zmq::Context;

    let context = Context::new();
    let mut pull = context.pull().bind("inproc://tensors").unwrap();
    let mut push = context.push().connect(pull.endpoint()).unwrap();
    let (sent, received) = there_and_back(&mut push, &mut pull, &[5000, 300_000, 1024]);
    assert_eq!(sent, received);

    // To another process they are copied by the system; what arrives is the same.
    let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
    let mut push = context.push().connect(pull.endpoint()).unwrap();
    there_and_back(&mut push, &mut pull, &[0, 5, 40, 5000, 3_000_000]);
}
