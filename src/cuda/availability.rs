//! Whether there is a driver and a device, and why not.

use core::ffi::c_int;
use core::fmt;

use alloc::boxed::Box;

use super::error::Code;
use super::library::Driver;

/// A device that is there, and its driver.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Which of the devices that this process sees.
    pub ordinal: usize,
    /// How many of them there are.
    pub device_count: usize,
    /// Its name, as the driver has it.
    pub name: Box<str>,
    /// Its memory in bytes.
    pub memory_bytes: usize,
    /// The version of CUDA that the driver knows, as 1000 * major + 10 * minor.
    pub driver_version: u32,
    /// Whether it allocates in the order of a stream; else allocating and freeing may wait for the device.
    pub has_stream_ordered_allocation: bool,
}

/// Tells whether the device `ordinal` can be used.
///
/// It looks for the library, for a driver that is new enough (CUDA 11.4), for each function that the adapter
/// calls, and for the device. It can be called any time, by any thread, and again; it makes no context.
///
/// # Errors
///
/// Why not. Nothing panics, also where cudarc would: it does without a library, and at a missing function.
///
/// # Examples
///
/// ```
/// use tensorwire::cuda;
///
/// match cuda::availability(0) {
///     Ok(device) => println!("{}: {} bytes", device.name, device.memory_bytes),
///     Err(why) => println!("no CUDA: {why}"),
/// }
/// ```
pub fn availability(ordinal: usize) -> Result<DeviceInfo, Unavailable> {
    let driver = Driver::load()?;
    driver.init().map_err(|error| match error {
        // So it says where there is none, or where the environment hides all.
        Unavailable::Driver { code, .. } if code.is_no_device() => {
            Unavailable::NoSuchDevice { ordinal, count: 0 }
        }
        error => error,
    })?;
    let device_count = driver.device_count()?;
    let number = c_int::try_from(ordinal).ok();
    let Some(number) = number.filter(|_| ordinal < device_count) else {
        let count = device_count;
        return Err(Unavailable::NoSuchDevice { ordinal, count });
    };
    let device = driver.device(number)?;
    Ok(DeviceInfo {
        ordinal,
        device_count,
        name: driver.name(device)?.into_boxed_str(),
        memory_bytes: driver.memory(device)?,
        driver_version: driver.version()?,
        has_stream_ordered_allocation: driver.has_memory_pools(device)?,
    })
}

/// Why there is no device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver is there and does not work, or refused to tell.
    Driver {
        /// The function that failed.
        call: &'static str,
        /// What it said. `CUDA_ERROR_STUB_LIBRARY` says that the library is one to link with, not to run.
        code: Code,
    },
    /// The library is not one of a driver, or of too old a one: it lacks a function.
    MissingFunction {
        /// The first that is missing.
        name: &'static str,
    },
    /// No library of the driver is to be found.
    NoLibrary,
    /// There is no device of this number.
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many devices there are, counted from 0.
        count: usize,
    },
    /// The driver is older than what the adapter needs.
    OldDriver {
        /// The version of CUDA that it knows, as 1000 * major + 10 * minor.
        version: u32,
        /// The oldest that will do.
        required: u32,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Driver { call, code } => write!(f, "{call} failed: {code}"),
            Self::MissingFunction { name } => {
                write!(f, "the library of the driver has no function {name}")
            }
            Self::NoLibrary => f.write_str("no library of a CUDA driver found"),
            Self::NoSuchDevice { ordinal, count } => {
                write!(f, "no device {ordinal}: there are {count}")
            }
            Self::OldDriver { version, required } => write!(
                f,
                "the driver knows CUDA {}.{}, and {}.{} is needed",
                version / 1000,
                version % 1000 / 10,
                required / 1000,
                required % 1000 / 10
            ),
        }
    }
}

impl core::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn errors_say_what_is_missing_with_its_numbers() {
        for (error, text) in [
            (
                Unavailable::MissingFunction { name: "cuInit" },
                "the library of the driver has no function cuInit",
            ),
            (Unavailable::NoLibrary, "no library of a CUDA driver found"),
            (
                Unavailable::NoSuchDevice {
                    ordinal: 3,
                    count: 2,
                },
                "no device 3: there are 2",
            ),
            (
                Unavailable::OldDriver {
                    version: 11020,
                    required: 11040,
                },
                "the driver knows CUDA 11.2, and 11.4 is needed",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
