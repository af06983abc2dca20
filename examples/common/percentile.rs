//! A figure over many samples.

/// The smallest sample that at least `percent` in a hundred do not exceed; 0 of none.
pub(crate) fn percentile(samples: &[u64], percent: usize) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}
