//! Tensors in a table that fits the terminal.

use std::fmt::Write as _;

use tensorwire::TensorView;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::{BOLD, DIM, RESET, YELLOW};
use crate::safe_text;
use crate::stats::{self, Number, Stats};

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

/// (head of a column, whether it holds numbers, width that it may shrink to; `None` is not at all)
type Head = (&'static str, bool, Option<usize>);

/// In the order shown. The last that may shrink does so first.
const HEADS: &[Head] = &[
    ("name", false, Some(8)),
    ("index", true, None),
    ("dtype", false, None),
    ("shape", false, Some(6)),
    ("bytes", true, None),
    ("align", true, None),
    ("min", true, None),
    ("max", true, None),
    ("mean", true, None),
    ("NaN", true, None),
    ("first values", false, Some(5)),
];

/// What is cut off first where there is no room even so.
const DROP: &[&str] = &[
    "first values",
    "align",
    "index",
    "bytes",
    "mean",
    "NaN",
    "min",
    "max",
    "dtype",
    "shape",
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
        Cell {
            text: first.join(" "),
            color: Some(DIM),
        },
    ]
}

fn shape(view: &TensorView<'_>) -> String {
    let dims: Vec<_> = view.dims().map(|dim| dim.to_string()).collect();
    format!("[{}]", dims.join(", "))
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
    heads: &'static [Head],
    rows: Vec<Vec<Cell>>,
    width: Option<usize>,
}

impl Table {
    const fn new(heads: &'static [Head], width: Option<usize>) -> Self {
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
        let column = |(index, head): (usize, &Head)| {
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
        for (index, (_, _, least)) in self.heads.iter().enumerate().rev() {
            let over = total(&widths).saturating_sub(limit);
            if let (Some(least), Some(width)) = (least, widths.get_mut(index)) {
                *width = width.saturating_sub(over).max((*least).min(*width));
            }
        }
        for dropped in DROP {
            if total(&widths) <= limit {
                break;
            }
            let index = self.heads.iter().position(|(head, ..)| head == dropped);
            if let Some(width) = index.and_then(|index| widths.get_mut(index)) {
                *width = 0;
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
        let heads = self.heads.iter().map(|(head, ..)| (*head, Some(BOLD)));
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
        for ((cell, color), (&width, &(_, right, _))) in cells.zip(widths.iter().zip(self.heads)) {
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
