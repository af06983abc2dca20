//! What holds for every message, whoever made it up.

#![cfg(feature = "proptest")]

mod strategies;

/// The oracles of the fuzz targets.
#[allow(dead_code, unreachable_pub, reason = "a part is used here")]
#[path = "../fuzz/src"]
mod fuzz {
    pub mod case;
    pub mod check;
    pub mod naive;
    pub mod scalars;
    pub mod tree;
}

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tensorwire::dtype::Generation;
use tensorwire::error::{DecodeError, DecodeErrorKind, EncodeError, SyntaxError};
use tensorwire::json::Value;
use tensorwire::message::{Decoder, encode_into, encode_to_vec};
use tensorwire::{DType, Limits, Options, Storage, TensorView};

use fuzz::case::Frame;
use fuzz::check::{self, Summary, Tensor};
use fuzz::naive;
use fuzz::tree;
use strategies::{Sent, Spelling};

fn decode(frames: &[Vec<u8>]) -> Result<Summary, DecodeError> {
    decode_with(Options::new(), frames)
}

fn decode_with<F: AsRef<[u8]>>(options: Options, frames: &[F]) -> Result<Summary, DecodeError> {
    let mut decoder = Decoder::with_options(options);
    let message = decoder.decode(frames)?;
    Ok(Summary::of(&message))
}

/// Asserts that another spelling of the metadata says the same.
fn assert_same(sent: &Sent, spelling: &Spelling) {
    let frames = sent.spelled(spelling);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&frames);
    let message = message.unwrap_or_else(|error| {
        panic!("{error} in {}", String::from_utf8_lossy(&frames[0]));
    });
    sent.assert_read(&message);
    check::message(&message);
    // The spelling is forgotten, but for the scalars', which are passed on as they stand.
    let views: Vec<_> = message.tensors().collect();
    let scalars = Value::parse(b"{}").unwrap();
    let again = encode_to_vec(&views, &scalars).unwrap();
    let views: Vec<_> = sent.tensors.iter().map(strategies::view).collect();
    assert_eq!(again, encode_to_vec(&views, &scalars).unwrap());
}

fn limits(set: impl Fn(Limits) -> Limits) -> Options {
    Options::new().with_limits(set(Limits::new()))
}

type SetLimit = fn(Limits, usize) -> Limits;

