//! What was on a terminal, as a picture: an SVG of rectangles and text.

use std::fmt::Write as _;

/// Pixels of a character, its line, and around all of it.
const CELL: usize = 8;
const LINE: usize = 18;
const MARGIN: usize = 14;

/// The parts of a block, from an eighth of a cell to all of it.
const BLOCKS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A name for each way that the tool writes, and how it looks on a dark terminal.
const LOOKS: [(&str, &str); 6] = [
    ("0", ""),
    ("1", "font-weight:bold;fill:#f4f5f7"),
    ("2", "fill:#8b919c"),
    ("31", "fill:#f0717b"),
    ("33", "fill:#e5c07b"),
    ("36", "fill:#5cc8d6"),
];

/// A command, and below it what it has written; panics at a control sequence other than [`LOOKS`].
pub(crate) fn picture(command: &str, screen: &str, columns: usize) -> String {
    let screen = format!("\u{1b}[2m$\u{1b}[0m {command}\r\n{screen}");
    let screen = screen.trim_end().replace("\r\n", "\n");
    let lines = screen.lines().count();
    let (width, height) = (columns * CELL + 2 * MARGIN, lines * LINE + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"13.3\">\n<style>"
    );
    for (code, look) in LOOKS.iter().filter(|(_, look)| !look.is_empty()) {
        let _ = write!(svg, ".s{code}{{{look}}}");
    }
    svg.push_str("</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16181d\"/>\n");
    svg.push_str("<g fill=\"#d5d9e0\">\n");
    let mut look = "0";
    for (row, line) in screen.lines().enumerate() {
        let y = MARGIN + row * LINE;
        let mut column = 0;
        for (number, part) in line.split("\u{1b}[").enumerate() {
            let text = if number == 0 {
                part
            } else {
                let (code, text) = part.split_once('m').unwrap();
                let known = LOOKS.iter().find(|(known, _)| *known == code);
                look = known.unwrap_or_else(|| panic!("{code:?}")).0;
                text
            };
            for (start, word) in words(text) {
                draw(&mut svg, (column + start) * CELL + MARGIN, y, look, word);
            }
            column += text.chars().count();
        }
        assert!(column <= columns, "{line}");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// What stands between two spaces or more, and the column at which it starts.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut column = 0;
    for part in text.split_inclusive("  ") {
        let word = part.trim();
        if !word.is_empty() {
            let before = part.len() - part.trim_start().len();
            words.push((column + before, word));
        }
        column += part.chars().count();
    }
    words
}

/// Blocks as one rectangle, whatever the font makes of them; text as wide as its cells are.
fn draw(svg: &mut String, x: usize, y: usize, look: &str, word: &str) {
    let class = if look == "0" {
        String::new()
    } else {
        format!(" class=\"s{look}\"")
    };
    if word.starts_with(BLOCKS) {
        let eighths = word
            .chars()
            .map(|c| 1 + BLOCKS.iter().position(|block| *block == c).unwrap());
        let width = eighths.sum::<usize>() * CELL / 8;
        let (y, height) = (y + 2, LINE - 4);
        let _ = writeln!(
            svg,
            "<rect{class} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
        return;
    }
    let width = word.chars().count() * CELL;
    let y = y + LINE - 5;
    let word = word
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text{class} x=\"{x}\" y=\"{y}\" textLength=\"{width}\">{word}</text>"
    );
}

/// The texts of a picture, in order.
pub(crate) fn texts(svg: &str) -> Vec<&str> {
    let lines = svg.lines().filter(|line| line.starts_with("<text"));
    lines
        .map(|line| {
            let (_, text) = line.split_once('>').unwrap();
            text.strip_suffix("</text>").unwrap()
        })
        .collect()
}

/// The bytes in base 64, with padding, as a `data:` URI has them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 63;
            text.push(if digit > group.len() {
                '='
            } else {
                char::from(DIGITS[index as usize])
            });
        }
    }
    text
}

#[test]
fn bytes_are_written_in_base_64() {
    // RFC 4648, section 10.
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
}
