//! Views of other crates, where more than one of them is at work: with Python, over a transport, and each into the other.

#![cfg(feature = "std")]

use tensorwire::interop::SharedFrame;
use tensorwire::transport::{Frames, loopback};
#[cfg(feature = "bytes")]
use tensorwire::transport::{RecvFrames, SendFrames};

/// As generic code would: this has to compile, with every transport that there is.
#[test]
fn messages_of_every_transport_are_taken_apart() {
    fn split<M: Frames + Send + 'static>() {
        assert!(SharedFrame::split(M::default()).is_empty());
    }
    split::<loopback::Message>();
    #[cfg(feature = "iceoryx2")]
    split::<tensorwire::transport::iceoryx2::Message>();
    #[cfg(feature = "nng")]
    split::<tensorwire::transport::nng::Message>();
    #[cfg(feature = "zmq")]
    split::<tensorwire::transport::zmq::Message>();
}

/// A message of frames that lie in the message itself, in what was read at once, and alone.
#[cfg(feature = "bytes")]
fn frames_outlive_everything<S: SendFrames, R: RecvFrames>(mut sender: S, mut receiver: R)
where
    R::Message: Send + 'static,
{
    use tensorwire::interop::bytes;

    let sent: [&[u8]; 5] = [b"metadata", &[1; 32], b"", &[2; 5000], &[3; 1 << 18]];
    sender.send(&sent).unwrap();
    let message = receiver.recv().unwrap();
    // The small ones may lie in the message itself, and go along with it.
    let large = |frame: &[u8]| (frame.len() > 32).then_some(frame.as_ptr());
    let before: Vec<_> = message.frames().iter().map(|f| large(f.as_ref())).collect();
    let mut frames = bytes::frames(message);
    let after: Vec<_> = frames.iter().map(|frame| large(frame)).collect();
    assert_eq!(after, before);
    // What comes after it takes none of its place.
    sender.send(&[&[7; 1 << 18][..]; 5]).unwrap();
    let other = receiver.recv().unwrap();
    drop((sender, receiver));
    assert_eq!(other.frames()[4].as_ref(), [7; 1 << 18]);
    drop(other);
    let frames = std::thread::spawn(move || {
        assert_eq!(frames, sent);
        let last = frames.pop().unwrap();
        drop(frames);
        let (head, tail) = (last.slice(..9), last.slice((1 << 18) - 9..));
        drop(last);
        [head, tail]
    });
    assert_eq!(frames.join().unwrap(), [&[3; 9][..]; 2]);
}

