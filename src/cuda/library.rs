//! The driver's library, looked for before cudarc does.
//!
//! cudarc looks for the library at its first call, and for each function at that function's first call; where
//! one is not there, it panics. So all of them are looked for here, by the same names in the same
//! order: what is found here is what cudarc finds.

use core::ffi::{c_char, c_int, c_uint};
use core::mem::ManuallyDrop;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUresult};
use libloading::Library;

use super::Unavailable;
use super::error::Code;

/// The oldest driver that will do, as 1000 * major + 10 * minor: the oldest that cudarc knows the functions of.
/// Stream-ordered allocation is older, and came with 11.2.
pub(super) const OLDEST_DRIVER: u32 = 11040;

/// Every function that the adapter calls, and those that cudarc calls when its contexts, streams, events
/// and device memory are made, used and dropped, or its errors are printed.
pub(super) const FUNCTIONS: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// The driver's library, loaded, with every function in it.
///
/// It stays loaded when this goes: a driver that was unloaded takes its threads and what cudarc remembers with it.
#[derive(Debug)]
pub(super) struct Driver {
    library: ManuallyDrop<Library>,
}

impl Driver {
    /// Looks for the library and for its functions. The version comes first: an old driver lacks functions.
    pub(super) fn load() -> Result<Self, Unavailable> {
        let driver = Self {
            library: ManuallyDrop::new(library().ok_or(Unavailable::NoLibrary)?),
        };
        let version = driver.version()?;
        if version < OLDEST_DRIVER {
            return Err(Unavailable::OldDriver {
                version,
                required: OLDEST_DRIVER,
            });
        }
        for name in FUNCTIONS {
            // The type does not matter: it is not called.
            driver.function::<unsafe extern "C" fn()>(name)?;
        }
        Ok(driver)
    }

