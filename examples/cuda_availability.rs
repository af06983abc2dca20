//! Tells whether a CUDA device can be used, and why not if not.
//!
//! ```text
//! cargo run --features cuda --example cuda_availability -- 0
//! ```
//!
//! It needs no CUDA to be built, and it ends well where there is none: with 1, having said why.
//! The test `cuda_absent` runs it too, built so that a panic would be the end of it:
//!
//! ```text
//! CARGO_PROFILE_RELEASE_PANIC=abort cargo build --release --features cuda --example cuda_availability
//! TENSORWIRE_CUDA_AVAILABILITY=target/release/examples/cuda_availability cargo test --features cuda --test cuda_absent
//! ```

use std::process::ExitCode;

use tensorwire::cuda::{self, Cuda, Options};

fn main() -> ExitCode {
    let ordinal = std::env::args().nth(1);
    let Ok(ordinal) = ordinal.as_deref().unwrap_or("0").parse() else {
        eprintln!("usage: cuda_availability [NUMBER OF A DEVICE]");
        return ExitCode::from(2);
    };
    if cfg!(panic = "abort") {
        println!("a panic aborts");
    }
    match cuda::availability(ordinal) {
        Ok(device) => {
            let (major, minor) = (
                device.driver_version / 1000,
                device.driver_version % 1000 / 10,
            );
            println!(
                "device {ordinal} of {}: {}, {} MiB, CUDA {major}.{minor}",
                device.device_count,
                device.name,
                device.memory_bytes >> 20
            );
        }
        Err(why) => println!("{why}"),
    }
    // The same, for who does not ask first.
    match Cuda::open(ordinal, Options::new()) {
        Ok(_) => {
            println!("it opens");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
