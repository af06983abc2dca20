//! Memory pools, as far as a program sets how much they keep: nothing here depends on it.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::{answer, device_of, enter_driver, give};
use crate::state::{Code, INVALID_VALUE, sim};

const NOT_SUPPORTED: Code = 801;
/// A device's pool is this and its number.
const FIRST_POOL: usize = 0xb0_0000;
const RELEASE_THRESHOLD: c_uint = 4;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: c_int) -> Code {
    // SAFETY: as C's callers promise.
    answer(unsafe { pool_of("cuDeviceGetDefaultMemPool", pool, device) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetMemPool(pool: *mut *mut c_void, device: c_int) -> Code {
    // SAFETY: as C's callers promise.
    answer(unsafe { pool_of("cuDeviceGetMemPool", pool, device) })
}

/// # Safety
///
/// `pool` is null or may be written to.
unsafe fn pool_of(name: &'static str, pool: *mut *mut c_void, device: c_int) -> Result<(), Code> {
    let _state = enter_driver(name)?;
    let number = device_of(device)?;
    if !sim().settings.pools {
        return Err(NOT_SUPPORTED);
    }
    // SAFETY: the caller says so.
    unsafe { give(pool, std::ptr::without_provenance_mut(FIRST_POOL + number)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolSetAttribute(
    pool: *mut c_void,
    attribute: c_uint,
    value: *mut c_void,
) -> Code {
    answer((|| {
        let _state = enter_driver("cuMemPoolSetAttribute")?;
        let devices = sim().settings.devices;
        let is_one = (FIRST_POOL..FIRST_POOL + devices).contains(&pool.addr());
        if !is_one || attribute != RELEASE_THRESHOLD || value.is_null() {
            return Err(INVALID_VALUE);
        }
        Ok(())
    })())
}
