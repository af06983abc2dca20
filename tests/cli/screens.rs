//! The pictures of the tool in the README: made of what it writes to a terminal.
//!
//! `TENSORWIRE_SCREENS=1 cargo test --release --features cli --test cli screens` makes them anew. In rustdoc no file lies beside
//! the page, so the pictures are in `screens.md` once more, as the first definitions of the references that the README has.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use tensorwire::TensorView;
use tensorwire::message::{Scalar, encode_to_vec};
use tensorwire::tensor::bf16;

use crate::support::{command, folder, write_bundle};
use crate::svg::{base64, picture, texts};
use crate::terminal::Terminal;

const COLUMNS: u16 = 100;

fn guide(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "src", "guide", name]
        .iter()
        .collect()
}

fn asked_for() -> bool {
    std::env::var_os("TENSORWIRE_SCREENS").is_some()
}

/// The picture as it is kept, which is `made` if that was asked for.
fn kept(name: &str, made: &str) -> String {
    if asked_for() {
        // The tests run side by side: whoever is second writes both.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock();
        fs::write(guide(name), made).unwrap();
        fs::write(guide("screens.md"), definitions()).unwrap();
    }
    fs::read_to_string(guide(name)).unwrap()
}

/// What `screens.md` has to say.
fn definitions() -> String {
    let mut text = String::new();
    for name in ["inspect", "bench"] {
        // Not there yet, when the first of them is made.
        let svg = fs::read(guide(&format!("{name}.svg"))).unwrap_or_default();
        text.push_str(&format!(
            "[{name}-screen]: data:image/svg+xml;base64,{}\n",
            base64(&svg)
        ));
    }
    text
}

/// Numbers between -4 and 4, the same in each run.
fn numbers() -> impl Iterator<Item = f32> {
    let step = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(42), step).map(|state: u32| (state >> 16) as f32 / 8192.0 - 4.0)
}

/// A message as services send them.
fn request() -> Vec<Vec<u8>> {
    let mut latents: Vec<_> = numbers()
        .take(16 * 8 * 30 * 52)
        .map(bf16::from_f32)
        .collect();
    latents[1000] = bf16::NAN;
    let embeds: Vec<_> = numbers().take(77 * 768).map(|x| x / 64.0).collect();
    let steps = [999_i64, 749, 499, 249];
    let mask: Vec<_> = (0..77).map(|index| index < 9).collect();
    let tensors = [
        TensorView::from_slice("latents", &[1, 16, 8, 30, 52], &latents).unwrap(),
        TensorView::from_slice("prompt_embeds", &[1, 77, 768], &embeds).unwrap(),
        TensorView::from_slice("timesteps", &[4], &steps).unwrap(),
        TensorView::from_slice("masks", &[1, 77], &mask)
            .unwrap()
            .with_list_index(0),
        TensorView::from_slice("masks", &[1, 77], &mask)
            .unwrap()
            .with_list_index(2),
    ];
    let scalars = [
        ("request_id", Scalar::from("wan-test-001")),
        ("prompt", Scalar::from("un caf\u{e9}, la nuit")),
        ("guidance_scale", Scalar::from(7.5)),
        ("seed", Scalar::from(42)),
        ("sigma_min", Scalar::from(f64::NAN)),
    ];
    let metadata = encode_to_vec(&tensors, &scalars).unwrap();
    let payloads = tensors.iter().map(|tensor| tensor.bytes().to_vec());
    std::iter::once(metadata).chain(payloads).collect()
}

#[test]
fn the_picture_of_inspect_is_what_the_tool_writes() {
    let folder = folder();
    write_bundle(folder.path(), "request.bundle", &request());
    let arguments = ["inspect", "--stats", "--bundle", "request.bundle"];
    let mut tool = command(arguments);
    tool.current_dir(folder.path());
    let (screen, code) = Terminal::start(COLUMNS, tool, true).end();
    assert_eq!(code, Some(0), "{screen}");
    let line = format!("tensorwire {}", arguments.join(" "));
    let made = picture(&line, &screen, COLUMNS.into());
    assert_eq!(kept("inspect.svg", &made), made);
}

/// Times are never the same twice: what is kept has all that a measurement of now has, but for the numbers.
#[test]
fn the_picture_of_bench_has_the_form_of_what_the_tool_writes() {
    let tool = command(["bench", "--duration", "2"]);
    let (screen, code) = Terminal::start(COLUMNS, tool, false).end();
    assert_eq!(code, Some(0), "{screen}");
    let made = picture("tensorwire bench", &screen, COLUMNS.into());
    let kept = kept("bench.svg", &made);
    assert_eq!(form(&kept), form(&made));
    let bars = |svg: &str| svg.matches("<rect class=\"s36\"").count();
    assert!(bars(&kept) >= 3 && bars(&made) >= 1, "{kept}");
    assert!(kept.ends_with("</g>\n</svg>\n"));
}

/// The words of a picture without its numbers and their units; equal ones in a row are one.
fn form(svg: &str) -> Vec<String> {
    let mut form: Vec<String> = Vec::new();
    for text in texts(svg) {
        let words = text
            .split(' ')
            .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
            .filter(|word| !["&gt;", "µs", "ms", "KiB/s", "MiB/s", "GiB/s"].contains(word))
            .map(|word| word.split_once("://").map_or(word, |(scheme, _)| scheme));
        form.extend(words.map(str::to_owned));
    }
    form.dedup();
    form
}

#[test]
fn rustdoc_has_the_pictures_that_the_readme_has() {
    if asked_for() {
        return; // the other two are at it
    }
    assert_eq!(
        fs::read_to_string(guide("screens.md")).unwrap(),
        definitions()
    );
    let readme = include_str!("../../README.md");
    for name in ["inspect", "bench"] {
        let definition = format!("[{name}-screen]: src/guide/{name}.svg\n");
        assert!(readme.contains(&definition) && readme.contains(&format!("][{name}-screen]\n")));
    }
}
