//! A hash of names, the same in every spelling, and another for each key.
//!
//! A peer chooses the names, so the key is something that it does not know: where
//! the memory lies that a message is decoded into. That is no secret worth the
//! name, and needs to be none: names of one hash are told apart by their text.

/// A hash that takes eight bytes at a time, wherever the text is cut.
pub(crate) struct Fingerprint {
    hash: u64,
    /// The last eight bytes, the newest on top.
    window: u64,
    length: usize,
}

impl Fingerprint {
    /// Starts from a number that who writes the text does not know.
    pub(crate) const fn new(key: u64) -> Self {
        Self {
            hash: key,
            window: 0,
            length: 0,
        }
    }

    /// Takes all there is, and is faster than taking it in pieces.
    #[inline]
    pub(crate) fn push_all(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        self.length = bytes.len();
        match bytes.last_chunk::<8>() {
            Some(last) => self.window = u64::from_le_bytes(*last),
            None => rest.iter().for_each(|&byte| self.slide(byte)),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.slide(byte);
            self.length = self.length.saturating_add(1);
            if self.length & 7 == 0 {
                self.mix(self.window);
            }
        }
    }

    #[inline]
    fn slide(&mut self, byte: u8) {
        self.window = (self.window >> 8) | (u64::from(byte) << 56);
    }

    /// Takes eight bytes, after as many as are a multiple of eight.
    #[inline]
    pub(crate) fn mix(&mut self, word: u64) {
        // Both halves of the product, one folded onto the other: what the upper
        // loses the lower has.
        let product = u128::from(self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let folded = product ^ (product >> 64);
        self.hash = u64::try_from(folded & u128::from(u64::MAX)).unwrap_or_default();
    }

    #[inline]
    pub(crate) fn finish(self) -> u64 {
        let (window, length) = (self.window, self.length);
        self.finish_with(window, length)
    }

    /// Ends a text of which only whole words have been mixed in, at its last eight bytes.
    #[inline]
    pub(crate) fn finish_with(mut self, window: u64, length: usize) -> u64 {
        self.mix(window);
        self.mix(u64::try_from(length).unwrap_or(u64::MAX));
        self.hash
    }

    /// The half of a hash that depends on most of the text.
    #[inline]
    pub(crate) const fn upper(hash: u64) -> u32 {
        let [.., a, b, c, d] = hash.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}
