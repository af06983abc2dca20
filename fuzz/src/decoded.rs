//! How each kind of what the crate generates is decoded, and that it is what it says.
//!
//! For the target `generated`, and for the tests of the main crate, which need no fuzzer.

use std::fmt::Debug;

use tensorwire::bundle::Bundle;
use tensorwire::error::DecodeError;
use tensorwire::json::Value;
use tensorwire::testing::{
    BundledMessage, ControlMessage, FilledSlot, Generated, NearlyValid, Parameters, TensorMessage,
};
use tensorwire::transfer::{Control, manifest};
use tensorwire::{Decoder, Options};

/// What a decoder says of it.
pub trait Decoded: Generated {
    /// Asserts that it decodes, and to what it says.
    fn assert_decodes(&self, parameters: &Parameters);

    /// What a decoder says of these frames.
    fn refusal<F: AsRef<[u8]> + Debug>(frames: &[F]) -> Result<(), Self::ErrorKind>;
}

fn options(parameters: &Parameters) -> Options {
    Options::new().with_strict_json(parameters.strict_json())
}

/// The general path, where the fast one can be switched off.
fn general(options: Options) -> Options {
    #[cfg(feature = "_differential")]
    let options = options.without_speculation();
    options
}

impl Decoded for TensorMessage {
    fn assert_decodes(&self, parameters: &Parameters) {
        let frames = self.frames();
        for options in [options(parameters), general(options(parameters))] {
            let mut decoder = Decoder::with_options(options);
            let message = decoder.decode(&frames).unwrap_or_else(|error| {
                panic!("{error}: {self:?}");
            });
            assert_eq!(self.compare(&message), Ok(()), "{self:?}");
        }
    }

    fn refusal<F: AsRef<[u8]> + Debug>(frames: &[F]) -> Result<(), Self::ErrorKind> {
        let verdict = |options| -> Result<(), DecodeError> {
            Decoder::with_options(options).decode(frames).map(drop)
        };
        let slow = verdict(general(Options::new()));
        assert_eq!(verdict(Options::new()), slow, "{frames:?}");
        slow.map_err(|error| {
            let metadata = frames.first().map_or(0, |metadata| metadata.as_ref().len());
            assert!(error.offset() <= metadata, "{error}: {frames:?}");
            error.kind()
        })
    }
}

impl Decoded for BundledMessage {
    fn assert_decodes(&self, parameters: &Parameters) {
        let bundle = Bundle::decode(self.bytes()).unwrap();
        let frames: Vec<_> = bundle.frames().collect();
        assert_eq!(frames, self.message().frames());
        self.message().assert_decodes(parameters);
    }

    fn refusal<F: AsRef<[u8]> + Debug>(frames: &[F]) -> Result<(), Self::ErrorKind> {
        let [bytes] = frames else {
            panic!("a bundle is one frame");
        };
        let bundle = Bundle::decode(bytes.as_ref());
        bundle.map(drop).map_err(|error| error.kind())
    }
}

impl Decoded for ControlMessage {
    fn assert_decodes(&self, parameters: &Parameters) {
        let frames = self.frames();
        let control = Control::from_frames_with(&frames, &options(parameters));
        let control = control.unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(self.compare(&control), Ok(()), "{self:?}");
        let is_known = !matches!(control, Control::Unknown(_));
        assert_eq!(is_known, self.msg_type() != "transfer_abort");
        if parameters.python_spelling() {
            assert_eq!(control.to_vec(), self.payload(), "{self:?}");
        }
    }

    fn refusal<F: AsRef<[u8]> + Debug>(frames: &[F]) -> Result<(), Self::ErrorKind> {
        let control = Control::from_frames(frames);
        control.map(drop).map_err(|error| error.kind())
    }
}

impl Decoded for FilledSlot {
    fn assert_decodes(&self, _: &Parameters) {
        let object = Value::parse_strict(self.manifest().as_bytes()).unwrap();
        let mut decoder = manifest::Decoder::new();
        let manifest = decoder.decode(object.as_object().unwrap(), self.slot().len());
        let manifest = manifest.unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let tensors = manifest.attach(self.slot()).unwrap();
        assert_eq!(self.compare(&tensors), Ok(()), "{self:?}");
    }

    fn refusal<F: AsRef<[u8]> + Debug>(frames: &[F]) -> Result<(), Self::ErrorKind> {
        let [manifest, slot] = frames else {
            panic!("a manifest and a slot are two frames");
        };
        let object = Value::parse(manifest.as_ref())
            .unwrap()
            .as_object()
            .unwrap();
        let mut decoder = manifest::Decoder::new();
        let manifest = decoder.decode(object, slot.as_ref().len());
        manifest.map(drop).map_err(|error| error.kind())
    }
}

/// Asserts that a decoder says of a nearly valid one what it says of itself.
pub fn assert_refused<T: Decoded>(sent: &NearlyValid<T>) {
    let refusal = T::refusal(sent.frames());
    assert_eq!(refusal, Err(sent.error_kind()), "{sent:?}");
}
