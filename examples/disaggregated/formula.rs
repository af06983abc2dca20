//! What the built-in roles compute: so little that each can check its input whole.
//!
//! Another implementation, in Python say, comes to the same bytes by the same rules:
//!
//! | what | element `i` |
//! |---|---|
//! | seed | FNV-1a, 64 bits, of the bytes of the request's id, modulo 65521 |
//! | `prompt_embeds`, `[1, 77, 64 k]` of `float32` | `(seed + i) mod 251` |
//! | `latents`, likewise | `2 x + 1` of element `i` of `prompt_embeds` |
//! | `output`, `[77 * 64 k]` of `uint8` | element `i` of `latents`, modulo 256 |
//! | the others, of `uint8` | `(seed + tag + i) mod 251`, the tags are in `builtin.rs` |

/// After how many elements it all begins again.
const PERIOD: u64 = 251;

/// The elements of one prompt, for `k = 1`.
pub(crate) const ROW: usize = 77 * 64;

/// Where the numbers of a request start.
pub(crate) fn seed(request_id: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in request_id.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash % 65_521
}

/// An element of `latents`.
pub(crate) const fn denoised(embed: f32) -> f32 {
    2.0 * embed + 1.0
}

/// An element of `output`.
pub(crate) const fn decoded(latent: f32) -> u8 {
    (latent as u32 % 256) as u8
}

/// The largest `k` for payloads of `mib` MiB, with room for what goes beside them.
pub(crate) fn rows(mib: usize) -> usize {
    let room = (mib << 20).saturating_sub(8 << 10);
    (room / (ROW * size_of::<f32>())).max(1)
}

/// The numbers from a seed on, once around: elements repeat themselves after that.
pub(crate) fn period<T>(seed: u64, element: impl Fn(u8) -> T) -> Vec<T> {
    // Below 251, so a byte holds it.
    let numbers = (seed..seed + PERIOD).map(|number| (number % PERIOD) as u8);
    numbers.map(element).collect()
}

/// Fills a tensor with a period, again and again.
pub(crate) fn fill<T: Copy>(target: &mut [T], period: &[T]) {
    for part in target.chunks_mut(period.len()) {
        part.copy_from_slice(&period[..part.len()]);
    }
}

/// The index of the first element that is not what the period says.
pub(crate) fn first_difference<T: PartialEq>(actual: &[T], period: &[T]) -> Option<usize> {
    let mut start = 0;
    for part in actual.chunks(period.len()) {
        if *part != period[..part.len()] {
            let same = part.iter().zip(period).take_while(|(a, b)| a == b).count();
            return Some(start + same);
        }
        start += part.len();
    }
    None
}
