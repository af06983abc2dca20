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
    for module in ["numpy", "torch"] {
        let line = format!("{module}: no copy in, no copy out\n");
        assert!(shown.contains(&line), "{shown}{errors}");
    }
    let refused = "send: stride 12 of dimension 2 where a contiguous tensor has 1\n";
    assert_eq!(errors, refused.repeat(2));
}
