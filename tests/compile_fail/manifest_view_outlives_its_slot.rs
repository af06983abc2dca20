//! The views of a manifest lie in the bytes of its slot.

use tensorwire::Limits;
use tensorwire::json::Value;
use tensorwire::transfer::manifest::{Manifest, Storage};

fn main() {
    let text = br#"{"x":[{"offset":0,"shape":[3],"dtype":"uint8"}]}"#;
    let object = Value::parse(text).unwrap().as_object().unwrap();
    let mut storage = Storage::<1>::new();
    let manifest = Manifest::decode(object, 3, &mut storage, &Limits::new()).unwrap();
    let view = {
        let slot = vec![1, 2, 3];
        manifest.attach(&slot).unwrap().tensor("x").unwrap()
    };
    println!("{:?}", view.bytes());
}
