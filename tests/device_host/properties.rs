//! What holds for every message, whoever made it up.

use proptest::prelude::*;
use tensorwire::device::host::{Host, Stream};
use tensorwire::device::{Device, Landing};
use tensorwire::message::Decoder;
use tensorwire::testing::{Parameters, TensorMessage};
use tensorwire::transport::Wait;

use crate::{assert_same, downloaded, uploaded};

/// Messages as Python writes them, and as they are written here again.
fn sent() -> impl Strategy<Value = TensorMessage> {
    any_with::<TensorMessage>(Parameters::new().with_python_spelling(true))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_go_through_the_host_and_come_out_the_same(sent in sent(), batch_bytes in 0..2000_usize) {
        let frames = sent.frames();
        let host = Host::new().with_batch_bytes(batch_bytes);
        let tensors = uploaded(&host, &frames);
        assert_same(&tensors, &frames);
        let mut decoder = Decoder::new();
        let scalars = decoder.decode(&frames).unwrap().scalars();
        let parts = downloaded(&tensors).into_parts(&scalars).unwrap();
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        prop_assert_eq!(parts, frames);
    }

    #[test]
    fn payloads_land_however_they_are_cut(
        sent in sent(),
        batch_bytes in 0..2000_usize,
        pieces in proptest::collection::vec((1..3000_usize, any::<bool>()), 1..20),
    ) {
        let frames = sent.frames();
        let payloads = frames[1..].concat();
        let host = Host::new().with_batch_bytes(batch_bytes);
        let mut decoder = Decoder::new();
        let metadata = decoder.decode_metadata(sent.metadata()).unwrap();
        let mut landing = host.land(&metadata, &Stream).unwrap();
        let mut rest = &payloads[..];
        for (piece, in_place) in pieces.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let mut len = piece.min(rest.len());
            if in_place {
                let room = landing.room(Wait::Never).unwrap();
                len = len.min(room.len());
                room[..len].copy_from_slice(&rest[..len]);
                landing.filled(len).unwrap();
            } else {
                landing.copy_from(&rest[..len], Wait::Never).unwrap();
            }
            rest = &rest[len..];
            prop_assert_eq!(landing.missing(), rest.len());
        }
        assert_same(&landing.finish().unwrap(), &frames);
    }
}
