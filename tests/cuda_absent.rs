//! Where there is no driver, or a strange one, or no device, the adapter says so: nothing panics, nothing aborts.
//!
//! Each case is a folder on the loader's path, for a process of its own, in which a panic is the end even where
//! it would be caught. With `TENSORWIRE_CUDA_AVAILABILITY`, the path of the example `cuda_availability`
//! built with `panic=abort`, that runs in each case as well.
#![cfg(feature = "cuda")]

#[path = "common/alone.rs"]
mod alone;
#[path = "common/processes.rs"]
mod processes;
mod simulated;

use std::fs;
use std::path::Path;
use std::process::Command;

use processes::Folder;
use tensorwire::cuda::{self, Cuda, Options, Unavailable};
use tensorwire::device::{Device as _, Download as _};
use tensorwire::tensor::Descriptor;
use tensorwire::transport::Wait;
use tensorwire::{DType, TensorView};

/// What lies in the folder that the loader looks into first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum There {
    /// The simulated driver.
    Driver,
    /// It, by the name with a number alone, as where no toolkit is installed.
    DriverByNumber,
    /// A shared library that has no function of a driver.
    OtherLibrary,
    /// Nothing.
    Nothing,
    /// A file that is no library.
    Text,
}

struct Case {
    there: There,
    /// Of the simulated driver.
    environment: &'static [(&'static str, &'static str)],
    ordinal: usize,
    /// What it comes to.
    typed: &'static str,
    /// How that is said.
    said: &'static str,
}

const fn case(
    there: There,
    environment: &'static [(&'static str, &'static str)],
    ordinal: usize,
    typed: &'static str,
    said: &'static str,
) -> Case {
    Case {
        there,
        environment,
        ordinal,
        typed,
        said,
    }
}

const CASES: &[Case] = &[
    case(
        There::Nothing,
        &[],
        0,
        "Err(NoLibrary)",
        "no library of a CUDA driver found",
    ),
    case(
        There::Text,
        &[],
        0,
        "Err(NoLibrary)",
        "no library of a CUDA driver found",
    ),
    case(
        There::OtherLibrary,
        &[],
        0,
        r#"Err(MissingFunction { name: "cuDriverGetVersion" })"#,
        "the library of the driver has no function cuDriverGetVersion",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_INIT", "34")],
        0,
        r#"Err(Driver { call: "cuDriverGetVersion", code: CUDA_ERROR_STUB_LIBRARY })"#,
        "cuDriverGetVersion failed: CUDA_ERROR_STUB_LIBRARY",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_INIT", "803")],
        0,
        r#"Err(Driver { call: "cuInit", code: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH })"#,
        "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    ),
    case(
        There::Driver,
        // None of CUDA's.
        &[("SIMCUDA_INIT", "4000000000")],
        0,
        r#"Err(Driver { call: "cuInit", code: CUDA_ERROR_UNKNOWN })"#,
        "cuInit failed: CUDA_ERROR_UNKNOWN",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_DRIVER_VERSION", "11030")],
        0,
        "Err(OldDriver { version: 11030, required: 11040 })",
        "the driver knows CUDA 11.3, and 11.4 is needed",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_DRIVER_VERSION", "-1")],
        0,
        "Err(OldDriver { version: 0, required: 11040 })",
        "the driver knows CUDA 0.0, and 11.4 is needed",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_DEVICES", "0")],
        0,
        "Err(NoSuchDevice { ordinal: 0, count: 0 })",
        "no device 0: there are 0",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_DEVICES", "2")],
        2,
        "Err(NoSuchDevice { ordinal: 2, count: 2 })",
        "no device 2: there are 2",
    ),
    case(
        There::Driver,
        &[],
        // The driver counts with 32 bits, for which this is device 0.
        1 << 32,
        "Err(NoSuchDevice { ordinal: 4294967296, count: 1 })",
        "no device 4294967296: there are 1",
    ),
    case(
        There::Driver,
        &[("SIMCUDA_DEVICES", "2")],
        1,
        "Ok(\"Simulated device 1\")",
        "device 1 of 2: Simulated device 1, 4096 MiB, CUDA 12.4",
    ),
    case(
        There::DriverByNumber,
        &[("SIMCUDA_DRIVER_VERSION", "11040"), ("SIMCUDA_POOLS", "0")],
        0,
        "Ok(\"Simulated device 0\")",
        "device 0 of 1: Simulated device 0, 4096 MiB, CUDA 11.4",
    ),
];

/// Each function that the adapter looks for, as the library has the list.
fn functions() -> Vec<&'static str> {
    let source = include_str!("../src/cuda/library.rs");
    let (_, list) = source.split_once("FUNCTIONS: &[&str] = &[").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    list.split('"').skip(1).step_by(2).collect()
}

