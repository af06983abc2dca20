//! Numbers as people write them.

use std::time::Duration;

/// Reads a number of seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "seconds are a number of at least zero, and not for ever".to_owned())
}

/// Reads a number of messages.
pub(super) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a count is a whole number above zero".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// Reads a number of messages a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number")?;
    // Below, the pause between two messages would not fit any clock.
    if rate.is_finite() && rate >= 1e-6 {
        Ok(rate)
    } else {
        Err("a rate is a number above zero".to_owned())
    }
}

/// Reads a number of bytes, in the units that people use.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: usize = digits.parse().map_err(|_| "not a number of bytes")?;
    let scale = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "KiB" | "K" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" | "M" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" | "G" => 1 << 30,
        _ => return Err("units are B, kB, KiB, MB, MiB, GB and GiB".to_owned()),
    };
    number
        .checked_mul(scale)
        .ok_or_else(|| "too many bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_units_that_people_use() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("64KiB", 65536),
            ("1MB", 1_000_000),
            ("2 GiB", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "KiB",
            "-1",
            "1.5MiB",
            "1XB",
            "99999999999999999999",
            "9999999999999GiB",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_and_rates_are_finite_and_not_below_zero() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "-1", "nan", "inf", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
            assert!(rate(text).is_err() || text == "1e300", "{text}");
        }
        assert!(rate("0").is_err());
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "0", "-1", "1.5", "18446744073709551616"] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
