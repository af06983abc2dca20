//! Tensors in a table that fits the terminal.

use std::fmt::Write as _;

use tensorwire::TensorView;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::number::Number;
use crate::output::{BOLD, DIM, RESET, YELLOW};
use crate::safe_text;
use crate::stats::{self, Stats};

/// A table of tensors, a line each; no line is wider than `width`.
pub(crate) fn tensors(
    tensors: &[TensorView<'_>],
    with_stats: bool,
    width: Option<usize>,
) -> String {
    if tensors.is_empty() {
        return String::new();
    }
    let mut table = Table::new(HEADS, width);
    for view in tensors {
        table.push(row(view, with_stats));
    }
    table.render()
}

/// (head of a column, whether it holds numbers), in the order shown.
const HEADS: &[(&str, bool)] = &[
    ("name", false),
    ("index", true),
    ("dtype", false),
    ("shape", false),
    ("bytes", true),
    ("align", true),
    ("min", true),
    ("max", true),
    ("mean", true),
    ("NaN", true),
    ("first values", false),
];

/// What gives way where there is no room for all, in this order: a column, and the width that it
/// may shrink to; at 0 it is left out.
const GIVE_WAY: &[(&str, usize)] = &[
    ("first values", 8),
    ("first values", 0),
    ("shape", 20),
    ("name", 20),
    ("align", 0),
    ("shape", 14),
    ("name", 14),
    ("bytes", 0),
    ("shape", 8),
    ("name", 8),
    ("mean", 0),
    ("index", 0),
    ("NaN", 0),
    ("min", 0),
    ("max", 0),
    ("dtype", 0),
    ("shape", 0),
];

fn row(view: &TensorView<'_>, with_stats: bool) -> Vec<Cell> {
    let stats = with_stats.then(|| Stats::of(view));
    let number = |pick: fn(&Stats) -> Option<Number>| {
        let number = stats
            .as_ref()
            .map(|stats| pick(stats).map_or_else(|| "-".to_owned(), Number::text));
        Cell::plain(number.unwrap_or_default())
    };
    let mut first: Vec<_> = stats::first(view, stats::FIRST)
        .into_iter()
        .map(Number::text)
        .collect();
    if view.element_count() > stats::FIRST {
        first.push("…".to_owned());
    }
    let nan = match &stats {
        Some(stats) if stats.nan > 0 => Cell::colored(stats.nan.to_string(), YELLOW),
        Some(_) => Cell::plain("0".to_owned()),
        None => Cell::plain(String::new()),
    };
    vec![
        Cell::plain(safe_text::of_str(view.name())),
        Cell::plain(
            view.list_index()
                .map_or_else(String::new, |index| index.to_string()),
        ),
        Cell::plain(view.dtype().to_string()),
        Cell::plain(shape(view)),
        Cell::plain(bytes(view.byte_len())),
        alignment(view),
        number(|stats| stats.min),
        number(|stats| stats.max),
        number(|stats| stats.mean),
        nan,
        Cell::colored(first.join(" "), DIM),
    ]
}

fn shape(view: &TensorView<'_>) -> String {
    let dims: Vec<_> = view.dims().map(|dim| dim.to_string()).collect();
    format!("[{}]", dims.join(","))
}

/// How the bytes lie, up to a cache line; in colour where elements cannot be seen in place.
fn alignment(view: &TensorView<'_>) -> Cell {
    let text = view.alignment().min(64).to_string();
    if view.is_aligned() {
        Cell::plain(text)
    } else {
        Cell::colored(format!("{text}!"), YELLOW)
    }
}

/// A size for people.
pub(crate) fn bytes(count: usize) -> String {
    const UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = count as f64;
    let mut text = format!("{count} B");
    for unit in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        text = format!("{size:.1} {unit}");
    }
    text
}

/// How many there are of something, for people.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

struct Cell {
    text: String,
    color: Option<&'static str>,
}

impl Cell {
    const fn plain(text: String) -> Self {
        Self { text, color: None }
    }

    const fn colored(text: String, color: &'static str) -> Self {
        Self {
            text,
            color: Some(color),
        }
    }
}

struct Table {
    heads: &'static [(&'static str, bool)],
    rows: Vec<Vec<Cell>>,
    width: Option<usize>,
}

