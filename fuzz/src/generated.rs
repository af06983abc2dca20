//! What the crate generates is what it says, and with a few bytes changed it is as the other targets have it.
//!
//! The input is choices, as `arbitrary` takes them: up to three edits, what is generated, and the message. So a
//! mutated input is another message, not a text that is none; and the edits are within what is right but for them.

use arbitrary::{Arbitrary, Unstructured};
use tensorwire::testing::arbitrary::{nearly_valid, valid};
use tensorwire::testing::{
    BundledMessage, ControlMessage, FilledSlot, NearlyValid, Parameters, TensorMessage,
};

use super::case::{self, framed};
use super::decoded::{Decoded, assert_refused};
use super::{bundle, decode, differential, manifest, roundtrip, transfer_message};

/// A change of one byte.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Edit {
    Delete(u16),
    Insert(u16, u8),
    Replace(u16, u8),
}

pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let count = input.int_in_range(0..=3).unwrap_or(0);
    let edits: Vec<Edit> = (0..count).flat_map(|_| input.arbitrary()).collect();
    match input.int_in_range(0..=3).unwrap_or(0) {
        0 => {
            let (sent, nearly) = both::<TensorMessage>(&mut input);
            let frames = sent.frames().into_iter().map(<[u8]>::to_vec);
            messages(frames.collect(), &edits);
            messages(nearly.frames().to_vec(), &edits);
        }
        1 => {
            let (sent, nearly) = both::<BundledMessage>(&mut input);
            for bytes in [sent.bytes(), &nearly.frames()[0]] {
                for flags in [bundle::AS_IT_IS, bundle::PUT_RIGHT] {
                    bundle::run(&[&[flags], &*edited(bytes, &edits)].concat());
                }
            }
        }
        2 => {
            let (sent, nearly) = both::<ControlMessage>(&mut input);
            let payloads = [sent.payload()].into_iter();
            for payload in payloads.chain(nearly.frames().get(1).map(Vec::as_slice)) {
                let payload = edited(payload, &edits);
                transfer_message::run(&[&[case::DEFAULT], &*payload].concat());
            }
        }
        _ => {
            let (sent, nearly) = both::<FilledSlot>(&mut input);
            let nearly = (nearly.frames()[0].as_slice(), nearly.frames()[1].len());
            for (text, slot_len) in [(sent.manifest().as_bytes(), sent.slot().len()), nearly] {
                let slot_len = u16::try_from(slot_len).unwrap_or(u16::MAX);
                if let Ok(text) = str::from_utf8(&edited(text, &edits)) {
                    manifest::run(&manifest::seed(manifest::DEFAULT, slot_len, text));
                }
            }
        }
    }
}

/// A valid one and one that is nearly so, after a look at both.
fn both<T: Decoded>(input: &mut Unstructured<'_>) -> (T, NearlyValid<T>) {
    let parameters = Parameters::new();
    let sent: T = valid(input, &parameters);
    sent.assert_decodes(&parameters);
    let nearly = nearly_valid(input, &parameters);
    assert_refused(&nearly);
    (sent, nearly)
}

/// With their own payloads, and with such as fit.
fn messages(mut frames: Vec<Vec<u8>>, edits: &[Edit]) {
    let Some(metadata) = frames.first_mut() else {
        return;
    };
    *metadata = edited(metadata, edits);
    let fitting = [&[case::DEFAULT], metadata.as_slice()].concat();
    for data in [Some(fitting), framed(case::DEFAULT, &frames)]
        .iter()
        .flatten()
    {
        decode::run(data);
        differential::run(data);
        roundtrip::run(data);
    }
}

fn edited(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for edit in edits {
        let (Edit::Delete(at) | Edit::Insert(at, _) | Edit::Replace(at, _)) = *edit;
        let at = usize::from(at) % (bytes.len() + 1);
        match *edit {
            Edit::Insert(_, byte) => bytes.insert(at, byte),
            Edit::Replace(_, byte) => bytes.get_mut(at).into_iter().for_each(|old| *old = byte),
            Edit::Delete(_) => drop(bytes.splice(at..(at + 1).min(bytes.len()), [])),
        }
    }
    bytes
}
