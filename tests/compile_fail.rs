//! What the types forbid does not compile, and the compiler says why.
//!
//! Each file in `compile_fail/` is one mistake, its `.stderr` what comes of it.
//! After a change of compiler or API: `TRYBUILD=overwrite`, and read the difference.

// The cases with sockets need them. `trybuild` builds every dependency anew, with the
// features of this test: once is enough, and without the other libraries.
#![cfg(all(feature = "zmq", not(any(feature = "iceoryx2", feature = "nng"))))]

use std::fs;

#[test]
fn compile_fail() {
    let cases = fs::read_dir("tests/compile_fail").unwrap();
    let cases = cases.filter(|case| {
        let path = case.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension == "rs")
    });
    assert!(cases.count() >= 10);
    // `trybuild` builds the dependencies with other flags than the cases: all of them
    // twice, libzmq too. These flags, which are those of the cases, go before its own.
    let flags = [
        "--cfg",
        "trybuild",
        "--verbose",
        "-Adead_code",
        "--diagnostic-width=140",
    ];
    // SAFETY: `set_var` asks that no other thread reads or writes the environment
    // meanwhile. This is the only test of this process, and starts none.
    unsafe { std::env::set_var("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")) };
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
