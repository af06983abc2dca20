//! What the elements of a tensor are like.

use half::{bf16, f16};
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::{DType, TensorView};

use crate::json;

/// One element, for people to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Complex(f64, f64),
    Float(f64),
    Integer(i128),
    /// A byte of a bool tensor that is neither 0 nor 1.
    NoBool(u8),
}

impl Number {
    /// For people: short rather than exact.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Complex(re, im) => {
                let sign = if im.is_sign_negative() { '-' } else { '+' };
                format!("{}{sign}{}i", short(re), short(im.abs()))
            }
            Self::Float(value) => short(value),
            Self::Integer(value) => value.to_string(),
            Self::NoBool(byte) => format!("{byte:#04x}?"),
        }
    }

    /// For scripts: exact.
    fn json(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Complex(re, im) => format!("[{},{}]", json::number(re), json::number(im)),
            Self::Float(value) => json::number(value),
            Self::Integer(value) => value.to_string(),
            Self::NoBool(byte) => byte.to_string(),
        }
    }
}

/// A float with as many digits as tell it from others at a glance.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".into()
        } else {
            format!("{value}")
        };
    }
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Minimum, maximum and mean of what is a number, and how many are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stats {
    pub(crate) min: Option<Number>,
    pub(crate) max: Option<Number>,
    pub(crate) mean: Option<Number>,
    pub(crate) nan: usize,
    first: Vec<Number>,
}

impl Stats {
    /// Looks at every element, once.
    pub(crate) fn of(view: &TensorView<'_>) -> Self {
        let mut stats = match view.dtype() {
            DType::BFloat16 => floats(view, |x: bf16| x.to_f64()),
            DType::Bool => bools(view.bytes()),
            DType::Complex128 => complex(view, |x: [f64; 2]| x),
            DType::Complex64 => complex(view, |x: [f32; 2]| x.map(f64::from)),
            DType::Float16 => floats(view, |x: f16| x.to_f64()),
            DType::Float32 => floats(view, |x: f32| f64::from(x)),
            DType::Float64 => floats(view, |x: f64| x),
            DType::Float8E4M3Fn => floats(view, |x: Float8E4M3Fn| f64::from(x.to_f32())),
            DType::Float8E4M3Fnuz => floats(view, |x: Float8E4M3Fnuz| f64::from(x.to_f32())),
            DType::Float8E5M2 => floats(view, |x: Float8E5M2| f64::from(x.to_f32())),
            DType::Float8E5M2Fnuz => floats(view, |x: Float8E5M2Fnuz| f64::from(x.to_f32())),
            DType::Float8E8M0Fnu => floats(view, |x: Float8E8M0Fnu| f64::from(x.to_f32())),
            DType::Int16 => integers::<i16>(view),
            DType::Int32 => integers::<i32>(view),
            DType::Int64 => integers::<i64>(view),
            DType::Int8 => integers::<i8>(view),
            DType::UInt16 => integers::<u16>(view),
            DType::UInt32 => integers::<u32>(view),
            DType::UInt64 => integers::<u64>(view),
            DType::UInt8 => integers::<u8>(view),
            // A dtype that this tool does not know yet.
            _ => Self::default(),
        };
        stats.first = first(view, FIRST);
        stats
    }

    /// One JSON object; what is not finite is a string in it, and what there is not is null.
    pub(crate) fn json(&self) -> String {
        let value = |number: Option<Number>| number.map_or_else(|| "null".to_owned(), Number::json);
        let first: Vec<_> = self.first.iter().copied().map(Number::json).collect();
        format!(
            r#"{{"min":{},"max":{},"mean":{},"nan":{},"first":[{}]}}"#,
            value(self.min),
            value(self.max),
            value(self.mean),
            self.nan,
            first.join(","),
        )
    }
}

/// How many of the first elements are shown.
pub(crate) const FIRST: usize = 4;

