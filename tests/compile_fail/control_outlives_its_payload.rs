//! A control message borrows the payload that it was read from.

use tensorwire::transfer::Control;

fn main() {
    let control = {
        let payload = br#"{"msg_type":"transfer_pushed","request_id":"r1"}"#.to_vec();
        Control::decode(&payload).unwrap()
    };
    println!("{:?}", control.request_id());
}
