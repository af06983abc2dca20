//! What the benches share: messages of a video model, and a way to compare.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub(crate) mod compare;
pub(crate) mod folder;
pub(crate) mod peers;
pub(crate) mod python;

use std::fmt::Write as _;

use tensorwire::{DType, Limits};

/// Runs the parts that the arguments name, or all if they name none.
pub(crate) fn run_parts(parts: &[(&str, fn())], arguments: &[String]) {
    let chosen: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for (name, run) in parts {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            run();
        }
    }
}

/// The scalars of each message, as Python writes them.
pub(crate) const SCALARS: &str = r#"{"request_id":"wan-test-001","seed":42,"guidance_scale":7.5,"num_inference_steps":50,"prompt":"A cat walks on the grass, realistic style."}"#;

/// The plain tensors of a video model's request, in the order in which it sends them.
const FIELDS: &[(&str, DType, &[usize])] = &[
    ("latents", DType::BFloat16, &[1, 16, 21, 60, 104]),
    ("prompt_embeds", DType::BFloat16, &[1, 512, 4096]),
    ("prompt_embeds_mask", DType::Bool, &[1, 512]),
    ("timesteps", DType::Float32, &[50]),
    ("negative_prompt_embeds", DType::BFloat16, &[1, 512, 4096]),
    ("negative_prompt_embeds_mask", DType::Bool, &[1, 512]),
    ("image_latents", DType::BFloat16, &[1, 20, 21, 60, 104]),
    ("image_embeds", DType::Float16, &[1, 257, 1280]),
    ("sigmas", DType::Float32, &[51]),
    ("text_ids", DType::Int64, &[1, 512]),
    ("pooled_prompt_embeds", DType::Float16, &[1, 768]),
    ("guidance", DType::Float32, &[1]),
    ("freqs_cos", DType::Float32, &[32760, 64]),
    ("freqs_sin", DType::Float32, &[32760, 64]),
    ("step_index", DType::Int64, &[]),
    ("audio_embeds", DType::BFloat16, &[1, 81, 5, 384]),
];

/// A list that each transformer block adds a member to.
const LISTS: &[(&str, DType, &[usize])] = &[
    ("block_residuals", DType::BFloat16, &[1, 12, 128]),
    ("key_cache", DType::BFloat16, &[1, 12, 2, 64]),
    ("value_cache", DType::BFloat16, &[1, 12, 2, 64]),
    ("attention_scores", DType::Float32, &[12, 64]),
];

/// What is said of one tensor.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) dtype: DType,
    pub(crate) dims: &'static [usize],
    pub(crate) list_index: Option<u32>,
}

impl Described {
    pub(crate) fn byte_len(&self) -> usize {
        self.dims.iter().product::<usize>() * self.dtype.size()
    }
}

/// A message as it arrives: the metadata, and payloads that each lie elsewhere.
pub(crate) struct Sample {
    pub(crate) described: Vec<Described>,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Sample {
    pub(crate) fn frames(&self) -> Vec<&[u8]> {
        self.frames.iter().map(Vec::as_slice).collect()
    }

    /// The same tensors as safetensors holds them: one header, one buffer.
    ///
    /// It has neither lists nor scalars: members get names of their own, and
    /// scalars become its string map, which is less than JSON can say.
    pub(crate) fn safetensors(&self) -> Vec<u8> {
        use safetensors::tensor::{Dtype, TensorView};
        let views: Vec<_> = self
            .described
            .iter()
            .zip(&self.frames[1..])
            .map(|(described, bytes)| {
                let dtype = match described.dtype {
                    DType::BFloat16 => Dtype::BF16,
                    DType::Bool => Dtype::BOOL,
                    DType::Float16 => Dtype::F16,
                    DType::Float32 => Dtype::F32,
                    DType::Int64 => Dtype::I64,
                    other => panic!("no sample has {other}"),
                };
                let name = match described.list_index {
                    Some(index) => format!("{}.{index}", described.name),
                    None => described.name.to_owned(),
                };
                let view = TensorView::new(dtype, described.dims.to_vec(), bytes).unwrap();
                (name, view)
            })
            .collect();
        let scalars: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(SCALARS).unwrap();
        let scalars = scalars
            .into_iter()
            .map(|(key, value)| (key, value.to_string()))
            .collect();
        safetensors::serialize(views, Some(scalars)).unwrap()
    }
}

/// A message of `count` tensors: the plain ones of a request, then lists.
pub(crate) fn sample(count: usize) -> Sample {
    let per_list = count.saturating_sub(FIELDS.len()).div_ceil(LISTS.len());
    let plain = FIELDS.iter().map(|field| (field, None));
    let members = LISTS
        .iter()
        .flat_map(|list| (0..).take(per_list).map(move |index| (list, Some(index))));
    let described: Vec<_> = plain
        .chain(members)
        .take(count)
        .map(|(&(name, dtype, dims), list_index)| Described {
            name,
            dtype,
            dims,
            list_index,
        })
        .collect();
    assert_eq!(described.len(), count);
    assemble(described)
}

/// The same message with one element in each tensor: as good as no payload.
pub(crate) fn tiny_sample(count: usize) -> Sample {
    let mut described = sample(count).described;
    for tensor in &mut described {
        tensor.dims = &[1];
    }
    assemble(described)
}

fn assemble(described: Vec<Described>) -> Sample {
    let metadata = metadata(&described, SCALARS);
    let payloads = described.iter().map(|tensor| vec![0; tensor.byte_len()]);
    let frames = std::iter::once(metadata).chain(payloads).collect();
    Sample { described, frames }
}

/// The metadata frame as `json.dumps(.., separators=(",", ":"))` writes it.
pub(crate) fn metadata(described: &[Described], scalars: &str) -> Vec<u8> {
    let mut text = String::from(r#"{"tensor_descriptors":["#);
    for (index, tensor) in described.iter().enumerate() {
        let separator = if index > 0 { "," } else { "" };
        let dims: Vec<_> = tensor.dims.iter().map(ToString::to_string).collect();
        let list_index = tensor.list_index.map_or(-1, i64::from);
        write!(
            text,
            r#"{separator}{{"field_name":"{}","shape":[{}],"dtype":"{}","list_index":{list_index}}}"#,
            tensor.name,
            dims.join(","),
            tensor.dtype,
        )
        .unwrap();
    }
    write!(text, r#"],"scalar_fields":{scalars}}}"#).unwrap();
    text.into_bytes()
}

/// A size for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Caps that let a metadata frame of any kind and of 1 MiB through.
pub(crate) fn wide_limits() -> Limits {
    Limits::new()
        .with_metadata_bytes(2 << 20)
        .with_descriptors(1 << 16)
        .with_list_index(1 << 20)
}

/// Short: all of it runs in a few minutes, and the tables carry the comparisons.
pub(crate) fn criterion() -> criterion::Criterion {
    use std::time::Duration;
    criterion::Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
        .configure_from_args()
}
