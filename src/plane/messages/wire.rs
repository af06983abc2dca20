//! The metadata of a push and of its answer, written and read.

use alloc::vec::Vec;

use super::{Malformed, Refusal};
use crate::dtype::DType;
use crate::error::{EncodeError, ValueError};
use crate::json::{Array, Object, Str, Value};
use crate::message::{NO_TENSORS, Scalar, encode_to_vec};
use crate::tensor::Descriptor;

/// Which push a message is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Id {
    /// The plane that pushes.
    pub(super) origin: u64,
    /// Which of its pushes.
    pub(super) push: u64,
}

/// What the scalars of a push say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push<'a> {
    pub(super) id: Id,
    pub(super) session: Str<'a>,
    pub(super) addresses: Array<'a>,
}

/// What the scalars of an answer say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) id: Id,
    /// How many bytes were written, or why none were.
    pub(super) outcome: Result<u64, Refusal>,
}

/// Writes the metadata of a push; `pieces` are addresses and lengths.
pub(super) fn write_push(
    id: Id,
    session: &str,
    pieces: impl ExactSizeIterator<Item = (u64, usize)> + Clone,
) -> Result<Vec<u8>, EncodeError> {
    let shapes: Vec<[usize; 1]> = pieces.clone().map(|(_, len)| [len]).collect();
    let mut tensors = Vec::with_capacity(shapes.len());
    for (index, shape) in (0..).zip(&shapes) {
        let tensor = Descriptor::new(PIECES, DType::UInt8, shape)?;
        tensors.push(tensor.with_list_index(index));
    }
    let addresses: Vec<Scalar<'_>> = pieces.map(|(address, _)| address.into()).collect();
    let scalars = [
        (KIND, Scalar::from(KIND_PUSH)),
        (SESSION, session.into()),
        (ORIGIN, id.origin.into()),
        (PUSH, id.push.into()),
        (ADDRESSES, Scalar::List(&addresses)),
    ];
    encode_to_vec(&tensors, &scalars)
}

/// Reads the scalars of a push.
///
/// An error has the id with it if that could be read, so that it can be answered.
pub(super) fn read_push<'a>(scalars: Object<'a>) -> Result<Push<'a>, (Malformed, Option<Id>)> {
    let found = find(scalars, [KIND, SESSION, ORIGIN, PUSH, ADDRESSES]).map_err(|e| (e, None))?;
    let [kind, session, origin, push, addresses] = found;
    expect_kind(kind, KIND_PUSH).map_err(|malformed| (malformed, None))?;
    let id = read_id(origin, push).map_err(|malformed| (malformed, None))?;
    let rest = || -> Result<_, Malformed> {
        let session = required(session, SESSION)?;
        let addresses = required(addresses, ADDRESSES)?;
        Ok((
            session.as_str().map_err(of_key(SESSION))?,
            addresses.as_array().map_err(of_key(ADDRESSES))?,
        ))
    };
    let (session, addresses) = rest().map_err(|malformed| (malformed, Some(id)))?;
    Ok(Push {
        id,
        session,
        addresses,
    })
}

/// Writes the metadata of an answer.
pub(super) fn write_answer(answer: Answer) -> Result<Vec<u8>, EncodeError> {
    let Answer { id, outcome } = answer;
    let head = [
        (KIND, Scalar::from(KIND_ANSWER)),
        (ORIGIN, id.origin.into()),
        (PUSH, id.push.into()),
    ];
    let [kind, origin, push] = head;
    match outcome {
        Ok(written) => encode_to_vec(NO_TENSORS, &[kind, origin, push, (WRITTEN, written.into())]),
        Err(refusal) => {
            let (numbers, count) = refusal.numbers();
            let numbers = numbers.map(Scalar::from);
            let numbers = numbers.get(..count).unwrap_or_default();
            let reason = (REFUSED, refusal.name().into());
            let numbers = (NUMBERS, Scalar::List(numbers));
            encode_to_vec(NO_TENSORS, &[kind, origin, push, reason, numbers])
        }
    }
}

/// Reads the scalars of an answer.
pub(super) fn read_answer(scalars: Object<'_>) -> Result<Answer, Malformed> {
    let found = find(scalars, [KIND, ORIGIN, PUSH, WRITTEN, REFUSED, NUMBERS])?;
    let [kind, origin, push, written, refused, numbers] = found;
    expect_kind(kind, KIND_ANSWER)?;
    let id = read_id(origin, push)?;
    let outcome = match (written, refused) {
        (Some(_), Some(_)) => return Err(Malformed::Kind),
        (Some(written), None) => Ok(written.as_u64().map_err(of_key(WRITTEN))?),
        (None, refused) => {
            let name = required(refused, REFUSED)?;
            let name = name.as_str().map_err(of_key(REFUSED))?;
            Err(Refusal::read(name, &read_numbers(numbers)?[..]))
        }
    };
    Ok(Answer { id, outcome })
}

/// Reads one of the addresses of a push.
pub(super) fn read_address(address: Value<'_>) -> Result<u64, Malformed> {
    address.as_u64().map_err(of_key(ADDRESSES))
}

