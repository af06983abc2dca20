//! Names: of sessions on the wire, and of files in the folder.

use core::fmt;

use alloc::format;
use alloc::string::String;
use std::io;

/// The version of what lies in a segment; part of every name.
pub(super) const VERSION: u32 = 1;

/// What names a session among all processes of the host: 128 bits, of which the highest
/// is set and all others are random.
///
/// On the wire it is `shm-1-` and 32 lower-case hex digits. Nothing else is one, so
/// what a peer names is never a path.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(super) struct Session(u128);

impl Session {
    /// The bit that every one has.
    const BIT: u128 = 1 << 127;

    /// Makes one that nobody can guess.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::ErrorKind::Unsupported.into(),
        })?;
        Ok(Self(u128::from_le_bytes(bytes) | Self::BIT))
    }

    /// Reads the id of a session; anything but what [`id`](Self::id) writes is none.
    pub(super) fn parse(id: &str) -> Option<Self> {
        Self::from_hex(id.strip_prefix("shm-1-")?)
    }

    fn from_hex(digits: &str) -> Option<Self> {
        let number = hex(digits, 32)?;
        (number & Self::BIT != 0).then_some(Self(number))
    }

    /// Returns the id that goes over the wire.
    pub(super) fn id(self) -> String {
        format!("shm-{VERSION}-{self}")
    }

    /// Returns the number after which its pools are counted.
    ///
    /// So an address of one session is, but for one in 2^16, none of another. A head node that
    /// mixes up the slots of two workers, as the Python one does when a push fails, makes pushes
    /// fail then, and does not have one request written over another.
    pub(super) fn numbers_from(self) -> u32 {
        let [low, high, ..] = self.0.to_le_bytes();
        u32::from(u16::from_le_bytes([low, high])) << 3
    }

    /// Returns what the session's plane is called where it writes.
    pub(super) fn writer(self) -> Writer {
        // The upper half, which has the bit, fits.
        Writer(u64::try_from(self.0 >> 64).unwrap_or(Writer::BIT))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The digits are what keeps strangers out.
        f.write_str("Session(..)")
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Who writes into a window: what stands in the window while it does. It is the upper half
/// of a session, so that its highest bit is set, by which it differs from what stands there
/// at other times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Writer(u64);

impl Writer {
    /// The bit that every one has.
    pub(super) const BIT: u64 = 1 << 63;

    /// Reads what stands in a window.
    pub(super) const fn from_word(word: u64) -> Option<Self> {
        if word & Self::BIT == 0 {
            return None;
        }
        Some(Self(word))
    }

    /// Returns what stands in a window that it writes into.
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// Returns what it leaves in an open window whose generation a dead writer took along:
    /// a random number, and neither closed nor a writer.
    pub(super) const fn as_generation(self) -> u64 {
        self.0 & !Self::BIT | 1
    }
}

/// A file of ours in the folder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Name {
    /// Of a plane; its lock tells whether the plane lives.
    Plane(Writer),
    /// A registered pool, by the number that it has in its session.
    Segment(Session, u32),
}

impl Name {
    /// Reads the name of a file; anything but what `Display` writes is not ours.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("tensorwire-1-")?;
        if let Some(digits) = name.strip_prefix("plane-") {
            let word = u64::try_from(hex(digits, 16)?).ok()?;
            return Some(Self::Plane(Writer::from_word(word)?));
        }
        let (session, number) = name.split_once('-')?;
        let number = u32::try_from(hex(number, 8)?).ok()?;
        Some(Self::Segment(Session::from_hex(session)?, number))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plane(writer) => write!(f, "tensorwire-{VERSION}-plane-{:016x}", writer.0),
            Self::Segment(session, number) => {
                write!(f, "tensorwire-{VERSION}-{session}-{number:08x}")
            }
        }
    }
}

/// Reads a number of exactly `len` lower-case hex digits.
fn hex(digits: &str, len: usize) -> Option<u128> {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != len || !digits.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_no_two_are_alike() {
        let session = Session::random().unwrap();
        let writer = session.writer();
        assert_eq!(Writer::from_word(writer.word()), Some(writer));
        assert_eq!(Session::parse(&session.id()), Some(session));
        assert_ne!(session, Session::random().unwrap());
        for name in [Name::Plane(writer), Name::Segment(session, 7)] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        let lowest = Session(Session::BIT | 7);
        assert_eq!(lowest.id(), "shm-1-80000000000000000000000000000007");
        assert_eq!(
            Name::Segment(lowest, 0xab).to_string(),
            "tensorwire-1-80000000000000000000000000000007-000000ab"
        );
        assert_eq!(
            Name::Plane(lowest.writer()).to_string(),
            "tensorwire-1-plane-8000000000000000"
        );
    }

    #[test]
    fn nothing_else_is_the_id_of_a_session() {
        let digits = "89abcdef0123456789abcdef01234567";
        let long = "0".repeat(100_000);
        for id in [
            "",
            "shm-1-",
            digits,
            // The highest bit is not set.
            "shm-1-79abcdef0123456789abcdef01234567",
            "shm-1-89abcdef0123456789abcdef0123456",
            "shm-1-89abcdef0123456789abcdef012345678",
            "shm-1-89ABCDEF0123456789ABCDEF01234567",
            "shm-1-+89abcdef0123456789abcdef0123456",
            "shm-1-89abcdef0123456789abcdef0123456\0",
            "shm-1-89abcdef0123456789abcdef01234567\n",
            " shm-1-89abcdef0123456789abcdef01234567",
            "shm-2-89abcdef0123456789abcdef01234567",
            "shm-1-8../../../../../../../etc/passwd",
            "shm-1-8/abcdef0123456789abcdef01234567",
            "shm-1-89abcdef0123456789abcdef012345\u{e9}",
            "10.0.0.1:12345",
            &long,
            &format!("shm-1-{long}"),
        ] {
            assert_eq!(Session::parse(id), None, "{id:.60}");
        }
    }

    #[test]
    fn files_of_others_are_none_of_ours() {
        for name in [
            "",
            "tensorwire-1-",
            "tensorwire-1-plane-",
            // The bit of writers is not set.
            "tensorwire-1-plane-0123456789abcdef",
            "tensorwire-1-plane-8123456789abcdef0",
            "tensorwire-1-89abcdef0123456789abcdef01234567",
            "tensorwire-1-89abcdef0123456789abcdef01234567-1",
            "tensorwire-1-89abcdef0123456789abcdef01234567-00000001.old",
            "tensorwire-1-09abcdef0123456789abcdef01234567-00000001",
            "tensorwire-2-89abcdef0123456789abcdef01234567-00000001",
        ] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
    }
}