/// Changes to a text, each of which may break it.
#[derive(Clone, Debug)]
enum Damage {
    Delete(Index, usize),
    Duplicate(Index, usize),
    Flip(Index, u8),
    Insert(Index, u8),
    Move(Index, usize, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = prop_oneof![
        proptest::sample::select(b"{}[],:\"\\-0e.tnIN \n".to_vec()),
        any::<u8>()
    ];
    prop_oneof![
        (any::<Index>(), 1..20_usize).prop_map(|(at, len)| Damage::Delete(at, len)),
        (any::<Index>(), 1..80_usize).prop_map(|(at, len)| Damage::Duplicate(at, len)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), byte).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        (any::<Index>(), 1..40_usize, any::<Index>())
            .prop_map(|(at, len, to)| Damage::Move(at, len, to)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let range = |at: &Index, len: usize| {
            let start = at.index(bytes.len());
            start..bytes.len().min(start + len)
        };
        match self {
            Self::Delete(at, len) => drop(bytes.drain(range(at, *len))),
            Self::Duplicate(at, len) => {
                let range = range(at, *len);
                let copy = bytes[range.clone()].to_vec();
                bytes.splice(range.end..range.end, copy);
            }
            Self::Flip(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Self::Move(at, len, to) => {
                let piece: Vec<_> = bytes.drain(range(at, *len)).collect();
                let to = to.index(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_sent_is_what_is_received(sent in strategies::sent()) {
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        sent.assert_read(&message);
        check::message(&message);
    }

    #[test]
    fn what_is_received_is_sent_on_byte_for_byte(sent in strategies::sent()) {
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let views: Vec<_> = message.tensors().collect();
        let again = encode_to_vec(&views, &message.scalars()).unwrap();
        prop_assert_eq!(&again, &frames[0]);
        // And is what the simple writer writes.
        let oracle = naive::decode(&frames, &Limits::new(), false, Generation::Extended).unwrap();
        prop_assert_eq!(again, naive::encode(&oracle.tensors, oracle.scalars).into_bytes());
    }

    #[test]
    fn any_bytes_decode_or_fail_within_them(
        frames in vec(vec(any::<u8>(), 0..40), 0..4),
        wrapped in any::<bool>(),
    ) {
        let mut frames = frames;
        if let (true, Some(metadata)) = (wrapped, frames.first_mut()) {
            *metadata = [b"{\"tensor_descriptors\":[", metadata.as_slice(), b"]}"].concat();
        }
        match decode(&frames) {
            Ok(summary) => prop_assert_eq!(summary.tensors.len() + 1, frames.len()),
            Err(error) => check::error(error, &frames),
        }
    }

    #[test]
    fn damaged_metadata_decodes_or_fails_as_the_naive_reader_has_it(
        sent in strategies::sent(),
        spelling in strategies::spelling(),
        damages in vec(damage(), 1..4),
        spelled in any::<bool>(),
    ) {
        let mut frames = if spelled { sent.spelled(&spelling) } else { sent.frames() };
        damages.iter().for_each(|damage| damage.apply(&mut frames[0]));
        let mut decoder = Decoder::new();
        let result = decoder.decode(&frames);
        let oracle = naive::decode(&frames, &Limits::new(), false, Generation::Extended);
        prop_assert_eq!(result.is_ok(), oracle.is_ok());
        match result {
            Ok(message) => check::message(&message),
            Err(error) => check::error(error, &frames),
        }
    }

    #[test]
    fn metadata_cut_anywhere_ends_too_early(
        sent in strategies::sent(),
        spelling in strategies::spelling(),
    ) {
        let frames = sent.spelled(&spelling);
        let whole = frames[0].trim_ascii_end();
        for cut in 0..whole.len() {
            let metadata = &whole[..cut];
            let error = decode(&sent.frames_after(metadata.to_vec())).unwrap_err();
            match str::from_utf8(metadata) {
                Ok(_) => {
                    let kind = DecodeErrorKind::Syntax(SyntaxError::UnexpectedEnd);
                    prop_assert_eq!((error.kind(), error.offset()), (kind, cut));
                }
                Err(utf8) => {
                    prop_assert_eq!(error.kind(), DecodeErrorKind::InvalidUtf8);
                    prop_assert_eq!(error.offset(), utf8.valid_up_to());
                }
            }
        }
    }

    #[test]
    fn descriptors_and_frames_may_change_places_together(
        (sent, moved) in strategies::sent().prop_flat_map(|sent| {
            let tensors = Just(sent.tensors.clone()).prop_shuffle();
            (Just(sent), tensors)
        }),
    ) {
        let moved = Sent { tensors: moved, ..sent.clone() };
        let frames = moved.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        for tensor in &sent.tensors {
            let view = match tensor.list_index {
                None => message.tensor(&tensor.name).unwrap(),
                Some(index) => {
                    let list = message.list(&tensor.name).unwrap();
                    list.get(index as usize).unwrap()
                }
            };
            prop_assert_eq!(view.bytes(), tensor.bytes.as_slice());
            prop_assert_eq!(view.dims().collect::<Vec<_>>(), tensor.shape.clone());
            prop_assert_eq!(view.dtype(), tensor.dtype);
        }
        // The frames alone: it is an error unless all sizes happen to be equal.
        let swapped = moved.frames_after(sent.frames().swap_remove(0));
        let pairs = || sent.tensors.iter().zip(&moved.tensors);
        match decode(&swapped) {
            Ok(_) => prop_assert!(pairs().all(|(a, b)| a.bytes.len() == b.bytes.len())),
            Err(error) => {
                let first = pairs().position(|(a, b)| a.bytes.len() != b.bytes.len());
                prop_assert_eq!(error.descriptor(), first);
                let (a, b) = pairs().nth(first.unwrap()).unwrap();
                let (expected, actual) = (a.bytes.len(), b.bytes.len());
                let kind = DecodeErrorKind::FrameLength { expected, actual };
                prop_assert_eq!(error.kind(), kind);
            }
        }
    }

    #[test]
    fn a_frame_too_many_or_too_few_is_an_error(sent in strategies::sent(), at: Index) {
        let frames = sent.frames();
        let expected = sent.tensors.len();
        let kind = |actual| DecodeErrorKind::FrameCount { expected, actual };
        let mut more = frames.clone();
        more.insert(1 + at.index(frames.len()), vec![]);
        prop_assert_eq!(decode(&more).unwrap_err().kind(), kind(expected + 1));
        if expected > 0 {
            let mut fewer = frames;
            fewer.remove(1 + at.index(expected));
            prop_assert_eq!(decode(&fewer).unwrap_err().kind(), kind(expected - 1));
        }
    }

    #[test]
    fn unknown_keys_say_nothing(sent in strategies::sent(), seed: u64) {
        assert_same(&sent, &Spelling { unknown_keys: true, seed, ..Spelling::default() });
    }

    #[test]
    fn the_order_of_keys_says_nothing(sent in strategies::sent(), seed: u64) {
        assert_same(&sent, &Spelling { key_order: true, seed, ..Spelling::default() });
    }

    #[test]
    fn white_space_between_tokens_says_nothing(sent in strategies::sent(), seed: u64) {
        // Without white space descriptors are read by the fast path, with it by the other.
        assert_same(&sent, &Spelling { white_space: true, seed, ..Spelling::default() });
    }

    #[test]
    fn every_spelling_of_a_string_is_that_string(sent in strategies::sent(), seed: u64) {
        assert_same(&sent, &Spelling { escapes: true, seed, ..Spelling::default() });
    }

    #[test]
    fn all_freedoms_together_say_nothing(
        sent in strategies::sent(),
        spelling in strategies::spelling(),
    ) {
        assert_same(&sent, &spelling);
    }

    #[test]
    fn a_limit_that_is_just_met_passes_and_one_less_refuses(
        sent in strategies::sent(),
        spelling in strategies::spelling(),
    ) {
        for frames in [sent.frames(), sent.spelled(&Spelling { unknown_keys: false, ..spelling })] {
            let tensors = || sent.tensors.iter();
            let most = |size: fn(&Tensor) -> usize| tensors().map(size).max().unwrap_or(0);
            let metadata_bytes = frames[0].len();
            let name_bytes = most(|tensor| tensor.name.len());
            let rank = most(|tensor| tensor.shape.len());
            let list_index = most(|tensor| tensor.list_index.unwrap_or(0) as usize);
            let tensor_bytes = tensors().map(|tensor| tensor.bytes.len()).sum::<usize>();
            let depth = 2 + tree::members_depth(&sent.scalars);
            let cases: &[(usize, SetLimit)] = &[
                (metadata_bytes, Limits::with_metadata_bytes),
                (sent.tensors.len(), Limits::with_descriptors),
                (name_bytes, Limits::with_name_bytes),
                (rank, Limits::with_rank),
                (list_index, Limits::with_list_index),
                (tensor_bytes, Limits::with_tensor_bytes),
                (depth, Limits::with_depth),
            ];
            let kinds = |limit: usize| [
                DecodeErrorKind::MetadataLimit { limit, actual: metadata_bytes },
                DecodeErrorKind::DescriptorLimit { limit },
                DecodeErrorKind::NameLimit { limit, actual: name_bytes },
                DecodeErrorKind::RankLimit { limit },
                DecodeErrorKind::ListIndexLimit { limit },
                DecodeErrorKind::TensorBytesLimit { limit },
                DecodeErrorKind::DepthLimit { limit },
            ];
            for (place, &(size, with)) in cases.iter().enumerate() {
                let options = |size| limits(|limits| with(limits, size));
                let result = decode_with(options(size), &frames);
                prop_assert!(result.is_ok(), "{size}: {}", result.unwrap_err());
                if let Some(less) = size.checked_sub(1) {
                    let error = decode_with(options(less), &frames).unwrap_err();
                    check::error(error, &frames);
                    prop_assert_eq!(error.kind(), kinds(less)[place]);
                }
            }
        }
    }

    #[test]
    fn storage_needs_a_place_for_each_descriptor_and_no_more(sent in strategies::sent()) {
        fn check<const N: usize>(sent: &Sent) {
            let frames = sent.frames();
            let mut storage = Storage::<N>::new();
            match Options::new().decode(&frames, &mut storage) {
                Ok(message) => {
                    assert!(sent.tensors.len() <= N);
                    sent.assert_read(&message);
                }
                Err(error) => {
                    let capacity = N;
                    assert!(sent.tensors.len() > N);
                    assert_eq!(error.kind(), DecodeErrorKind::StorageFull { capacity });
                    check::error(error, &frames);
                }
            }
        }
        check::<0>(&sent);
        check::<1>(&sent);
        check::<2>(&sent);
        check::<4>(&sent);
        check::<12>(&sent);
    }

    #[test]
    fn parts_of_a_tensor_are_slices_of_it(tensor in strategies::contents()) {
        fn walk(view: &TensorView<'_>, shape: &[usize], bytes: &[u8]) {
            assert!(view.dims().eq(shape.iter().copied()));
            assert_eq!(view.bytes(), bytes);
            assert_eq!(view.flatten().bytes(), bytes);
            let Some((&count, inner)) = shape.split_first() else {
                assert!(view.index(0).is_none());
                return;
            };
            assert!(view.index(count).is_none());
            let size = inner.iter().product::<usize>() * view.dtype().size();
            for index in 0..count.min(4) {
                let part = view.index(index).unwrap();
                walk(&part, inner, &bytes[index * size..][..size]);
                let flat = view.flatten();
                if size > 0 && inner.iter().all(|&dim| dim == 1) {
                    assert_eq!(flat.index(index).unwrap().bytes(), part.bytes());
                }
            }
        }
        walk(&strategies::view(&tensor), &tensor.shape, &tensor.bytes);
    }

    #[test]
    fn elements_are_the_same_at_every_address(tensor in strategies::contents()) {
        // `check::view` copies through dirty scratch, too.
        for shift in 0..16 {
            let frame = Frame::new(&tensor.bytes, shift);
            let view = TensorView::new(strategies::descriptor(&tensor), frame.as_ref()).unwrap();
            check::view(&view);
            let alignment = tensor.dtype.alignment();
            prop_assert_eq!(view.is_aligned(), tensor.bytes.is_empty() || shift % alignment == 0);
        }
    }

    #[test]
    fn bools_are_those_bytes_that_are_zero_or_one(
        bytes in vec(prop_oneof![9 => 0..2_u8, 1 => any::<u8>()], 0..20),
        shift in 0..16_usize,
    ) {
        let frame = Frame::new(&bytes, shift);
        let shape = [bytes.len()];
        let view = TensorView::from_bytes("mask", DType::Bool, &shape, frame.as_ref()).unwrap();
        check::view(&view);
        let valid = bytes.iter().all(|&byte| byte < 2);
        prop_assert_eq!(view.as_slice::<bool>().is_ok(), valid);
        prop_assert_eq!(view.elements::<bool>().is_ok(), valid);
        prop_assert_eq!(view.bytes(), bytes);
    }

    #[test]
    fn storage_remembers_nothing(
        before in strategies::sent(),
        sent in strategies::sent(),
        damages in vec(damage(), 0..3),
    ) {
        let mut earlier = before.frames();
        damages.iter().for_each(|damage| damage.apply(&mut earlier[0]));
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let mut storage = Storage::<12>::new();
        let _ = decoder.decode(&earlier);
        let _ = Options::new().decode(&earlier, &mut storage);
        let message = decoder.decode(&frames).unwrap();
        sent.assert_read(&message);
        check::message(&message);
        if let Ok(message) = Options::new().decode(&frames, &mut storage) {
            sent.assert_read(&message);
            check::message(&message);
        }
    }

    #[test]
    fn lists_have_their_holes_in_any_order_of_the_wire(
        members in vec(proptest::option::of(strategies::contents()), 1..9).prop_flat_map(|members| {
            let places = (0..members.len()).collect::<Vec<_>>();
            (Just(members), Just(places).prop_shuffle())
        }),
        name in strategies::name(),
    ) {
        let (members, order) = members;
        let tensors = order.iter().filter_map(|&place| {
            let list_index = Some(place as u32);
            members[place].clone().map(|contents| Tensor { name: name.clone(), list_index, ..contents })
        });
        let sent = Sent { tensors: tensors.collect(), scalars: vec![] };
        let frames = sent.frames();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let Some(list) = message.list(&name) else {
            prop_assert!(sent.tensors.is_empty());
            return Ok(());
        };
        let read: Vec<_> = list.iter().map(|member| member.map(|view| view.bytes())).collect();
        let mut expected: Vec<_> = members
            .iter()
            .map(|member| member.as_ref().map(|tensor| tensor.bytes.as_slice()))
            .collect();
        while expected.last() == Some(&None) {
            expected.pop();
        }
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn scalars_are_read_as_they_were_written(members in strategies::scalars()) {
        fuzz::scalars::check(&members);
    }

    #[test]
    fn the_writer_refuses_what_the_reader_refuses(
        tensors in strategies::tensors(),
        copied: Index,
        to: Index,
        list_index in proptest::option::of(0..3_u32),
        many in any::<bool>(),
    ) {
        let mut tensors = tensors;
        if many {
            // Past the number that is compared pair by pair.
            let scalar = Tensor { name: String::new(), list_index: None, dtype: DType::UInt8, shape: vec![], bytes: vec![0] };
            tensors.extend((0..20).map(|index| Tensor { name: format!("many-{index}"), ..scalar.clone() }));
        }
        if !tensors.is_empty() {
            let mut copy = tensors[copied.index(tensors.len())].clone();
            copy.list_index = list_index;
            tensors.insert(to.index(tensors.len() + 1), copy);
        }
        let sent = Sent { tensors, scalars: vec![] };
        let frames = sent.spelled(&Spelling::default());
        let views: Vec<_> = sent.tensors.iter().map(strategies::view).collect();
        let result = encode_to_vec(&views, &Value::parse(b"{}").unwrap());
        match (decode(&frames), result) {
            (Ok(summary), Ok(_)) => prop_assert_eq!(summary.tensors, sent.tensors),
            (Err(read), Err(written)) => {
                check::error(read, &frames);
                let (kind, index) = match written {
                    EncodeError::DuplicateField { index } => (DecodeErrorKind::DuplicateField, index),
                    EncodeError::MixedField { index } => (DecodeErrorKind::MixedField, index),
                    EncodeError::DuplicateListIndex { index } => {
                        let list_index = sent.tensors[index].list_index.unwrap() as usize;
                        (DecodeErrorKind::DuplicateListIndex { list_index }, index)
                    }
                    other => panic!("{other}"),
                };
                prop_assert_eq!((read.kind(), read.descriptor()), (kind, Some(index)));
            }
            (read, written) => panic!("{read:?} against {written:?}"),
        }
    }

    #[test]
    fn a_buffer_too_short_is_told_the_length_and_left_blank(sent in strategies::sent(), short: Index) {
        let frames = sent.frames();
        let places = tree::places(&sent.scalars);
        let scalars = tree::scalars(&sent.scalars, &mut places.as_slice());
        let views: Vec<_> = sent.tensors.iter().map(strategies::view).collect();
        let (needed, capacity) = (frames[0].len(), short.index(frames[0].len()));
        let mut buffer = vec![0xa5; needed + 3];
        let error = encode_into(&views, scalars.as_slice(), &mut buffer[..capacity]);
        prop_assert_eq!(error.unwrap_err(), EncodeError::BufferTooSmall { needed, capacity });
        prop_assert!(buffer[..capacity].iter().all(|&byte| byte == 0));
        prop_assert!(buffer[capacity..].iter().all(|&byte| byte == 0xa5));
        let written = encode_into(&views, scalars.as_slice(), &mut buffer).unwrap();
        prop_assert_eq!(&*written, frames[0].as_slice());
        prop_assert_eq!(&buffer[needed..], &[0xa5; 3]);
    }
}

#[cfg(feature = "_differential")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_fast_path_is_the_general_path(
        sent in strategies::sent(),
        spelling in strategies::spelling(),
        damages in vec(damage(), 0..3),
        spelled in any::<bool>(),
        cap in 0..8_usize,
    ) {
        let mut frames = if spelled { sent.spelled(&spelling) } else { sent.frames() };
        damages.iter().for_each(|damage| damage.apply(&mut frames[0]));
        let options = limits(|limits| match cap {
            0 => limits.with_name_bytes(3),
            1 => limits.with_rank(2),
            2 => limits.with_list_index(2),
            3 => limits.with_tensor_bytes(40),
            4 => limits.with_descriptors(3),
            _ => limits,
        });
        let fast = decode_with(options, &frames);
        prop_assert_eq!(fast, decode_with(options.without_speculation(), &frames));
    }
}