#[test]
#[cfg(feature = "bytes")]
fn frames_as_bytes_outlive_what_they_were_received_with() {
    let (sender, receiver) = loopback::pair();
    frames_outlive_everything(sender, receiver);
    #[cfg(feature = "zmq")]
    for endpoint in ["inproc://outlive", "tcp://127.0.0.1:*"] {
        let context = tensorwire::transport::zmq::Context::new();
        let receiver = context.pull().bind(endpoint).unwrap();
        let sender = context.push().connect(receiver.endpoint()).unwrap();
        drop(context);
        frames_outlive_everything(sender, receiver);
    }
    #[cfg(feature = "nng")]
    for endpoint in ["inproc://outlive", "tcp://127.0.0.1:0"] {
        let context = tensorwire::transport::nng::Context::new();
        let receiver = context.pull().listen(endpoint).unwrap();
        let sender = context.push().dial(receiver.endpoint()).unwrap();
        drop(context);
        frames_outlive_everything(sender, receiver);
    }
    #[cfg(feature = "iceoryx2")]
    {
        let name = format!("tensorwire-outlive-{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        let channel = tensorwire::transport::iceoryx2::Builder::new(&name).directory(&directory);
        let sender = channel.clone().sender().unwrap();
        frames_outlive_everything(sender, channel.receiver().unwrap());
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// numpy and torch compare the addresses themselves; see the example's `demo.py`.
#[test]
#[cfg(feature = "dlpack")]
fn numpy_and_torch_read_and_send_tensors_without_a_copy() {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let Some(python) = std::env::var_os("TENSORWIRE_PYTHON") else {
        // Not `eprintln!`, which the harness captures.
        let reason = "TENSORWIRE_PYTHON is not set, see tests/interop/setup.sh";
        writeln!(std::io::stderr(), "SKIP: DLPack with Python: {reason}").unwrap();
        return;
    };
    let mut library = std::env::current_exe().unwrap();
    library.pop();
    library.pop();
    let library = library
        .join("examples")
        .join(format!("{DLL_PREFIX}dlpack{DLL_SUFFIX}"));
    assert!(
        library.exists(),
        "first: cargo build --all-features --example dlpack"
    );
    let output = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/dlpack/demo.py"
        ))
        .arg(library)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (shown, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{shown}{errors}");
    for line in [
        "capsules: given back, taken or not\n",
        "numpy: no copy in, no copy out\n",
        "torch: no copy in, no copy out\n",
    ] {
        assert!(shown.contains(line), "{shown}{errors}");
    }
    let refused = "send: stride 12 of dimension 2 where a contiguous tensor has 1\n";
    assert_eq!(errors, refused.repeat(2));
}

/// A message that arrives at each address modulo 16, seen by every crate.
#[test]
#[cfg(all(feature = "bytes", feature = "dlpack", feature = "ndarray"))]
fn every_view_shows_the_elements_in_place_where_it_can_at_any_address() {
    use tensorwire::interop::{bytes, dlpack, ndarray};
    use tensorwire::message::{NO_SCALARS, encode_to_vec, frames};
    use tensorwire::transport::{RecvFrames, SendFrames};
    use tensorwire::{Decoder, TensorView};

    let elements: Vec<f32> = (0..600_u16).map(f32::from).collect();
    let x = TensorView::from_slice("x", &[3, 200], &elements).unwrap();
    let metadata = encode_to_vec([x], &NO_SCALARS).unwrap();
    for shift in 0..16 {
        let (mut sender, mut receiver) = loopback::Options::new().with_shift(shift).pair();
        sender.send(&frames(&metadata, &[x])).unwrap();
        let received = bytes::frames(receiver.recv().unwrap());
        let address = received[1].as_ptr();
        assert_eq!(address.addr() % 16, shift);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&received).unwrap();
        let x = message.tensor("x").unwrap();
        let aligned = shift % 4 == 0;

        let array = ndarray::view_or_copy::<f32>(&x).unwrap();
        assert_eq!(array.is_view(), aligned);
        assert_eq!(array.as_ptr().cast() == address, aligned);
        assert_eq!(array.as_slice(), Some(&elements[..]));

        #[cfg(feature = "candle")]
        {
            use tensorwire::interop::candle::to_tensor;

            let there = to_tensor(&x, &candle_core::Device::Cpu).unwrap();
            assert_eq!(there.dims(), [3, 200]);
            let there = there.flatten_all().unwrap().to_vec1::<f32>();
            assert_eq!(there.unwrap(), elements);
        }

        let export = match dlpack::Export::new(&x.descriptor(), received[1].clone()) {
            Ok(export) => export,
            Err((frame, error)) => {
                assert!(!aligned, "{error}");
                assert_eq!(frame.as_ref().as_ptr(), address);
                dlpack::Export::copy(&x).unwrap()
            }
        };
        let pointer = export.into_raw_versioned();
        drop(received);
        // SAFETY: it is our own export's, and nobody else has it.
        let import = unsafe { dlpack::Import::from_raw_versioned(pointer.as_ptr()) }.unwrap();
        assert_eq!(import.as_ref().as_ptr() == address, aligned);
        assert_eq!(import.view("x").unwrap().to_vec::<f32>().unwrap(), elements);
    }
}
