//! What holds for every payload, whoever made it up.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::fuzz::transfer_message;
use super::recorded;

static RECORDED: LazyLock<Vec<(String, String)>> = LazyLock::new(recorded);

/// A change to a payload, which may break it.
#[derive(Clone, Debug)]
enum Damage {
    Delete(Index, usize),
    Flip(Index, u8),
    Insert(Index, &'static str),
    Repeat(Index, usize, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let tokens = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "-",
        "0",
        "1e2",
        ".0",
        " ",
        "NaN",
        "null",
        "true",
        "\\u0061",
        "\\ud800",
        "\"error\":\"x\",",
        "\"request_id\":\"\",",
        "{}",
        "é",
        "99999999999999999999",
        "\"staged_for_decoder\":true,",
        "\"x\":[1],",
    ];
    prop_oneof![
        (any::<Index>(), 1..30_usize).prop_map(|(at, length)| Damage::Delete(at, length)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), select(tokens.to_vec())).prop_map(|(at, token)| Damage::Insert(at, token)),
        (any::<Index>(), 1..60_usize, any::<Index>())
            .prop_map(|(at, length, to)| Damage::Repeat(at, length, to)),
    ]
}

impl Damage {
    fn apply(&self, payload: &mut Vec<u8>) {
        if payload.is_empty() {
            return;
        }
        let range = |at: &Index, length: usize| {
            let at = at.index(payload.len());
            at..payload.len().min(at + length)
        };
        match self {
            Self::Delete(at, length) => drop(payload.drain(range(at, *length))),
            Self::Flip(at, bit) => {
                let at = at.index(payload.len());
                payload[at] ^= 1 << bit;
            }
            Self::Insert(at, token) => {
                let at = at.index(payload.len());
                payload.splice(at..at, token.bytes());
            }
            Self::Repeat(at, length, to) => {
                let bytes = payload[range(at, *length)].to_vec();
                let to = to.index(payload.len());
                payload.splice(to..to, bytes);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The target asserts it all: verdict and bytes as the model has them, offsets
    /// inside the payload, what is written read again as the same.
    #[test]
    fn whatever_comes_is_read_as_the_model_reads_it_or_refused(
        which in any::<Index>(),
        flags in select(b"01234889".to_vec()),
        damages in vec(damage(), 0..4),
    ) {
        let (_, payload) = &RECORDED[which.index(RECORDED.len())];
        let mut payload = payload.clone().into_bytes();
        damages.iter().for_each(|damage| damage.apply(&mut payload));
        payload.insert(0, flags);
        transfer_message::run(&payload);
    }

    #[test]
    fn any_bytes_are_refused_inside_of_them(payload in vec(any::<u8>(), 0..200)) {
        transfer_message::run(&payload);
    }
}
