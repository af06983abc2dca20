//! The built-in work of each role: reads its input in place, writes its output in place.

use tensorwire::message::{Scalar, Updated};
use tensorwire::tensor::Element;
use tensorwire::transfer::Role;
use tensorwire::{DType, Descriptor, TensorView};

use crate::Result;
use crate::formula::{decoded, denoised, fill, first_difference, period, rows, seed};
use crate::work::{Input, Output, Work};

/// (name, list index, elements, tag): the small tensors of an encoder, of bytes.
const POOLED: [(&str, u32, usize, u64); 2] = [("pooled", 0, 768, 1), ("pooled", 1, 1280, 2)];

/// What an image encoder adds.
const IMAGE_EMBEDS: (&str, usize, u64) = ("image_embeds", 1024, 3);

/// Among the scalars of a request that has an image.
const IMAGE_PATH: &str = "image_path";

/// The work of a role; an encoder's output has about `size_mib` MiB.
pub(crate) fn builtin(role: Role, size_mib: usize) -> Box<dyn Work> {
    match role {
        Role::ImageEncoder => Box::new(ImageEncoder),
        Role::Denoiser => Box::new(Denoiser),
        Role::Decoder => Box::new(Decoder),
        first => Box::new(Encoder {
            role: first,
            rows: rows(size_mib),
        }),
    }
}

/// Makes `prompt_embeds` and `pooled` out of a request's id.
struct Encoder {
    role: Role,
    rows: usize,
}

impl Work for Encoder {
    fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()> {
        let id = input.request_id;
        asked_to_fail(id, self.role)?;
        let seed = seed(id);
        let mut scalars = vec![
            ("request_id", Scalar::from(id)),
            ("seed", Scalar::from(seed)),
            ("guidance_scale", Scalar::from(7.5)),
            ("payload_bytes", Scalar::from(input.payload.len())),
        ];
        // Who reads the payload would know better.
        if self.role == Role::PromptEncoder && id.contains("image") {
            scalars.push((IMAGE_PATH, Scalar::from("image.png")));
        }
        let shape = [1, 77, 64 * self.rows];
        let mut descriptors = vec![Descriptor::new("prompt_embeds", DType::Float32, &shape)?];
        let lens = POOLED.map(|(_, _, len, _)| [len]);
        for (&(name, index, ..), shape) in POOLED.iter().zip(&lens) {
            let pooled = Descriptor::new(name, DType::UInt8, shape)?;
            descriptors.push(pooled.with_list_index(index));
        }
        let mut places = output.begin(&descriptors, &scalars)?.into_iter();
        fill(floats(places.next())?, &period(seed, f32::from));
        for ((.., tag), place) in POOLED.iter().zip(places) {
            fill(place, &period(seed + tag, |number| number));
        }
        Ok(())
    }
}

/// Passes on what it gets, and `image_embeds`.
struct ImageEncoder;

impl Work for ImageEncoder {
    fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()> {
        asked_to_fail(input.request_id, Role::ImageEncoder)?;
        let seed = check_encoded(input)?;
        input.scalars.field(IMAGE_PATH)?;
        let (name, len, tag) = IMAGE_EMBEDS;
        let shape = [len];
        let mut descriptors: Vec<_> = input.tensors.iter().map(TensorView::descriptor).collect();
        descriptors.push(Descriptor::new(name, DType::UInt8, &shape)?);
        let mut places = output.begin(&descriptors, &input.scalars)?.into_iter();
        for (tensor, place) in input.tensors.iter().zip(&mut places) {
            place.copy_from_slice(tensor.bytes());
        }
        fill(
            places.next().ok_or("no place")?,
            &period(seed + tag, |number| number),
        );
        Ok(())
    }
}

/// Makes `latents` out of `prompt_embeds`.
struct Denoiser;

