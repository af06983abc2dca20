//! Manifests that are to be written, and those that cannot be.

use super::*;
use tensorwire::error::EncodeError;
use tensorwire::transfer::manifest::{ALIGNMENT, encoded_len};

fn descriptor(name: &str, list_index: Option<u32>, bytes: usize) -> Descriptor<'_> {
    let shape: &'static [usize] = Box::leak(Box::new([bytes]));
    let plain = Descriptor::new(name, DType::UInt8, shape).unwrap();
    match list_index {
        Some(index) => plain.with_list_index(index),
        None => plain,
    }
}

/// Name and list index.
type Place = (&'static str, Option<u32>);

/// (in order, why they cannot be written)
const REFUSED: &[(&[Place], EncodeError)] = &[
    (
        &[("a", None), ("b", None), ("a", None)],
        EncodeError::DuplicateField { index: 2 },
    ),
    (
        &[("a", None), ("a", None)],
        EncodeError::DuplicateField { index: 1 },
    ),
    (
        &[("a", Some(1)), ("a", Some(0)), ("a", Some(1))],
        EncodeError::DuplicateListIndex { index: 2 },
    ),
    (
        &[("a", Some(1)), ("a", None)],
        EncodeError::MixedField { index: 1 },
    ),
    (
        &[("a", Some(0)), ("b", None), ("a", Some(1))],
        EncodeError::ScatteredList { index: 2 },
    ),
    (
        &[
            ("a", Some(0)),
            ("a", Some(1)),
            ("b", Some(0)),
            ("b", Some(1)),
            ("c", None),
            ("b", Some(2)),
        ],
        EncodeError::ScatteredList { index: 5 },
    ),
];

#[test]
fn tensors_that_no_reader_could_tell_apart_are_refused() {
    let mut buffer = [0xa5; 512];
    for (tensors, error) in REFUSED {
        let tensors: Vec<_> = tensors
            .iter()
            .map(|&(name, index)| descriptor(name, index, 1))
            .collect();
        assert_eq!(Plan::new(&tensors).err(), Some(*error));
        let entries = tensors.iter().enumerate();
        let entries: Vec<_> = entries
            .map(|(at, tensor)| Entry::new(*tensor, at).unwrap())
            .collect();
        assert_eq!(encoded_len(&entries), Err(*error));
        assert_eq!(encode_into(&entries, &mut buffer), Err(*error));
    }
    let lone = Value::parse(br#"{"\ud800":0}"#)
        .unwrap()
        .as_object()
        .unwrap();
    let (name, _) = lone.iter().next().unwrap();
    let lone = Descriptor::new(name, DType::Bool, &[]).unwrap();
    let tensors = [descriptor("a", None, 1), lone];
    assert_eq!(
        Plan::new(&tensors).err(),
        Some(EncodeError::InvalidName { index: 1 })
    );
    assert_eq!(buffer, [0xa5; 512]);
}

#[test]
fn a_scattered_list_is_found_among_many() {
    for count in [15, 16, 17, 40, 1000] {
        let names: Vec<_> = (0..count).map(|at| format!("field-{at}")).collect();
        let fields = names
            .iter()
            .flat_map(|name| [0, 1].map(|index| descriptor(name, Some(index), 1)));
        let mut tensors: Vec<_> = fields.collect();
        assert!(Plan::new(&tensors).is_ok());
        tensors.push(descriptor(&names[count / 2], Some(2), 1));
        let error = EncodeError::ScatteredList { index: 2 * count };
        assert_eq!(Plan::new(&tensors).err(), Some(error));
    }
}

/// Offset and length, or the second and the first of two.
type Pair = (usize, usize);

/// (each tensor, those that overlap)
const PLACES: &[(&[Pair], Option<Pair>)] = &[
    (&[(0, 4), (4, 4), (8, 0), (8, 1)], None),
    (&[(8, 1), (4, 4), (0, 4)], None),
    (&[(0, 4), (2, 0), (0, 0)], None),
    (&[(0, 4), (3, 1)], Some((1, 0))),
    (&[(3, 1), (0, 4)], Some((1, 0))),
    (&[(0, 1), (10, 2), (1, 9), (8, 1)], Some((3, 2))),
    (&[(5, 5), (5, 5)], Some((1, 0))),
    (&[(0, 10), (20, 10), (12, 2), (13, 1)], Some((3, 2))),
];

#[test]
fn entries_at_given_places_are_refused_where_they_share_bytes() {
    for (places, error) in PLACES {
        let names: Vec<_> = (0..places.len()).map(|at| format!("t{at}")).collect();
        let entries: Vec<_> = names
            .iter()
            .zip(*places)
            .map(|(name, (offset, len))| Entry::new(descriptor(name, None, *len), *offset).unwrap())
            .collect();
        let error = error.map(|(index, other)| EncodeError::Overlap { index, other });
        assert_eq!(encoded_len(&entries).err(), error, "{places:?}");
    }
}

#[test]
fn a_slot_has_room_for_the_gaps() {
    // As Python counts them, two bytes.
    let tensors = [descriptor("a", None, 1), descriptor("b", None, 1)];
    assert_eq!(Plan::new(&tensors).unwrap().slot_len(), ALIGNMENT + 1);
    let (none, last) = (
        &tensors[..0],
        [descriptor("a", None, 512), descriptor("b", None, 0)],
    );
    assert_eq!(Plan::new(none).unwrap().slot_len(), 0);
    assert_eq!(Plan::new(&last).unwrap().slot_len(), 512);

    let views = [
        TensorView::from_slice("a", &[1], &[1_u8]).unwrap(),
        TensorView::from_slice("b", &[2], &[2_u8, 3]).unwrap(),
        TensorView::from_slice("c", &[0], &[0_u8; 0]).unwrap(),
    ];
    let plan = Plan::new(&views).unwrap();
    let mut slot = vec![0xa5; 1024];
    let short = plan.store(&mut slot[..1023]);
    let (needed, capacity) = (1024, 1023);
    assert_eq!(short, Err(EncodeError::SlotTooSmall { needed, capacity }));
    assert!(slot.iter().all(|byte| *byte == 0xa5));
    slot.extend([0xa5; 8]);
    plan.store(&mut slot).unwrap();
    let mut expected = vec![0; 1024];
    (expected[0], expected[512], expected[513]) = (1, 2, 3);
    expected.extend([0xa5; 8]);
    assert_eq!(slot, expected);
}

#[test]
fn a_slot_of_too_many_bytes_is_refused() {
    let most = usize::try_from(isize::MAX).unwrap();
    let large = descriptor("a", None, most);
    let small = descriptor("b", None, 1);
    assert_eq!(Plan::new([large]).unwrap().slot_len(), most);
    assert_eq!(
        Plan::new([large, small]).err(),
        Some(EncodeError::SlotOverflow)
    );
    assert_eq!(
        Plan::new([small, large]).err(),
        Some(EncodeError::SlotOverflow)
    );
    for (descriptor, offset) in [
        (large, 1),
        (small, most),
        (small, usize::MAX),
        (large, usize::MAX),
    ] {
        let error = Entry::new(descriptor, offset).err();
        assert_eq!(error, Some(EncodeError::SlotOverflow));
    }
    assert_eq!(Entry::new(small, most - 1).unwrap().range(), most - 1..most);
}

#[test]
fn a_short_buffer_is_left_blank_and_the_length_told() {
    let tensors = [descriptor("caf\u{e9}", Some(3), 1)];
    let plan = Plan::new(&tensors).unwrap();
    let text = r#"{"caf\u00e9":[{"offset":0,"shape":[1],"dtype":"uint8","list_index":3}]}"#;
    for capacity in 0..text.len() {
        let mut buffer = vec![0xa5; capacity];
        let needed = text.len();
        let error = EncodeError::BufferTooSmall { needed, capacity };
        assert_eq!(plan.encode_into(&mut buffer), Err(error));
        assert!(buffer.iter().all(|byte| *byte == 0));
    }
    let mut buffer = vec![0xa5; text.len() + 2];
    assert_eq!(plan.encode_into(&mut buffer).unwrap(), text.as_bytes());
    assert_eq!(buffer[text.len()..], [0xa5; 2]);
}
