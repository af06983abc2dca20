//! How often there is what tests made by hand leave out: a third of what was measured, or more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use tensorwire::DType;
use tensorwire::json::Value;
use tensorwire::testing::{ControlMessage, FilledSlot, Parameters, Tensor, TensorMessage};

use crate::{MANY, Source};

/// A name, in how many of a hundred messages there is one at the least, and what makes it one.
type Shape<T> = (&'static str, usize, fn(&T) -> bool);

/// Of messages with such a tensor.
const TENSORS: &[Shape<Tensor>] = &[
    ("rank 0", 15, |tensor| tensor.shape().is_empty()),
    ("a high rank", 12, |tensor| tensor.shape().len() == 5),
    ("no elements", 20, |tensor| tensor.bytes().is_empty()),
    ("large and empty", 1, |tensor| {
        tensor.shape().contains(&(1 << 16))
    }),
    ("a long dimension", 15, |tensor| {
        tensor.shape().iter().any(|&dim| dim > 4)
    }),
    ("a kilobyte", 7, |tensor| tensor.bytes().len() > 1000),
    ("a member of a list", 20, |tensor| {
        tensor.list_index().is_some()
    }),
    ("a high list index", 6, |tensor| {
        tensor.list_index() > Some(4000)
    }),
    ("an odd address", 10, |tensor| {
        tensor.bytes().as_ptr().addr() % 2 == 1
    }),
    ("not aligned", 10, |tensor| {
        !tensor.view().unwrap().is_aligned()
    }),
    ("all bits set", 8, |tensor| {
        tensor.bytes().starts_with(&[0xff])
    }),
    ("an empty name", 3, |tensor| tensor.name().is_empty()),
    ("a name to escape", 7, |tensor| {
        tensor.name().contains(|c| c < ' ' || "\"\\".contains(c))
    }),
    ("a name not ASCII", 12, |tensor| !tensor.name().is_ascii()),
    ("a name of the schema", 5, |tensor| {
        SCHEMA.contains(&tensor.name())
    }),
];

const SCHEMA: &[&str] = &["shape", "dtype", "tensor_descriptors", "scalar_fields"];

const MESSAGES: &[Shape<TensorMessage>] = &[
    ("no tensors", 5, |message| message.tensors().is_empty()),
    ("a hole in a list", 4, |message| {
        lists(message).any(has_hole)
    }),
    ("a list without its first", 6, |message| {
        lists(message).any(|list| list.iter().min() > Some(&0))
    }),
    ("a list out of order", 2, |message| {
        lists(message).any(|list| !list.is_sorted())
    }),
    ("raw UTF-8", 5, |message| !message.metadata().is_ascii()),
    ("escapes of letters", 8, |message| {
        text(message).contains("\\u007")
    }),
    ("white space", 6, |message| text(message).contains(": ")),
    ("another order of keys", 3, is_other_order),
    ("no list_index", 6, |message| {
        !text(message).contains("\"list_index\":-1")
    }),
    ("no scalar_fields", 5, |message| {
        !text(message).contains("scalar_fields")
    }),
    ("an unknown key", 2, |message| {
        let keys = ["edge_id", "strides", "shapes", "offsets"];
        keys.iter().any(|key| text(message).contains(key))
    }),
    ("more than 64 bits", 1, |message| {
        message
            .scalars()
            .contains("1267650600228229401496703205376")
    }),
    ("more than an i64", 1, |message| {
        message.scalars().contains("18446744073709551615")
    }),
    ("more than a float", 1, |message| {
        message.scalars().contains("1e400")
    }),
    ("a denormal float", 1, |message| {
        message.scalars().contains("5e-324")
    }),
    ("NaN", 2, |message| has_token(message, "NaN")),
    ("-Infinity", 2, |message| has_token(message, "-Infinity")),
    ("half of a pair", 2, |message| {
        message.scalars().contains("\\ud800")
    }),
    ("a key twice", 3, has_key_twice),
    ("values within values", 12, |message| {
        message.scalars()[1..].contains(['{', '['])
    }),
];

pub(crate) fn what_is_rare_occurs_often(source: &mut impl Source) {
    let parameters = Parameters::new();
    let messages: Vec<TensorMessage> = (0..MANY).map(|_| source.valid(&parameters)).collect();
    let often = |name: &dyn Debug, percent: usize, has: &dyn Fn(&TensorMessage) -> bool| {
        let count = messages.iter().filter(|message| has(message)).count();
        assert!(count * 100 >= percent * MANY, "{name:?}: {count} of {MANY}");
    };
    for (name, percent, has) in MESSAGES {
        often(name, *percent, has);
    }
    for (name, percent, has) in TENSORS {
        often(name, *percent, &|message| message.tensors().iter().any(has));
    }
    for &dtype in DType::ALL {
        let has = |tensor: &Tensor| tensor.dtype() == dtype && !tensor.bytes().is_empty();
        often(&dtype, 2, &|message| message.tensors().iter().any(has));
    }
}

/// In the order of the manifest, as Python lays them out, and in any other.
pub(crate) fn tensors_lie_in_any_order_in_their_slot(source: &mut impl Source) {
    let parameters = Parameters::new();
    let slots: Vec<FilledSlot> = (0..MANY).map(|_| source.valid(&parameters)).collect();
    let many = slots.iter().filter(|sent| sent.offsets().len() > 1);
    let (sorted, others): (Vec<_>, Vec<_>) = many.partition(|sent| sent.offsets().is_sorted());
    assert!(sorted.len() > MANY / 10, "{}", sorted.len());
    assert!(others.len() > MANY / 10, "{}", others.len());
}

pub(crate) fn all_types_of_control_messages_occur(source: &mut impl Source) {
    let parameters = Parameters::new();
    let messages: Vec<ControlMessage> = (0..MANY).map(|_| source.valid(&parameters)).collect();
    let seen: BTreeSet<_> = messages.iter().map(ControlMessage::msg_type).collect();
    // The oldest generation sends no scalars.
    let mut staged = messages
        .iter()
        .filter(|sent| sent.msg_type() == "transfer_staged");
    assert!(staged.any(|sent| {
        let payload = Value::parse(sent.payload()).unwrap().as_object().unwrap();
        payload.get("scalar_fields").is_none()
    }));
    let all = [
        "transfer_abort",
        "transfer_alloc",
        "transfer_allocated",
        "transfer_done",
        "transfer_push",
        "transfer_pushed",
        "transfer_ready",
        "transfer_register",
        "transfer_register_ack",
        "transfer_staged",
    ];
    assert_eq!(seen, BTreeSet::from(all));
}

fn text(message: &TensorMessage) -> &str {
    str::from_utf8(message.metadata()).unwrap()
}

/// The indices of each list, in wire order.
fn lists(message: &TensorMessage) -> impl Iterator<Item = Vec<u32>> {
    let mut lists = BTreeMap::<&str, Vec<u32>>::new();
    for tensor in message.tensors() {
        let list = lists.entry(tensor.name()).or_default();
        list.extend(tensor.list_index());
    }
    lists.into_values()
}

fn has_hole(list: Vec<u32>) -> bool {
    // Without one there are as many as from the first to the last.
    let (first, last) = (list.iter().min(), list.iter().max());
    last.zip(first)
        .is_some_and(|(last, first)| (last - first) as usize >= list.len())
}

fn is_other_order(message: &TensorMessage) -> bool {
    let text = text(message);
    let scalars = text.find("\"scalar_fields\"");
    scalars.is_some() && scalars < text.find("\"tensor_descriptors\"")
}

/// Whether a token stands there as it is, not in a text.
fn has_token(message: &TensorMessage, token: &str) -> bool {
    let mut starts = [":", ",", "["].iter();
    starts.any(|before| message.scalars().contains(&format!("{before}{token}")))
}

fn has_key_twice(message: &TensorMessage) -> bool {
    let scalars = Value::parse(message.scalars().as_bytes()).unwrap();
    let members = scalars.as_object().unwrap();
    let mut keys = BTreeSet::new();
    // Names are texts: there are no halves of pairs among them.
    members
        .iter()
        .any(|(key, _)| !keys.insert(key.to_cow().unwrap().into_owned()))
}
