//! The one copy that a push makes.
#![allow(unsafe_code)]

use core::ptr;

/// So many bytes and more do not stay in a cache, so that it does not pay to fetch there what
/// is about to be written over.
///
/// `memcpy` knows that too, but not from how many bytes on: the GNU one goes by the size that
/// the processor tells, and takes ten times the true one where a hypervisor adds up those of the
/// whole machine.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LARGE: usize = 16 << 20;

/// Copies `len` bytes.
///
/// # Safety
///
/// As [`ptr::copy_nonoverlapping`], of bytes.
pub(super) unsafe fn copy_nonoverlapping(source: *const u8, target: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len >= LARGE && std::arch::is_x86_feature_detected!("ermsb") {
        // SAFETY: `rep movsb` reads `rcx` bytes from `rsi` on and writes them from `rdi` on, in
        // ascending order, as the direction flag is clear when an `asm!` is entered. It
        // changes these three registers, which are outputs, no flag, and touches no stack. The
        // caller promises that both are valid for as many bytes and do not overlap. What is
        // stored after it is seen after it, so that leaving the window publishes the bytes.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") source => _,
                inout("rdi") target => _,
                options(nostack, preserves_flags)
            );
        };
        return;
    }
    // SAFETY: the caller's promises are the callee's.
    unsafe { ptr::copy_nonoverlapping(source, target, len) };
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_byte_is_copied_and_none_beside_them() {
        let source: Vec<u8> = (0..LARGE + 64).map(|index| (index % 251) as u8).collect();
        for (from, to, len) in [
            (0, 0, LARGE),
            (1, 3, LARGE),
            (7, 0, LARGE + 13),
            (5, 9, LARGE - 1),
            (0, 1, 0),
        ] {
            let mut target = vec![0xff; LARGE + 64];
            let bytes = &source[from..from + len];
            let place = &mut target[to..to + len];
            // SAFETY: two slices of this length, of two vectors.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), place.as_mut_ptr(), len) };
            assert!(target[to..to + len] == *bytes, "{from} {to} {len}");
            let beside = target[..to].iter().chain(&target[to + len..]);
            assert!(
                beside.copied().all(|byte| byte == 0xff),
                "{from} {to} {len}"
            );
        }
    }
}