impl Table {
    const fn new(heads: &'static [(&'static str, bool)], width: Option<usize>) -> Self {
        Self {
            heads,
            rows: Vec::new(),
            width,
        }
    }

    fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// How wide each column is; 0 for one that is left out.
    fn widths(&self) -> Vec<usize> {
        let column = |(index, head): (usize, &(&str, bool))| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| cell.text.width()).max().unwrap_or(0);
            // A column without anything in it is not shown.
            if widest == 0 {
                0
            } else {
                widest.max(head.0.width())
            }
        };
        let mut widths: Vec<_> = self.heads.iter().enumerate().map(column).collect();
        let Some(limit) = self.width else {
            return widths;
        };
        for (column, least) in GIVE_WAY {
            let over = total(&widths).saturating_sub(limit);
            if over == 0 {
                break;
            }
            let index = self.heads.iter().position(|(head, _)| head == column);
            if let Some(width) = index.and_then(|index| widths.get_mut(index)) {
                *width = match least {
                    0 => 0,
                    least => width.saturating_sub(over).max((*least).min(*width)),
                };
            }
        }
        if let Some(name) = widths.first_mut() {
            // No terminal is narrower than the gap and three letters.
            *name = (*name).min(limit.max(GAP + 3) - GAP);
        }
        widths
    }

    fn render(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        let heads = self.heads.iter().map(|(head, _)| (*head, Some(BOLD)));
        self.line(&mut text, &widths, heads);
        for row in &self.rows {
            let cells = row.iter().map(|cell| (cell.text.as_str(), cell.color));
            self.line(&mut text, &widths, cells);
        }
        text
    }

    fn line<'a>(
        &self,
        text: &mut String,
        widths: &[usize],
        cells: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) {
        let mut line = String::new();
        let mut pad = 0;
        for ((cell, color), (&width, &(_, right))) in cells.zip(widths.iter().zip(self.heads)) {
            if width == 0 {
                continue;
            }
            let cell = fit(cell, width);
            let room = width - cell.width();
            // Spaces wait for the text behind them: no line ends in any.
            pad += GAP;
            if cell.is_empty() {
                pad += room;
                continue;
            }
            let (before, after) = if right { (room, 0) } else { (0, room) };
            line.push_str(&" ".repeat(pad + before));
            pad = after;
            match color {
                Some(color) => {
                    let _ = write!(line, "{color}{cell}{RESET}");
                }
                None => line.push_str(&cell),
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
}

/// Columns between two columns, and before the first.
const GAP: usize = 2;

fn total(widths: &[usize]) -> usize {
    widths
        .iter()
        .filter(|&&width| width > 0)
        .map(|width| width + GAP)
        .sum()
}

/// The text, cut to `width` columns with an ellipsis if it has more.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let Some(left) = room.checked_sub(c.width().unwrap_or(0)) else {
            break;
        };
        room = left;
        cut.push(c);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwire::DType;

    fn plain(styled: &str) -> String {
        anstream::adapter::strip_str(styled).to_string()
    }

    #[test]
    fn a_table_fits_the_width_whatever_is_in_it() {
        let name = "潜在".repeat(300);
        let views = [
            TensorView::from_slice("latents", &[1, 2, 3], &[0.5_f32; 6]).unwrap(),
            TensorView::from_slice(name.as_str(), &[4], &[i64::MIN; 4])
                .unwrap()
                .with_list_index(4096),
        ];
        for with_stats in [false, true] {
            for width in [1, 5, 20, 40, 60, 80, 120, 300] {
                let table = plain(&tensors(&views, with_stats, Some(width)));
                assert_eq!(table.lines().count(), 3);
                for line in table.lines() {
                    assert!(line.width() <= width.max(5), "{width}: {line}");
                }
            }
            let table = plain(&tensors(&views, with_stats, None));
            assert!(table.contains(&name));
        }
    }

    #[test]
    fn elements_that_cannot_be_seen_in_place_are_marked() {
        let elements = [0_u32; 4];
        let bytes = bytemuck::cast_slice(&elements);
        for (at, shown) in [(0, None), (1, Some("1!")), (2, Some("2!"))] {
            let bytes = &bytes[at..at + 4];
            let view = TensorView::from_bytes("x", DType::Int32, &[1], bytes).unwrap();
            let table = plain(&tensors(&[view], false, None));
            let marked = table.split_whitespace().find(|word| word.ends_with('!'));
            assert_eq!(marked, shown, "{table}");
        }
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let views = [
            TensorView::from_slice("a", &[2], &[0.5_f64, f64::NAN]).unwrap(),
            TensorView::from_slice("mask", &[3, 1], &[true, false, true]).unwrap(),
        ];
        let table = plain(&tensors(&views, true, None));
        let lines: Vec<_> = table.lines().collect();
        assert!(!lines[0].contains("index"), "{table}");
        let dtype = lines[0].find("dtype").unwrap();
        assert_eq!(lines[1].find("float64"), Some(dtype), "{table}");
        assert_eq!(lines[2].find("bool"), Some(dtype), "{table}");
        let nan = lines[0].find("NaN").unwrap() + "NaN".len();
        assert_eq!(&lines[1][nan - 1..nan], "1", "{table}");
        assert!(
            lines[1].ends_with("0.5 NaN") && lines[2].ends_with("true false true"),
            "{table}"
        );
    }

    /// (width, what is in the head, what is in the first row)
    const WIDTHS: &[(usize, &str, &str)] = &[
        (
            140,
            "name index dtype shape bytes align min max mean NaN first values",
            "[1,16,21,30,52]",
        ),
        (
            90,
            "name index dtype shape bytes align min max mean NaN",
            "[1,16,21,30,52]",
        ),
        (
            80,
            "name index dtype shape bytes min max mean NaN",
            "[1,16,21,30,52]",
        ),
        (60, "name index dtype shape min max mean NaN", "[1,16,2…"),
        (40, "name dtype shape min max", "prompt_… "),
    ];

    #[test]
    fn what_matters_least_gives_way_first() {
        let zeros = vec![0.5_f64; 16 * 21 * 30 * 52];
        let shape = [1, 16, 21, 30, 52];
        let view = TensorView::from_slice("prompt_embeds", &shape, &zeros).unwrap();
        let views = [view.with_list_index(10)];
        for &(width, heads, row) in WIDTHS {
            let table = plain(&tensors(&views, true, Some(width)));
            let mut lines = table.lines();
            let found: Vec<_> = lines.next().unwrap().split_whitespace().collect();
            assert_eq!(found.join(" "), heads, "{width}\n{table}");
            assert!(lines.next().unwrap().contains(row), "{width}\n{table}");
        }
    }

    #[test]
    fn sizes_are_short() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (97_044_480, "92.5 MiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