/// The first `count` elements.
pub(crate) fn first(view: &TensorView<'_>, count: usize) -> Vec<Number> {
    fn take<T: Element>(
        view: &TensorView<'_>,
        count: usize,
        number: impl Fn(T) -> Number,
    ) -> Vec<Number> {
        let elements = view.elements::<T>().into_iter().flatten();
        elements.take(count).map(number).collect()
    }
    fn whole<T: Element + Into<i128>>(view: &TensorView<'_>, count: usize) -> Vec<Number> {
        take(view, count, |x: T| Number::Integer(x.into()))
    }
    let float = |x: f32| Number::Float(f64::from(x));
    match view.dtype() {
        DType::BFloat16 => take(view, count, |x: bf16| float(x.to_f32())),
        DType::Bool => view
            .bytes()
            .iter()
            .take(count)
            .map(|&byte| bool_of(byte))
            .collect(),
        DType::Complex128 => take(view, count, |[re, im]: [f64; 2]| Number::Complex(re, im)),
        DType::Complex64 => take(view, count, |[re, im]: [f32; 2]| {
            Number::Complex(re.into(), im.into())
        }),
        DType::Float16 => take(view, count, |x: f16| float(x.to_f32())),
        DType::Float32 => take(view, count, float),
        DType::Float64 => take(view, count, Number::Float),
        DType::Float8E4M3Fn => take(view, count, |x: Float8E4M3Fn| float(x.to_f32())),
        DType::Float8E4M3Fnuz => take(view, count, |x: Float8E4M3Fnuz| float(x.to_f32())),
        DType::Float8E5M2 => take(view, count, |x: Float8E5M2| float(x.to_f32())),
        DType::Float8E5M2Fnuz => take(view, count, |x: Float8E5M2Fnuz| float(x.to_f32())),
        DType::Float8E8M0Fnu => take(view, count, |x: Float8E8M0Fnu| float(x.to_f32())),
        DType::Int16 => whole::<i16>(view, count),
        DType::Int32 => whole::<i32>(view, count),
        DType::Int64 => whole::<i64>(view, count),
        DType::Int8 => whole::<i8>(view, count),
        DType::UInt16 => whole::<u16>(view, count),
        DType::UInt32 => whole::<u32>(view, count),
        DType::UInt64 => whole::<u64>(view, count),
        DType::UInt8 => whole::<u8>(view, count),
        _ => Vec::new(),
    }
}

fn floats<T: Element>(view: &TensorView<'_>, value: impl Fn(T) -> f64) -> Stats {
    let (mut min, mut max, mut mean) = (f64::INFINITY, f64::NEG_INFINITY, Mean::default());
    let (mut count, mut nan) = (0_usize, 0_usize);
    for element in view.elements::<T>().into_iter().flatten() {
        let x = value(element);
        if x.is_nan() {
            nan += 1;
            continue;
        }
        count += 1;
        min = min.min(x);
        max = max.max(x);
        mean.add(x);
    }
    let of = |value: f64| (count > 0).then_some(Number::Float(value));
    Stats {
        min: of(min),
        max: of(max),
        mean: of(mean.of(count)),
        nan,
        first: Vec::new(),
    }
}

/// A sum on its way to a mean, which is no more than the largest number where the sum is.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    /// The sum over a power of two, which no number of elements carries past the largest float.
    scaled: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.scaled += x / Self::SCALE;
    }

    fn of(self, count: usize) -> f64 {
        let mean = self.sum / count as f64;
        let scaled = self.scaled / count as f64;
        if mean.is_finite() {
            mean
        } else if scaled.is_finite() {
            (scaled * Self::SCALE).clamp(f64::MIN, f64::MAX)
        } else {
            scaled
        }
    }

    /// 2^64: there are fewer elements.
    const SCALE: f64 = 18_446_744_073_709_551_616.0;
}

fn complex<T: Element>(view: &TensorView<'_>, value: impl Fn(T) -> [f64; 2]) -> Stats {
    let (mut means, mut count, mut nan) = ([Mean::default(); 2], 0_usize, 0_usize);
    for element in view.elements::<T>().into_iter().flatten() {
        let x = value(element);
        if x.iter().any(|part| part.is_nan()) {
            nan += 1;
            continue;
        }
        count += 1;
        for (mean, part) in means.iter_mut().zip(x) {
            mean.add(part);
        }
    }
    let [re, im] = means.map(|mean| mean.of(count));
    let mean = Number::Complex(re, im);
    Stats {
        // Complex numbers have no order.
        mean: (count > 0).then_some(mean),
        nan,
        ..Stats::default()
    }
}

fn integers<T: Element + Into<i128> + Ord>(view: &TensorView<'_>) -> Stats {
    let (mut range, mut sum, mut count) = (None, 0_i128, 0_usize);
    for x in view.elements::<T>().into_iter().flatten() {
        let (min, max) = range.unwrap_or((x, x));
        range = Some((x.min(min), x.max(max)));
        // At most 2^63 elements of 2^64: it fits.
        sum += x.into();
        count += 1;
    }
    Stats {
        min: range.map(|(min, _)| Number::Integer(min.into())),
        max: range.map(|(_, max)| Number::Integer(max.into())),
        mean: (count > 0).then_some(Number::Float(sum as f64 / count as f64)),
        ..Stats::default()
    }
}