/// The simulated driver, with names of functions that nobody knows instead of those that `keep` does not want.
fn driver(keep: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut bytes = fs::read(simulated::folder().join("libcuda.so")).unwrap();
    // The names lie between zeros, in the table of the dynamic linker, which hashes the right ones.
    let mut begin = 0;
    while let Some(len) = bytes[begin..].iter().position(|byte| *byte == 0) {
        let name = &mut bytes[begin..begin + len];
        let is_function = name.starts_with(b"cu") && name.iter().all(|byte| is_of_name(*byte));
        if is_function && !keep(str::from_utf8(name).unwrap()) {
            name[0] = b'x';
        }
        begin += len + 1;
    }
    bytes
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn lay(folder: &Path, there: There) {
    let plain = folder.join("libcuda.so");
    match there {
        There::Driver => fs::write(plain, driver(|_| true)),
        There::DriverByNumber => fs::write(folder.join("libcuda.so.1"), driver(|_| true)),
        There::OtherLibrary => fs::write(plain, driver(|_| false)),
        There::Nothing => Ok(()),
        There::Text => fs::write(plain, "/* GNU ld script */\nINPUT(libnone.so)\n"),
    }
    .unwrap();
}

fn temporary() -> Folder {
    Folder::new(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Runs `command` with `folder` in front of the loader's path; what it says, and whether it ended in its own time.
fn run(mut command: Command, folder: &Path, environment: &[(&str, &str)]) -> (String, bool) {
    simulated::with_driver(&mut command, folder);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    (text, output.status.code().is_some())
}

/// What [`asks`] says in a process of its own.
fn ask(ordinal: usize, folder: &Path, environment: &[(&str, &str)]) -> String {
    let command = alone::command("asks", &[&ordinal.to_string()]);
    let (text, ended) = run(command, folder, environment);
    assert!(ended, "{text}");
    let line = text.lines().find_map(|line| line.split_once("answer: "));
    line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[test]
#[ignore = "run by the tests here, on a path of theirs"]
fn asks() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::abort();
    }));
    let arguments = alone::arguments();
    let Some(ordinal) = arguments.first() else {
        return;
    };
    let ordinal = ordinal.parse().unwrap();
    let found = cuda::availability(ordinal);
    println!("answer: {:?}", found.as_ref().map(|device| &*device.name));
    // And again, from elsewhere, and without being asked.
    let there = std::thread::spawn(move || cuda::availability(ordinal));
    assert_eq!(there.join().unwrap(), found);
    let opened = Cuda::open(ordinal, Options::new());
    let why = opened.map_err(|error| error.unavailable().expect("another error"));
    assert_eq!(why.map(drop), found.map(drop));
}

/// Whether these tests can run, which take the simulated driver to pieces; says so if not.
#[must_use]
fn needs_pieces() -> bool {
    if simulated::on_device() {
        println!("SKIP: cuda_absent needs the simulated driver");
    }
    !simulated::on_device()
}

/// Whether a driver is installed here, which no folder can hide.
fn has_driver() -> bool {
    cuda::availability(0) != Err(Unavailable::NoLibrary)
}

#[test]
fn whatever_is_missing_is_said() {
    if !needs_pieces() {
        return;
    }
    let program = std::env::var_os("TENSORWIRE_CUDA_AVAILABILITY");
    if program.is_none() {
        println!("SKIP: cuda_absent under panic=abort: TENSORWIRE_CUDA_AVAILABILITY is not set");
    }
    for case in CASES {
        let Case {
            there,
            environment,
            ordinal,
            ..
        } = *case;
        if matches!(there, There::Nothing | There::Text) && has_driver() {
            println!("SKIP: cuda_absent, {there:?}: a driver is installed here");
            continue;
        }
        let folder = temporary();
        lay(folder.path(), there);
        let name = format!("{there:?} {environment:?} {ordinal}");
        let answer = ask(ordinal, folder.path(), environment);
        assert_eq!(answer, case.typed, "{name}");
        if let Some(program) = &program {
            let mut command = Command::new(program);
            command.arg(ordinal.to_string());
            let (text, ended) = run(command, folder.path(), environment);
            assert!(ended && text.contains("a panic aborts"), "{name}: {text}");
            assert!(text.lines().any(|line| line == case.said), "{name}: {text}");
        }
    }
}

#[test]
fn each_function_that_is_missing_is_named() {
    if !needs_pieces() {
        return;
    }
    let all = functions();
    assert!(all.len() > 30, "{all:?}");
    for missing in all {
        let folder = temporary();
        let without = driver(|name| name != missing);
        fs::write(folder.path().join("libcuda.so"), without).unwrap();
        let answer = ask(0, folder.path(), &[]);
        assert_eq!(
            answer,
            format!("Err(MissingFunction {{ name: {missing:?} }})")
        );
    }
}

#[test]
fn no_other_function_is_needed() {
    if !needs_pieces() {
        return;
    }
    let all = functions();
    let folder = temporary();
    let driver = driver(|name| all.contains(&name));
    fs::write(folder.path().join("libcuda.so"), driver).unwrap();
    for pools in ["0", "1"] {
        let command = alone::command("goes_there_and_back", &["there"]);
        let (text, _) = run(command, folder.path(), &[("SIMCUDA_POOLS", pools)]);
        assert!(text.contains("1 passed"), "pools {pools}: {text}");
    }
}

#[test]
#[ignore = "run by the tests here, on a path of theirs"]
fn goes_there_and_back() {
    if alone::arguments().is_empty() {
        return;
    }
    let cuda = Cuda::open(0, Options::new()).unwrap();
    let stream = cuda.context().new_stream().unwrap();
    let bytes = [7; 1000];
    let descriptor = Descriptor::new("x", DType::UInt8, &[1000]).unwrap();
    let view = TensorView::new(descriptor, &bytes).unwrap();
    let tensor = cuda.upload(&view, &stream, Wait::Configured).unwrap();
    let download = cuda
        .download(&[&tensor], &stream, Wait::Configured)
        .unwrap();
    let downloaded = download.finish(Wait::Configured).unwrap();
    drop(tensor);
    // The errors of cudarc ask the driver for their names.
    let error = stream.alloc_zeros::<u8>(1 << 45).unwrap_err();
    assert!(
        error.to_string().contains("CUDA_ERROR_OUT_OF_MEMORY"),
        "{error}"
    );
    drop(downloaded);
    drop(stream);
    drop(cuda);
}
