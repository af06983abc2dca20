//! The dictionary of a header.

/// A Python literal of the few kinds that stand in a header.
pub(super) struct Literal<'a>(pub(super) &'a str);

impl<'a> Literal<'a> {
    /// `descr`, unless it is a list; `fortran_order`; `shape`.
    pub(super) fn dictionary(mut self) -> Option<(Option<&'a str>, bool, Vec<usize>)> {
        let (mut description, mut order, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            let again = match key {
                "descr" if self.take('[') => {
                    // What the fields are is not asked for, nor what follows.
                    return Some((None, false, Vec::new()));
                }
                "descr" => description.replace(self.string()?).is_some(),
                "fortran_order" => order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return None,
            };
            if again {
                return None;
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        self.0.trim_start().is_empty().then_some(())?;
        Some((Some(description?), order?, shape?))
    }

    fn take(&mut self, next: char) -> bool {
        match self.0.trim_start().strip_prefix(next) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, next: char) -> Option<()> {
        self.take(next).then_some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = if self.take('\'') {
            '\''
        } else {
            self.expect('"').map(|()| '"')?
        };
        let (text, rest) = self.0.split_once(quote)?;
        self.0 = rest;
        (!text.contains('\\')).then_some(text)
    }

    fn boolean(&mut self) -> Option<bool> {
        let text = self.0.trim_start();
        let (value, rest) = match text.strip_prefix("True") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("False")?),
        };
        self.0 = rest;
        Some(value)
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        let mut dims = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            let text = self.0.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit())?;
            let (digits, rest) = text.split_at(end);
            dims.push(digits.parse().ok()?);
            // Python 2 wrote long integers so.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Some(dims)
    }
}
