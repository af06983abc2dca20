//! Control messages that the Python side wrote are read as it meant them, and written as it wrote them.

#![cfg(feature = "alloc")]

mod common;

use common::{frames, lines};
use tensorwire::transfer::Control;

#[test]
fn every_recorded_message_is_written_again_byte_for_byte() {
    let messages = lines("transfer.jsonl");
    assert_eq!(messages.len(), 363);
    for line in messages {
        let name = line["name"].as_str().unwrap();
        let frames = frames(&line);
        let control = Control::from_frames(&frames).unwrap();
        assert!(
            control.msg_type() == line["msg_type"].as_str().unwrap(),
            "{name}"
        );
        assert_eq!(control.encoded_len(), frames[1].len(), "{name}");
        assert_eq!(control.to_vec(), frames[1], "{name}");
    }
}
