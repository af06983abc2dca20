//! Views of other crates, where more than one of them is at work: with Python, over a transport, and each into the other.

#![cfg(feature = "std")]

use tensorwire::interop::SharedFrame;
use tensorwire::transport::{Frames, loopback};

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
#[cfg(all(
    feature = "bytes",
    feature = "candle",
    feature = "dlpack",
    feature = "ndarray"
))]
fn every_view_shows_the_elements_in_place_where_it_can_at_any_address() {
    use tensorwire::interop::{bytes, candle, dlpack, ndarray};
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

        let there = candle::to_tensor(&x, &candle_core::Device::Cpu).unwrap();
        assert_eq!(there.dims(), [3, 200]);
        let there = there.flatten_all().unwrap().to_vec1::<f32>();
        assert_eq!(there.unwrap(), elements);

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
