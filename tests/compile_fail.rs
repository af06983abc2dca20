//! What the types forbid does not compile, and the compiler says why.
//!
//! Each file in `compile_fail/` is one mistake, its `.stderr` what comes of it.
//! After a change of compiler or API: `TRYBUILD=overwrite`, and read the difference.

// The cases with sockets need them, and all cases are built with the same features.
#![cfg(feature = "zmq")]

#[test]
fn compile_fail() {
    let cases = std::fs::read_dir("tests/compile_fail").unwrap();
    let cases = cases.filter_map(|case| {
        let path = case.unwrap().path();
        path.extension()
            .is_some_and(|extension| extension == "rs")
            .then_some(path)
    });
    assert!(cases.count() >= 10);
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