    /// The version of CUDA that the driver knows. It needs no [`init`](Self::init).
    pub(super) fn version(&self) -> Result<u32, Unavailable> {
        const NAME: &str = "cuDriverGetVersion";
        let mut version: c_int = 0;
        let function = self.function::<unsafe extern "C" fn(*mut c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDriverGetVersion` writes an `int` to where it is told, and has no other conditions.
        check(NAME, unsafe { function(&raw mut version) })?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    pub(super) fn init(&self) -> Result<(), Unavailable> {
        const NAME: &str = "cuInit";
        let function = self.function::<unsafe extern "C" fn(c_uint) -> RawCode>(NAME)?;
        // SAFETY: `cuInit` takes no flags yet, and may be called by any thread and again.
        check(NAME, unsafe { function(0) })
    }

    pub(super) fn device_count(&self) -> Result<usize, Unavailable> {
        const NAME: &str = "cuDeviceGetCount";
        let mut count: c_int = 0;
        let function = self.function::<unsafe extern "C" fn(*mut c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDeviceGetCount` writes an `int` to where it is told, and has no other conditions.
        check(NAME, unsafe { function(&raw mut count) })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The handle of a device: its ordinal, so far.
    pub(super) fn device(&self, ordinal: c_int) -> Result<c_int, Unavailable> {
        const NAME: &str = "cuDeviceGet";
        let mut device: c_int = 0;
        let function = self.function::<unsafe extern "C" fn(*mut c_int, c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDeviceGet` writes an `int` to where it is told, and checks the ordinal.
        check(NAME, unsafe { function(&raw mut device, ordinal) })?;
        Ok(device)
    }

    pub(super) fn name(&self, device: c_int) -> Result<String, Unavailable> {
        const NAME: &str = "cuDeviceGetName";
        const ROOM: usize = 256;
        // One more than the driver is told of, for a zero at the end.
        let mut name = [0_u8; ROOM + 1];
        let room = c_int::try_from(ROOM).unwrap_or(0);
        let function =
            self.function::<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDeviceGetName` writes up to as many bytes as it is told, which are there.
        let code = unsafe { function(name.as_mut_ptr().cast(), room, device) };
        check(NAME, code)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn memory(&self, device: c_int) -> Result<usize, Unavailable> {
        const NAME: &str = "cuDeviceTotalMem_v2";
        let mut bytes = 0_usize;
        let function = self.function::<unsafe extern "C" fn(*mut usize, c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDeviceTotalMem` writes a `size_t` to where it is told, and checks the device.
        check(NAME, unsafe { function(&raw mut bytes, device) })?;
        Ok(bytes)
    }

    pub(super) fn has_memory_pools(&self, device: c_int) -> Result<bool, Unavailable> {
        const NAME: &str = "cuDeviceGetAttribute";
        /// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`
        const MEMORY_POOLS_SUPPORTED: c_uint = 115;
        let mut value: c_int = 0;
        let function =
            self.function::<unsafe extern "C" fn(*mut c_int, c_uint, c_int) -> RawCode>(NAME)?;
        // SAFETY: `cuDeviceGetAttribute` writes an `int` to where it is told, and checks attribute and device.
        check(NAME, unsafe {
            function(&raw mut value, MEMORY_POOLS_SUPPORTED, device)
        })?;
        Ok(value > 0)
    }

    /// A function of the library, as a pointer of the type `F`, which is for the caller to get right.
    fn function<F: Copy>(&self, name: &'static str) -> Result<F, Unavailable> {
        // SAFETY: `get` asks that `F` is a pointer of the symbol's type: all callers here say so of functions whose
        // types the driver's headers fix, or do not call it. The library is never unloaded.
        let function = unsafe { self.library.get::<F>(name) };
        function
            .map(|function| *function)
            .map_err(|_| Unavailable::MissingFunction { name })
    }
}

/// The first library that loads, of cudarc's candidates.
fn library() -> Option<Library> {
    let candidates = ["cuda", "nvcuda"].into_iter().flat_map(candidates);
    let mut libraries = candidates.filter_map(|name| {
        // SAFETY: `Library::new` asks that what the library does when it is loaded is sound: it is the driver's, or what
        // the user's loader path puts in its place, and cudarc loads it just so.
        unsafe { Library::new(name) }.ok()
    });
    libraries.next()
}

/// The names that cudarc tries for a library, in its order.
fn candidates(name: &str) -> Vec<String> {
    let width = if cfg!(target_pointer_width = "32") {
        "32"
    } else {
        "64"
    };
    let (major, minor) = (sys::CUDA_VERSION / 1000, sys::CUDA_VERSION % 1000 / 10);
    let plain = format!("{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let wide = format!("{DLL_PREFIX}{name}{width}");
    let mut candidates = Vec::from([
        plain.clone(),
        format!("{wide}{DLL_SUFFIX}"),
        format!("{wide}_{major}{DLL_SUFFIX}"),
        format!("{wide}_{major}{minor}{DLL_SUFFIX}"),
        format!("{wide}_{major}{minor}_0{DLL_SUFFIX}"),
        format!("{wide}_{major}0_{minor}{DLL_SUFFIX}"),
        format!("{wide}_10{DLL_SUFFIX}"),
        format!("{wide}_11{DLL_SUFFIX}"),
        format!("{wide}_12{DLL_SUFFIX}"),
        format!("{wide}_{major}0_0{DLL_SUFFIX}"),
        format!("{wide}_9{DLL_SUFFIX}"),
        format!("{plain}.{major}"),
    ]);
    candidates.extend(["12", "11", "10", "9", "1"].map(|version| format!("{plain}.{version}")));
    candidates
}

/// What a function of the driver returns. Not cudarc's `CUresult`: of a value that it does not know one must not be
/// made, and from a library that is no driver anything may come.
#[repr(transparent)]
struct RawCode(c_uint);

fn check(call: &'static str, code: RawCode) -> Result<(), Unavailable> {
    let result = match code.0 {
        0 => return Ok(()),
        1 => CUresult::CUDA_ERROR_INVALID_VALUE,
        2 => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        3 => CUresult::CUDA_ERROR_NOT_INITIALIZED,
        4 => CUresult::CUDA_ERROR_DEINITIALIZED,
        34 => CUresult::CUDA_ERROR_STUB_LIBRARY,
        100 => CUresult::CUDA_ERROR_NO_DEVICE,
        101 => CUresult::CUDA_ERROR_INVALID_DEVICE,
        102 => CUresult::CUDA_ERROR_DEVICE_NOT_LICENSED,
        201 => CUresult::CUDA_ERROR_INVALID_CONTEXT,
        304 => CUresult::CUDA_ERROR_OPERATING_SYSTEM,
        800 => CUresult::CUDA_ERROR_NOT_PERMITTED,
        801 => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        802 => CUresult::CUDA_ERROR_SYSTEM_NOT_READY,
        803 => CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
        804 => CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
        805 => CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED,
        806 => CUresult::CUDA_ERROR_MPS_RPC_FAILURE,
        807 => CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY,
        808 => CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
        809 => CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
        _ => CUresult::CUDA_ERROR_UNKNOWN,
    };
    Err(Unavailable::Driver {
        call,
        code: Code::from(DriverError(result)),
    })
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_candidates_are_cudarcs_in_its_order() {
        for name in ["cuda", "nvcuda"] {
            assert_eq!(candidates(name), cudarc::get_lib_name_candidates(name));
        }
    }

    #[test]
    fn each_function_is_looked_for_once_and_in_order() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_code_that_nobody_knows_is_unknown() {
        for (code, text) in [
            (34, "CUDA_ERROR_STUB_LIBRARY"),
            (5, "CUDA_ERROR_UNKNOWN"),
            (999, "CUDA_ERROR_UNKNOWN"),
            (u32::MAX, "CUDA_ERROR_UNKNOWN"),
        ] {
            let Err(Unavailable::Driver { call, code }) = check("cuInit", RawCode(code)) else {
                panic!("{text}");
            };
            assert_eq!((call, code.to_string().as_str()), ("cuInit", text));
        }
        assert_eq!(check("cuInit", RawCode(0)), Ok(()));
    }
}
