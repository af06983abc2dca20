//! Where the decisions of a schedule come from: a seed, or the bytes of a fuzzer.

/// A source of decisions.
pub trait Choices {
    /// A number below `limit`, which is 1 to 65536.
    fn below(&mut self, limit: u32) -> u32;

    /// Whether there is nothing more to decide: then the schedule comes to its end.
    fn is_over(&self) -> bool;

    /// Something that happens `parts` times in 256.
    fn chance(&mut self, parts: u32) -> bool {
        self.below(256) < parts
    }
}

/// A generator that gives the same for the same seed everywhere: xorshift.
#[derive(Debug)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds are to have little in common, and 0 would stay 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
}

impl Choices for Seeded {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % limit
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Bytes, one for each decision; two where there are many ways.
#[derive(Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Choices for Bytes<'_> {
    fn below(&mut self, limit: u32) -> u32 {
        let mut next = || match self.0 {
            [] => 0,
            [first, rest @ ..] => {
                self.0 = rest;
                u32::from(*first)
            }
        };
        let mut number = next();
        if limit > 256 {
            number = number << 8 | next();
        }
        number % limit
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}
