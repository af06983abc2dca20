//! From the device over ZeroMQ to the device, without a copy on the way out.

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::device::{Device, Download};
use tensorwire::message::Message;
use tensorwire::transport::zmq::{Context, DEFAULT_COPY_BELOW};
use tensorwire::transport::{Frames, RecvFrames, SendFrames, Wait};
use tensorwire::{Decoder, Scalar};

use crate::common::{
    PATIENCE, SLOT_BYTES, assert_same, downloaded, encoded, in_use, open, upload_all, variety,
};
use crate::simulated;

const SCALARS: [(&str, Scalar<'static>); 3] = [
    ("seed", Scalar::Int(42)),
    ("strength", Scalar::Float(0.25)),
    ("last", Scalar::Bool(true)),
];

fn addresses<F: AsRef<[u8]>>(frames: &[F]) -> Vec<(*const u8, usize)> {
    let frames = frames.iter().map(AsRef::as_ref);
    frames.map(|frame| (frame.as_ptr(), frame.len())).collect()
}

fn assert_scalars<F: AsRef<[u8]>>(message: &Message<'_, '_, F>) {
    let scalars = message.scalars();
    assert_eq!(scalars.get("seed").unwrap().as_i64().unwrap(), 42);
    assert_eq!(scalars.get("strength").unwrap().as_f64().unwrap(), 0.25);
    assert!(scalars.get("last").unwrap().as_bool().unwrap());
}

#[test]
fn over_inproc_the_frame_received_is_the_slot_copied_to() {
    simulated::test(
        "wire::over_inproc_the_frame_received_is_the_slot_copied_to",
        || {
            let context = Context::new();
            let mut pull = context.pull().bind("inproc://download").unwrap();
            let mut push = context.push().connect(pull.endpoint()).unwrap();
            let (cuda, stream) = open(8, SLOT_BYTES);
            for seed in 0..4 {
                let given = variety(seed);
                let tensors = upload_all(&cuda, &stream, &given);
                let all: Vec<_> = tensors.iter().collect();
                let downloaded = downloaded(&cuda, &stream, &all);
                let slots: Vec<_> = downloaded
                    .tensors()
                    .map(|view| view.bytes().as_ptr())
                    .collect();
                let mut parts = downloaded.into_parts(&SCALARS).unwrap();
                let sent = addresses(&parts);
                for ((address, len), slot) in sent[1..].iter().zip(&slots) {
                    assert!(*len == 0 || address == slot);
                    assert!(
                        *len == 0 || !simulated::scripted() || {
                            // SAFETY: the parts are there.
                            let frame = unsafe { std::slice::from_raw_parts(*address, *len) };
                            simulated::is_pinned(frame)
                        }
                    );
                }
                push.send_parts(&mut parts, Wait::Configured).unwrap();
                assert!(parts.is_empty());

                let message = pull.recv().unwrap();
                let received = addresses(message.frames());
                assert_eq!(received.len(), sent.len());
                for (sent, received) in sent.iter().zip(&received) {
                    assert!(sent.1 < DEFAULT_COPY_BELOW || sent == received);
                }
                // The receiver reads the slots that the device wrote to.
                assert_eq!(in_use(&cuda), 3);
                let mut decoder = Decoder::new();
                let decoded = decoder.decode(message.frames()).unwrap();
                assert_same(decoded.tensors(), &given);
                assert_scalars(&decoded);
                let again = cuda.upload_message(&decoded, &stream, PATIENCE).unwrap();
                again
                    .iter()
                    .for_each(|tensor| tensor.wait(PATIENCE).unwrap());
                drop(message);
                assert_eq!(in_use(&cuda), 0, "let go by the receiver");
                let all: Vec<_> = again.iter().collect();
                assert_same(self::downloaded(&cuda, &stream, &all).tensors(), &given);
            }
        },
    );
}

#[test]
fn over_tcp_the_slots_are_free_when_libzmq_has_sent_them() {
    simulated::test(
        "wire::over_tcp_the_slots_are_free_when_libzmq_has_sent_them",
        || {
            let context = Context::new();
            let mut pull = context.pull().bind("tcp://127.0.0.1:*").unwrap();
            let mut push = context.push().connect(pull.endpoint()).unwrap();
            let (cuda, stream) = open(4, SLOT_BYTES);
            let mut decoder = Decoder::new();
            for seed in 0..20 {
                let given = variety(seed);
                let tensors = upload_all(&cuda, &stream, &given);
                let all: Vec<_> = tensors.iter().collect();
                // Waits for slots that libzmq still has: its thread gives them back.
                let download = cuda.download(&all, &stream, PATIENCE).unwrap();
                drop(all);
                drop(tensors);
                let mut parts = download
                    .finish(PATIENCE)
                    .unwrap()
                    .into_parts(&SCALARS)
                    .unwrap();
                push.send_parts(&mut parts, Wait::Configured).unwrap();
                let message = pull.recv().unwrap();
                let decoded = decoder.decode(message.frames()).unwrap();
                assert_same(decoded.tensors(), &given);
                assert_scalars(&decoded);
            }
            let end = Instant::now() + Duration::from_secs(60);
            while in_use(&cuda) > 0 {
                assert!(Instant::now() < end, "{:?}", cuda.statistics());
                thread::yield_now();
            }
        },
    );
}

#[test]
fn a_message_of_device_tensors_is_the_one_of_the_same_host_tensors() {
    const NAME: &str = "wire::a_message_of_device_tensors_is_the_one_of_the_same_host_tensors";
    simulated::test(NAME, || {
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given = variety(5);
        let tensors = upload_all(&cuda, &stream, &given);
        let all: Vec<_> = tensors.iter().collect();
        let downloaded = downloaded(&cuda, &stream, &all);
        let no_scalars = tensorwire::message::NO_SCALARS;
        let parts = downloaded.into_parts(&no_scalars).unwrap();
        let parts: Vec<_> = parts.iter().map(|part| part.as_ref().to_vec()).collect();
        assert!(parts == encoded(&given));
    });
}

#[test]
fn a_send_that_fails_gives_the_slots_back() {
    simulated::test("wire::a_send_that_fails_gives_the_slots_back", || {
        let context = Context::new();
        // Nobody is there to send to.
        let mut push = context.push().bind("inproc://nobody").unwrap();
        let (cuda, stream) = open(4, SLOT_BYTES);
        let given = variety(5);
        let tensors = upload_all(&cuda, &stream, &given);
        let downloaded = downloaded(&cuda, &stream, &tensors.iter().collect::<Vec<_>>());
        let mut parts = downloaded.into_parts(&SCALARS).unwrap();
        let before = addresses(&parts);
        push.send_parts(&mut parts, Wait::Never).unwrap_err();
        assert_eq!(addresses(&parts), before);
        assert_eq!(in_use(&cuda), 3);
        drop(parts);
        assert_eq!(in_use(&cuda), 0);
    });
}