/// The mean is the share of what is true; a byte that is no bool counts as no number.
fn bools(bytes: &[u8]) -> Stats {
    let mut counts = [0_usize; 2];
    let mut nan = 0;
    for &byte in bytes {
        match counts.get_mut(usize::from(byte)) {
            Some(count) => *count += 1,
            None => nan += 1,
        }
    }
    let [no, yes] = counts;
    let any = no + yes > 0;
    Stats {
        min: any.then_some(Number::Bool(no == 0)),
        max: any.then_some(Number::Bool(yes > 0)),
        mean: any.then_some(Number::Float(yes as f64 / (no + yes) as f64)),
        nan,
        first: Vec::new(),
    }
}

const fn bool_of(byte: u8) -> Number {
    match byte {
        0 => Number::Bool(false),
        1 => Number::Bool(true),
        byte => Number::NoBool(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (dtype, bytes, as JSON)
    const TENSORS: &[(DType, &[u8], &str)] = &[
        (
            DType::Int8,
            &[1, 0xff, 3],
            r#"{"min":-1,"max":3,"mean":1.0,"nan":0,"first":[1,-1,3]}"#,
        ),
        (
            DType::UInt64,
            &[0xff; 8],
            r#"{"min":18446744073709551615,"max":18446744073709551615,"mean":1.8446744073709552e+19,"nan":0,"first":[18446744073709551615]}"#,
        ),
        (
            DType::Float32,
            &[0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f, 0, 0, 0x40, 0x40],
            r#"{"min":1.0,"max":3.0,"mean":2.0,"nan":1,"first":[1.0,"NaN",3.0]}"#,
        ),
        (
            DType::Float16,
            &[0, 0x7c, 0, 0x3c],
            r#"{"min":1.0,"max":"Infinity","mean":"Infinity","nan":0,"first":["Infinity",1.0]}"#,
        ),
        (
            DType::BFloat16,
            &[0xc0, 0x7f],
            r#"{"min":null,"max":null,"mean":null,"nan":1,"first":["NaN"]}"#,
        ),
        (
            DType::Bool,
            &[1, 0, 7, 1],
            r#"{"min":false,"max":true,"mean":0.6666666666666666,"nan":1,"first":[true,false,7,true]}"#,
        ),
        (
            DType::Complex64,
            &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf],
            r#"{"min":null,"max":null,"mean":[1.0,-1.0],"nan":0,"first":[[1.0,-1.0]]}"#,
        ),
        (
            DType::Complex64,
            &[0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xbf],
            r#"{"min":null,"max":null,"mean":null,"nan":1,"first":[["NaN",-1.0]]}"#,
        ),
        (
            DType::Float8E4M3Fn,
            &[0x38, 0x7f],
            r#"{"min":1.0,"max":1.0,"mean":1.0,"nan":1,"first":[1.0,"NaN"]}"#,
        ),
        (
            DType::Int64,
            &[],
            r#"{"min":null,"max":null,"mean":null,"nan":0,"first":[]}"#,
        ),
    ];

    #[test]
    fn statistics_are_of_what_is_a_number() {
        for &(dtype, bytes, json) in TENSORS {
            let shape = [bytes.len() / dtype.size()];
            let view = TensorView::from_bytes("x", dtype, &shape, bytes).unwrap();
            assert_eq!(Stats::of(&view).json(), json, "{dtype}");
        }
    }

    #[test]
    fn a_mean_is_finite_where_all_elements_are() {
        let (max, infinity) = (f64::MAX, f64::INFINITY);
        for (elements, mean) in [
            (&[max, max, max][..], max),
            (&[max, -max, max, max], max / 2.0),
            (&[-max, -max], -max),
            (&[max, max, infinity], infinity),
            (&[max, max, -infinity], -infinity),
        ] {
            let shape = [elements.len()];
            let view = TensorView::from_slice("x", &shape, elements).unwrap();
            assert_eq!(Stats::of(&view).mean, Some(Number::Float(mean)));
            let pairs: Vec<_> = elements.iter().map(|&x| [x, 1.0]).collect();
            let view = TensorView::from_slice("x", &shape, &pairs).unwrap();
            assert_eq!(Stats::of(&view).mean, Some(Number::Complex(mean, 1.0)));
        }
    }

    #[test]
    fn every_dtype_has_statistics() {
        for &dtype in DType::ALL {
            let bytes = vec![1; dtype.size() * 2];
            let view = TensorView::from_bytes("x", dtype, &[2], &bytes).unwrap();
            let stats = Stats::of(&view);
            assert!(stats.mean.is_some() && stats.first.len() == 2, "{dtype}");
        }
    }

    #[test]
    fn floats_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.125, "0.125"),
            (1.0 / 3.0, "0.3333"),
            (-1e-9, "-1.000e-9"),
            (123_456.0, "123456"),
            (1e30, "1.000e30"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(Number::Complex(1.0, -0.5).text(), "1-0.5i");
        assert_eq!(Number::NoBool(2).text(), "0x02?");
    }
}
