//! What the elements of a tensor are like.

use half::{bf16, f16};
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::{DType, TensorView};

use crate::number::Number;

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
    /// Looks at every element.
    pub(crate) fn of(view: &TensorView<'_>) -> Self {
        let stats = visit(view, Summary).unwrap_or_default();
        let first = first(view, FIRST);
        Self { first, ..stats }
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
    visit(view, First(count)).unwrap_or_default()
}

/// Something to be found out about elements, by the kind of numbers that they are.
trait Visitor: Sized {
    type Output;

    fn bools(self, bytes: &[u8]) -> Self::Output;
    fn complex(self, elements: impl Iterator<Item = [f64; 2]>) -> Self::Output;
    fn floats(self, elements: impl Iterator<Item = f64>) -> Self::Output;
    fn integers(self, elements: impl Iterator<Item = i128>) -> Self::Output;
}

/// Hands the elements to the visitor; `None` for a dtype that this tool does not know yet.
fn visit<V: Visitor>(view: &TensorView<'_>, visitor: V) -> Option<V::Output> {
    fn elements<T: Element>(view: &TensorView<'_>) -> impl Iterator<Item = T> {
        view.elements::<T>().into_iter().flatten()
    }
    fn float<T: Element + Into<f32>, V: Visitor>(view: &TensorView<'_>, visitor: V) -> V::Output {
        visitor.floats(elements::<T>(view).map(|x| f64::from(x.into())))
    }
    fn integer<T: Element + Into<i128>, V: Visitor>(
        view: &TensorView<'_>,
        visitor: V,
    ) -> V::Output {
        visitor.integers(elements::<T>(view).map(T::into))
    }
    Some(match view.dtype() {
        DType::BFloat16 => float::<bf16, V>(view, visitor),
        DType::Bool => visitor.bools(view.bytes()),
        DType::Complex128 => visitor.complex(elements(view)),
        DType::Complex64 => visitor.complex(elements(view).map(|x: [f32; 2]| x.map(f64::from))),
        DType::Float16 => float::<f16, V>(view, visitor),
        DType::Float32 => float::<f32, V>(view, visitor),
        DType::Float64 => visitor.floats(elements(view)),
        DType::Float8E4M3Fn => float::<Float8E4M3Fn, V>(view, visitor),
        DType::Float8E4M3Fnuz => float::<Float8E4M3Fnuz, V>(view, visitor),
        DType::Float8E5M2 => float::<Float8E5M2, V>(view, visitor),
        DType::Float8E5M2Fnuz => float::<Float8E5M2Fnuz, V>(view, visitor),
        DType::Float8E8M0Fnu => float::<Float8E8M0Fnu, V>(view, visitor),
        DType::Int16 => integer::<i16, V>(view, visitor),
        DType::Int32 => integer::<i32, V>(view, visitor),
        DType::Int64 => integer::<i64, V>(view, visitor),
        DType::Int8 => integer::<i8, V>(view, visitor),
        DType::UInt16 => integer::<u16, V>(view, visitor),
        DType::UInt32 => integer::<u32, V>(view, visitor),
        DType::UInt64 => integer::<u64, V>(view, visitor),
        DType::UInt8 => integer::<u8, V>(view, visitor),
        _ => return None,
    })
}

/// Takes so many of the first elements.
struct First(usize);

impl First {
    fn take<T>(self, elements: impl Iterator<Item = T>, number: fn(T) -> Number) -> Vec<Number> {
        elements.take(self.0).map(number).collect()
    }
}

impl Visitor for First {
    type Output = Vec<Number>;

    fn bools(self, bytes: &[u8]) -> Vec<Number> {
        self.take(bytes.iter().copied(), Number::of_bool)
    }

    fn complex(self, elements: impl Iterator<Item = [f64; 2]>) -> Vec<Number> {
        self.take(elements, |[re, im]| Number::Complex(re, im))
    }

    fn floats(self, elements: impl Iterator<Item = f64>) -> Vec<Number> {
        self.take(elements, Number::Float)
    }

    fn integers(self, elements: impl Iterator<Item = i128>) -> Vec<Number> {
        self.take(elements, Number::Integer)
    }
}

/// Works out minimum, maximum, mean and what is no number.
struct Summary;

impl Visitor for Summary {
    type Output = Stats;

    /// The mean is the share of what is true; a byte that is no bool counts as no number.
    fn bools(self, bytes: &[u8]) -> Stats {
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
            ..Stats::default()
        }
    }

    /// Complex numbers have no order, so no minimum and no maximum.
    fn complex(self, elements: impl Iterator<Item = [f64; 2]>) -> Stats {
        let (mut means, mut count, mut nan) = ([Mean::default(); 2], 0_usize, 0_usize);
        for x in elements {
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
        Stats {
            mean: (count > 0).then_some(Number::Complex(re, im)),
            nan,
            ..Stats::default()
        }
    }

    fn floats(self, elements: impl Iterator<Item = f64>) -> Stats {
        let (mut min, mut max, mut mean) = (f64::INFINITY, f64::NEG_INFINITY, Mean::default());
        let (mut count, mut nan) = (0_usize, 0_usize);
        for x in elements {
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
            ..Stats::default()
        }
    }

    fn integers(self, elements: impl Iterator<Item = i128>) -> Stats {
        let (mut range, mut sum, mut count) = (None, 0_i128, 0_usize);
        for x in elements {
            let (min, max) = range.unwrap_or((x, x));
            range = Some((x.min(min), x.max(max)));
            // Fewer than 2^63 elements, each less than 2^64: it fits.
            sum += x;
            count += 1;
        }
        Stats {
            min: range.map(|(min, _)| Number::Integer(min)),
            max: range.map(|(_, max)| Number::Integer(max)),
            mean: range.map(|_| Number::Float(sum as f64 / count as f64)),
            ..Stats::default()
        }
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
            r#"{"min":18446744073709551615,"max":18446744073709551615,"mean":1.8446744073709552e19,"nan":0,"first":[18446744073709551615]}"#,
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
}
