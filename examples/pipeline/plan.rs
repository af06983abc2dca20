//! What is sent: the tensors of a video model, and the scalars of a request.
//!
//! `tests/interop/peer.py` has the same table, for the stages in Python.

use tensorwire::tensor::Descriptor;
use tensorwire::{DType, Scalar};

use crate::Result;
use crate::formula;

/// One tensor of a stage.
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) list_index: Option<u32>,
    pub(crate) dtype: DType,
    pub(crate) shape: &'static [usize],
    small: &'static [usize],
    tag: u8,
}

const ENCODED: [Tensor; 3] = [
    Tensor {
        name: "prompt_embeds",
        list_index: None,
        dtype: DType::BFloat16,
        shape: &[1, 512, 4096],
        small: &[1, 8, 64],
        tag: 1,
    },
    Tensor {
        name: "negative_prompt_embeds",
        list_index: Some(0),
        dtype: DType::BFloat16,
        shape: &[1, 512, 4096],
        small: &[1, 8, 64],
        tag: 2,
    },
    Tensor {
        name: "negative_prompt_embeds",
        list_index: Some(1),
        dtype: DType::BFloat16,
        shape: &[1, 77, 768],
        small: &[1, 7, 12],
        tag: 3,
    },
];

const DENOISED: [Tensor; 2] = [
    Tensor {
        name: "latents",
        list_index: None,
        dtype: DType::BFloat16,
        shape: &[1, 16, 21, 30, 52],
        small: &[1, 16, 3, 6, 10],
        tag: 4,
    },
    Tensor {
        name: "timesteps",
        list_index: None,
        dtype: DType::Float32,
        shape: &[40],
        small: &[40],
        tag: 5,
    },
];

const DECODED: [Tensor; 1] = [Tensor {
    name: "output",
    list_index: None,
    dtype: DType::UInt8,
    shape: &[1, 3, 81, 480, 832], // 97,044,480 bytes
    small: &[1, 3, 9, 48, 80],
    tag: 6,
}];

/// Whether the tensors are as large as the model's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Size {
    Full,
    Small,
}

impl Tensor {
    pub(crate) const fn shape(&self, size: Size) -> &'static [usize] {
        match size {
            Size::Full => self.shape,
            Size::Small => self.small,
        }
    }

    /// Name, list index, dtype and shape, as the metadata frame has them.
    pub(crate) fn descriptor(&self, size: Size) -> Result<Descriptor<'static>> {
        let plain = Descriptor::new(self.name, self.dtype, self.shape(size))?;
        Ok(match self.list_index {
            None => plain,
            Some(index) => plain.with_list_index(index),
        })
    }

    /// What the formula starts from in the request of this index.
    pub(crate) const fn start(&self, index: u64) -> u8 {
        let [low, ..] = index.to_le_bytes();
        low.wrapping_mul(37).wrapping_add(self.tag)
    }

    /// The payload in the request of this index.
    pub(crate) fn payload(&self, size: Size, index: u64) -> Result<Vec<u8>> {
        let len = self.descriptor(size)?.byte_len();
        Ok(formula::payload(len, self.start(index)))
    }
}

/// A process between two others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Encoder,
    Denoiser,
    Decoder,
}

impl Stage {
    pub(crate) const ALL: [Self; 3] = [Self::Encoder, Self::Denoiser, Self::Decoder];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Denoiser => "denoiser",
            Self::Decoder => "decoder",
        }
    }

    /// The message that it receives.
    pub(crate) const fn receives(self) -> Message {
        match self {
            Self::Encoder => Message::Request,
            Self::Denoiser => Message::Embeds,
            Self::Decoder => Message::Latents,
        }
    }

    /// The message that it sends.
    pub(crate) const fn sends(self) -> Message {
        match self {
            Self::Encoder => Message::Embeds,
            Self::Denoiser => Message::Latents,
            Self::Decoder => Message::Output,
        }
    }
}

/// A message between two processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    Request,
    Embeds,
    Latents,
    Output,
}

impl Message {
    pub(crate) const ALL: [Self; 4] = [Self::Request, Self::Embeds, Self::Latents, Self::Output];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Embeds => "embeds",
            Self::Latents => "latents",
            Self::Output => "output",
        }
    }

    /// Who sends it; `None` is the head.
    pub(crate) fn sender(self) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.sends() == self)
    }

    /// Who receives it; `None` is the head.
    pub(crate) fn receiver(self) -> Option<Stage> {
        Stage::ALL
            .into_iter()
            .find(|stage| stage.receives() == self)
    }

    pub(crate) const fn tensors(self) -> &'static [Tensor] {
        match self {
            Self::Request => &[],
            Self::Embeds => &ENCODED,
            Self::Latents => &DENOISED,
            Self::Output => &DECODED,
        }
    }

    pub(crate) fn descriptors(self, size: Size) -> Result<Vec<Descriptor<'static>>> {
        let tensors = self.tensors().iter();
        tensors.map(|tensor| tensor.descriptor(size)).collect()
    }
}

/// The scalars of a request, as one is made of them.
pub(crate) struct Request {
    id: String,
    index: u64,
}

impl Request {
    pub(crate) fn new(index: u64) -> Self {
        let id = format!("wan-t2v-{index:06}");
        Self { id, index }
    }

    pub(crate) fn scalars(&self) -> [(&str, Scalar<'_>); 15] {
        [
            ("request_id", Scalar::from(self.id.as_str())),
            ("index", Scalar::from(self.index)),
            ("prompt", Scalar::from(PROMPT)),
            (
                "negative_prompt",
                Scalar::from("low quality, \"watermark\""),
            ),
            // Python's integers have no end: this one needs 100 bits.
            ("seed", Scalar::UInt((1 << 99) + u128::from(self.index))),
            ("guidance_scale", Scalar::from(5.0)),
            ("guidance_scale_2", Scalar::Null),
            ("num_inference_steps", Scalar::from(40)),
            ("height", Scalar::from(480)),
            ("width", Scalar::from(832)),
            ("num_frames", Scalar::from(81)),
            ("fps", Scalar::from(16)),
            ("do_classifier_free_guidance", Scalar::from(true)),
            // Python writes it as a bare token, which is no JSON.
            ("cfg_trunc", Scalar::from(f64::NAN)),
            ("sampling_params", Scalar::Object(&SAMPLING)),
        ]
    }
}

const PROMPT: &str = "Ein Fuchs läuft durch tiefen Schnee, 夕暮れ, cinematic 🦊";

const SAMPLING: [(&str, Scalar<'static>); 4] = [
    ("flow_shift", Scalar::Float(3.0)),
    (
        "sigmas",
        Scalar::List(&[Scalar::Float(1.0), Scalar::Float(0.02), Scalar::Float(1e-5)]),
    ),
    ("image_path", Scalar::Null),
    (
        "slg",
        Scalar::Object(&[
            ("layers", Scalar::List(&[Scalar::Int(9)])),
            ("start", Scalar::Float(0.1)),
        ]),
    ),
];
