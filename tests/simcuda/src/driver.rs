//! Driver, devices, contexts; and what every call does first.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::MutexGuard;

use crate::state::{
    BIND_FAILED, CONTEXT_IS_DESTROYED, CURRENT, Code, INVALID_CONTEXT, INVALID_DEVICE,
    INVALID_VALUE, NOT_INITIALIZED, SUCCESS, State, lock, sim, wait,
};

const STUB_LIBRARY: Code = 34;
const NO_DEVICE: Code = 100;
/// A context is this and its device's number times 64.
const FIRST_CONTEXT: usize = 0xc0_0000;

/// What a call came to, as C has it.
pub(crate) fn answer(outcome: Result<(), Code>) -> Code {
    outcome.err().unwrap_or(SUCCESS)
}

/// Counts the call, and does what the script says of it.
pub(crate) fn enter(name: &'static str) -> Result<MutexGuard<'static, State>, Code> {
    let mut state = lock();
    if state.script.holds(name) {
        state.script.held_now += 1;
        sim().changed.notify_all();
        while state.script.still_holds(name) {
            state = wait(state);
        }
        state.script.held_now -= 1;
    }
    if let Some(code) = state.script.call(name) {
        if matches!(name, "cuCtxGetCurrent" | "cuCtxSetCurrent") {
            BIND_FAILED.set(true);
        }
        return Err(code);
    }
    if sim().settings.init == STUB_LIBRARY {
        return Err(STUB_LIBRARY);
    }
    Ok(state)
}

/// The same for a call that needs the driver.
pub(crate) fn enter_driver(name: &'static str) -> Result<MutexGuard<'static, State>, Code> {
    let state = enter(name)?;
    if !state.initialized {
        return Err(NOT_INITIALIZED);
    }
    Ok(state)
}

/// The same for a call that needs a context, which comes with it.
pub(crate) fn enter_context(
    name: &'static str,
) -> Result<(MutexGuard<'static, State>, usize), Code> {
    let mut state = enter_driver(name)?;
    let Some(context) = CURRENT.get() else {
        if !BIND_FAILED.get() {
            state.violation(format!("{name} without a context on this thread"));
        }
        return Err(INVALID_CONTEXT);
    };
    if state.contexts[context].retained == 0 {
        state.violation(format!("{name} in a context that was released"));
        return Err(CONTEXT_IS_DESTROYED);
    }
    if let Some(code) = state.contexts[context].fault {
        return Err(code);
    }
    Ok((state, context))
}

/// Writes what a call returns, to where its caller wants it.
///
/// # Safety
///
/// `target` is null or may be written to.
pub(crate) unsafe fn give<T>(target: *mut T, value: T) -> Result<(), Code> {
    if target.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller says so.
    unsafe { target.write(value) };
    Ok(())
}

pub(crate) fn device_of(device: c_int) -> Result<usize, Code> {
    let number = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
    (number < sim().settings.devices)
        .then_some(number)
        .ok_or(INVALID_DEVICE)
}

const fn context_handle(device: usize) -> usize {
    FIRST_CONTEXT + 64 * device
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    answer((|| {
        let mut state = enter("cuInit")?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if sim().settings.init != SUCCESS {
            return Err(sim().settings.init);
        }
        if sim().settings.devices == 0 {
            return Err(NO_DEVICE);
        }
        state.initialized = true;
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    answer((|| {
        let _state = enter("cuDriverGetVersion")?;
        // SAFETY: the caller's promise.
        unsafe { give(version, sim().settings.driver_version) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, name: *mut *const c_char) -> Code {
    let text = match code {
        0 => c"CUDA_SUCCESS",
        1 => c"CUDA_ERROR_INVALID_VALUE",
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        34 => c"CUDA_ERROR_STUB_LIBRARY",
        600 => c"CUDA_ERROR_NOT_READY",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        _ => c"CUDA_ERROR_SIMULATED",
    };
    // SAFETY: the caller's promise.
    answer(unsafe { give(name, text.as_ptr()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    // SAFETY: the caller's promise.
    unsafe { cuGetErrorName(code, text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    answer((|| {
        let _state = enter_driver("cuDeviceGetCount")?;
        // SAFETY: the caller's promise.
        unsafe { give(count, sim().settings.devices as c_int) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    answer((|| {
        let _state = enter_driver("cuDeviceGet")?;
        device_of(ordinal)?;
        // SAFETY: the caller's promise.
        unsafe { give(device, ordinal) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> Code {
    answer((|| {
        let _state = enter_driver("cuDeviceGetName")?;
        let text = format!("Simulated device {}", device_of(device)?);
        let len = usize::try_from(len).map_err(|_| INVALID_VALUE)?;
        if name.is_null() || len == 0 {
            return Err(INVALID_VALUE);
        }
        let taken = text.len().min(len - 1);
        // SAFETY: the caller has `len` bytes there, and fewer are written.
        unsafe {
            name.copy_from_nonoverlapping(text.as_ptr().cast(), taken);
            name.add(taken).write(0);
        }
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> Code {
    answer((|| {
        let _state = enter_driver("cuDeviceTotalMem_v2")?;
        device_of(device)?;
        // SAFETY: the caller's promise.
        unsafe { give(bytes, sim().settings.memory) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_uint,
    device: c_int,
) -> Code {
    answer((|| {
        let number = device_of(device);
        let _state = enter_driver("cuDeviceGetAttribute").inspect_err(|_| {
            // cudarc 0.19.10 keeps a context that it has just retained where this fails.
            let mut state = lock();
            let context = number.map(|number| &mut state.contexts[number]);
            if let Some(context) = context.ok().filter(|context| context.retained > 0) {
                context.excused += 1;
            }
        })?;
        number?;
        let answer = match attribute {
            // ASYNC_ENGINE_COUNT, UNIFIED_ADDRESSING, COMPUTE_CAPABILITY_MAJOR
            40 => 2,
            41 => 1,
            75 => 9,
            // MEMORY_POOLS_SUPPORTED
            115 => c_int::from(sim().settings.pools),
            _ => 0,
        };
        // SAFETY: the caller's promise.
        unsafe { give(value, answer) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Code {
    answer((|| {
        let _state = enter_driver("cuDeviceGetUuid_v2")?;
        // SAFETY: the caller's promise.
        unsafe { give(uuid, [device_of(device)? as u8; 16]) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(
    context: *mut *mut c_void,
    device: c_int,
) -> Code {
    answer((|| {
        let mut state = enter_driver("cuDevicePrimaryCtxRetain")?;
        let device = device_of(device)?;
        // SAFETY: the caller's promise.
        unsafe { give(context, context_handle(device) as *mut c_void) }?;
        state.contexts[device].retained += 1;
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    answer((|| {
        let entered = enter_driver("cuDevicePrimaryCtxRelease_v2");
        let number = device_of(device)?;
        let mut state = match entered {
            Ok(state) => state,
            Err(code) => {
                lock().contexts[number].excused += 1;
                return Err(code);
            }
        };
        if state.contexts[number].retained == 0 {
            state.violation("cuDevicePrimaryCtxRelease of a context that is not retained");
            return Err(INVALID_CONTEXT);
        }
        state.contexts[number].retained -= 1;
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> Code {
    answer((|| {
        let _state = enter_driver("cuCtxGetCurrent")?;
        let handle = CURRENT.get().map_or(0, context_handle);
        // SAFETY: the caller's promise.
        unsafe { give(context, handle as *mut c_void) }?;
        if handle != 0 {
            BIND_FAILED.set(false);
        }
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> Code {
    answer((|| {
        let mut state = enter_driver("cuCtxSetCurrent")?;
        BIND_FAILED.set(false);
        if context.is_null() {
            CURRENT.set(None);
            return Ok(());
        }
        let device = (0..sim().settings.devices)
            .find(|device| context_handle(*device) == context.addr())
            .ok_or(INVALID_CONTEXT)?;
        if state.contexts[device].retained == 0 {
            state.violation("cuCtxSetCurrent of a context that was released");
            return Err(CONTEXT_IS_DESTROYED);
        }
        CURRENT.set(Some(device));
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetFlags(_flags: c_uint) -> Code {
    answer(enter_context("cuCtxSetFlags").map(drop))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> Code {
    answer((|| {
        let _entered = enter_context("cuCtxGetStreamPriorityRange")?;
        // SAFETY: the caller's promise.
        unsafe { give(least, 0) }?;
        // SAFETY: the caller's promise.
        unsafe { give(greatest, -5) }
    })())
}