impl Work for Denoiser {
    fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()> {
        asked_to_fail(input.request_id, Role::Denoiser)?;
        let seed = check_encoded(input)?;
        let (name, len, tag) = IMAGE_EMBEDS;
        if input.scalars.get(IMAGE_PATH).is_some() {
            let image_embeds = input.tensor(name)?;
            same(&image_embeds, len, &period(seed + tag, |number| number))?;
        }
        let embeds = input.tensor("prompt_embeds")?;
        let shape: Vec<_> = embeds.dims().collect();
        let latents = Descriptor::new("latents", DType::Float32, &shape)?;
        let steps = [("steps", Scalar::from(1))];
        let scalars = Updated::new(input.scalars, &steps);
        let place = output.begin(&[latents], &scalars)?.pop();
        let mut copy = Vec::new();
        let embeds = elements(&embeds, &mut copy)?;
        for (latent, &embed) in floats(place)?.iter_mut().zip(embeds) {
            *latent = denoised(embed);
        }
        Ok(())
    }
}

/// Makes `output` out of `latents`.
struct Decoder;

impl Work for Decoder {
    fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()> {
        let id = input.request_id;
        asked_to_fail(id, Role::Decoder)?;
        let latents = input.tensor("latents")?;
        let expected = period(seed(id), |number| denoised(f32::from(number)));
        same(&latents, latents.element_count(), &expected)?;
        let shape = [latents.element_count()];
        let bytes = Descriptor::new("output", DType::UInt8, &shape)?;
        let scalars = [("request_id", Scalar::from(id))];
        let place = output.begin(&[bytes], &scalars)?.pop().ok_or("no place")?;
        let mut copy = Vec::new();
        for (byte, &latent) in place.iter_mut().zip(elements(&latents, &mut copy)?) {
            *byte = decoded(latent);
        }
        Ok(())
    }
}

/// Whether an output is what this request has to come to.
pub(crate) fn check_output(
    request_id: &str,
    output: &TensorView<'_>,
    size_mib: usize,
) -> Result<()> {
    let expected = period(seed(request_id), |number| {
        decoded(denoised(f32::from(number)))
    });
    same(output, rows(size_mib) * crate::formula::ROW, &expected)
}

/// Checks all that an encoder makes, and returns the seed of it.
fn check_encoded(input: &Input<'_>) -> Result<u64> {
    let seed = seed(input.request_id);
    if input.scalars.field("seed")?.as_u64()? != seed {
        return Err("another seed".into());
    }
    let embeds = input.tensor("prompt_embeds")?;
    same(&embeds, embeds.element_count(), &period(seed, f32::from))?;
    for (name, index, len, tag) in POOLED {
        let pooled = input.list_member(name, index)?;
        same(&pooled, len, &period(seed + tag, |number| number))?;
    }
    Ok(seed)
}

/// Compares a tensor whole with what it must be.
fn same<T>(tensor: &TensorView<'_>, count: usize, period: &[T]) -> Result<()>
where
    T: Element + Default + PartialEq,
{
    let name = tensor.name().to_cow_lossy();
    if tensor.element_count() != count {
        let actual = tensor.element_count();
        return Err(format!("{name}: {actual} elements, not {count}").into());
    }
    let mut copy = Vec::new();
    match first_difference(elements(tensor, &mut copy)?, period) {
        None => Ok(()),
        Some(index) => Err(format!("{name}: element {index} is not what it must be").into()),
    }
}

/// The elements of a tensor where they lie, or copied if a peer laid them out misaligned.
fn elements<'a, T: Element + Default>(
    tensor: &TensorView<'a>,
    copy: &'a mut Vec<T>,
) -> Result<&'a [T]> {
    if !tensor.is_aligned() {
        copy.resize(tensor.element_count(), T::default());
    }
    Ok(tensor.as_slice_or_copy(copy)?)
}

/// The place of a tensor of `float32`.
fn floats(place: Option<&mut [u8]>) -> Result<&mut [f32]> {
    let place = place.ok_or("no place")?;
    bytemuck::try_cast_slice_mut(place).map_err(|error| error.to_string().into())
}

/// So that one can see how a failure reaches the client.
fn asked_to_fail(request_id: &str, role: Role) -> Result<()> {
    if request_id.contains(&format!("fail-{role}")) {
        return Err("asked to fail".into());
    }
    Ok(())
}
