//! Numbers of one type as another's.

/// No target has more than 64 bits of address, so this is always the same number.
pub(crate) fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