/// Reads the numbers of a reason: no more of them than any reason has, and one.
fn read_numbers(numbers: Option<Value<'_>>) -> Result<Vec<u64>, Malformed> {
    let numbers = required(numbers, NUMBERS)?;
    let numbers = numbers.as_array().map_err(of_key(NUMBERS))?;
    let most = Refusal::MAX_NUMBERS.saturating_add(1);
    let numbers = numbers.iter().take(most).map(|number| number.as_u64());
    numbers.collect::<Result<_, _>>().map_err(of_key(NUMBERS))
}

fn read_id(origin: Option<Value<'_>>, push: Option<Value<'_>>) -> Result<Id, Malformed> {
    let origin = required(origin, ORIGIN)?.as_u64().map_err(of_key(ORIGIN))?;
    let push = required(push, PUSH)?.as_u64().map_err(of_key(PUSH))?;
    Ok(Id { origin, push })
}

/// Finds the values of `keys` in one walk. Other members are skipped; a key of ours that
/// comes twice is refused, as two readers would disagree on which counts.
fn find<'a, const N: usize>(
    scalars: Object<'a>,
    keys: [&'static str; N],
) -> Result<[Option<Value<'a>>; N], Malformed> {
    let mut found = [None; N];
    for (name, value) in scalars.iter() {
        let place = keys.iter().zip(&mut found).find(|(key, _)| name == **key);
        if let Some((key, place)) = place
            && place.replace(value).is_some()
        {
            return Err(Malformed::Twice { key });
        }
    }
    Ok(found)
}

fn expect_kind(kind: Option<Value<'_>>, expected: &str) -> Result<(), Malformed> {
    let kind = required(kind, KIND)?.as_str().map_err(of_key(KIND))?;
    if kind == expected {
        Ok(())
    } else {
        Err(Malformed::Kind)
    }
}

fn required<'a>(value: Option<Value<'a>>, key: &'static str) -> Result<Value<'a>, Malformed> {
    value.ok_or(Malformed::Missing { key })
}

fn of_key(key: &'static str) -> impl Fn(ValueError) -> Malformed {
    move |error| Malformed::Scalar { key, error }
}

/// The name of the list that has the pieces.
pub(super) const PIECES: &str = "pieces";

const ADDRESSES: &str = "addresses";
const KIND: &str = "_plane";
const KIND_ANSWER: &str = "answer";
const KIND_PUSH: &str = "push";
const NUMBERS: &str = "numbers";
const ORIGIN: &str = "origin";
const PUSH: &str = "push";
const REFUSED: &str = "refused";
const SESSION: &str = "session";
const WRITTEN: &str = "written";

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Id = Id {
        origin: u64::MAX,
        push: 7,
    };

    #[test]
    fn a_push_is_written_as_drawn_and_read_again() {
        let pieces = [(139_637_976_727_552, 1024), (u64::MAX, 0)];
        let text = write_push(ID, "tcp://10.0.0.7:5555#8f", pieces.into_iter()).unwrap();
        let expected = concat!(
            r#"{"tensor_descriptors":["#,
            r#"{"field_name":"pieces","shape":[1024],"dtype":"uint8","list_index":0},"#,
            r#"{"field_name":"pieces","shape":[0],"dtype":"uint8","list_index":1}],"#,
            r#""scalar_fields":{"_plane":"push","session":"tcp://10.0.0.7:5555#8f","#,
            r#""origin":18446744073709551615,"push":7,"#,
            r#""addresses":[139637976727552,18446744073709551615]}}"#,
        );
        assert_eq!(core::str::from_utf8(&text), Ok(expected));
        let value = Value::parse(&text).unwrap().as_object().unwrap();
        let scalars = value.field("scalar_fields").unwrap().as_object().unwrap();
        let push = read_push(scalars).unwrap();
        assert_eq!(push.id, ID);
        assert!(push.session == "tcp://10.0.0.7:5555#8f");
        let addresses: Vec<_> = push.addresses.iter().map(|a| read_address(a)).collect();
        assert_eq!(addresses, [Ok(139_637_976_727_552), Ok(u64::MAX)]);
        assert_eq!(read_answer(scalars), Err(Malformed::Kind));
    }

    #[test]
    fn an_answer_is_written_as_drawn_and_read_again() {
        let (len, room) = (1024, 512);
        for (outcome, expected) in [
            (Ok(1024), r#""written":1024}}"#),
            (
                Err(Refusal::PastWindow { len, room }),
                r#""refused":"past_window","numbers":[1024,512]}}"#,
            ),
            (Err(Refusal::Busy), r#""refused":"busy","numbers":[]}}"#),
        ] {
            let answer = Answer { id: ID, outcome };
            let text = write_answer(answer).unwrap();
            let head = concat!(
                r#"{"tensor_descriptors":[],"scalar_fields":{"_plane":"answer","#,
                r#""origin":18446744073709551615,"push":7,"#,
            );
            let written = core::str::from_utf8(&text).unwrap();
            assert_eq!(written.strip_prefix(head), Some(expected));
            let value = Value::parse(&text).unwrap().as_object().unwrap();
            let scalars = value.field("scalar_fields").unwrap().as_object().unwrap();
            assert_eq!(read_answer(scalars), Ok(answer));
            assert_eq!(read_push(scalars).unwrap_err(), (Malformed::Kind, None));
        }
    }
}
