//! Sums of the shell (`$((...))`): C's operators on numbers of 64 bits, and assignments to variables.

use super::player::Player;
use crate::bounds::MAX_DEPTH;

/// Operators of two sides, the weakest first; in each row the longest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
/// What an operator is not, though it begins so.
const LONGER: &[&str] = &["||", "&&", "<<", ">>", "**", "++", "--"];
const ASSIGNMENTS: &[&str] = &["=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="];

/// Why a sum has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SumError {
    Syntax,
    DivisionByZero,
}

type Summed = Result<i64, SumError>;

struct Summing<'p, 'a> {
    player: &'p mut Player<'a>,
    text: &'p str,
    depth: usize,
    /// Whether what is read counts: of `a ? b : c` one side does not.
    counts: bool,
}

impl Player<'_> {
    /// Of a text in which variables with a dollar sign are filled in. What is none is said, and ends the
    /// script.
    pub(crate) fn sum(&mut self, text: &str) -> i64 {
        match self.summed(text) {
            Ok(value) => value,
            Err(error) => {
                let what = match error {
                    SumError::Syntax => "arithmetic syntax error",
                    SumError::DivisionByZero => "divide by zero",
                };
                self.give_up(what, 2);
                0
            }
        }
    }

    pub(super) fn summed(&mut self, text: &str) -> Summed {
        let mut summing = Summing { player: self, text: text.trim(), depth: 0, counts: true };
        if summing.text.is_empty() {
            return Ok(0);
        }
        let mut value = summing.assigned()?;
        while summing.take(",") {
            value = summing.assigned()?;
        }
        if summing.text.is_empty() { Ok(value) } else { Err(SumError::Syntax) }
    }

    /// What a variable is worth.
    fn worth(&self, name: &str) -> i64 {
        number(self.variable(name).trim()).unwrap_or(0)
    }
}

impl Summing<'_, '_> {
    fn take(&mut self, token: &str) -> bool {
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// `name = sum` and its kin, or a choice.
    fn assigned(&mut self) -> Summed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SumError::Syntax);
        }
        let value = self.assignment();
        self.depth -= 1;
        value
    }

    fn assignment(&mut self) -> Summed {
        let length = name_length(self.text);
        let (name, rest) = self.text.split_at(length);
        let rest = rest.trim_start();
        let operator = ASSIGNMENTS.iter().rev().find(|operator| rest.starts_with(**operator));
        let Some(operator) = operator.filter(|_| length > 0 && !rest.starts_with("==")) else {
            return self.chosen();
        };
        self.text = rest[operator.len()..].trim_start();
        let value = self.assigned()?;
        let before = self.player.worth(name);
        let value = applied(before, operator.trim_end_matches('='), value)?;
        if self.counts {
            self.player.set(name, value.to_string());
        }
        Ok(value)
    }

    /// `a ? b : c`
    fn chosen(&mut self) -> Summed {
        let condition = self.level(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let counts = self.counts;
        self.counts = counts && condition != 0;
        let first = self.assigned()?;
        if !self.take(":") {
            return Err(SumError::Syntax);
        }
        self.counts = counts && condition == 0;
        let second = self.assigned()?;
        self.counts = counts;
        Ok(if condition != 0 { first } else { second })
    }

    fn level(&mut self, level: usize) -> Summed {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let mut value = self.level(level + 1)?;
        loop {
            let is_it = |operator: &&&str| {
                self.text.starts_with(**operator)
                    && !LONGER
                        .iter()
                        .any(|longer| longer.len() > operator.len() && self.text.starts_with(longer))
                    && !self.text[operator.len()..].starts_with('=')
                    || operator.len() == 2 && self.text.starts_with(**operator)
            };
            let Some(operator) = operators.iter().find(is_it).copied() else { return Ok(value) };
            self.text = self.text[operator.len()..].trim_start();
            let counts = self.counts;
            self.counts &= !(operator == "&&" && value == 0 || operator == "||" && value != 0);
            let other = self.level(level + 1)?;
            // What does not count need not have a value.
            let other = if self.counts { other } else { other.max(1) };
            self.counts = counts;
            value = applied(value, operator, other)?;
        }
    }

    fn power(&mut self) -> Summed {
        let base = self.unary()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SumError::Syntax);
        }
        let exponent = self.power()?;
        self.depth -= 1;
        let exponent = u32::try_from(exponent).map_err(|_| SumError::Syntax)?;
        Ok(base.wrapping_pow(exponent))
    }

    fn unary(&mut self) -> Summed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SumError::Syntax);
        }
        let value = self.prefixed();
        self.depth -= 1;
        value
    }

    fn prefixed(&mut self) -> Summed {
        for (step, by) in [("++", 1), ("--", -1)] {
            if self.text.starts_with(step) && name_length(self.text[2..].trim_start()) > 0 {
                self.text = self.text[2..].trim_start();
                let name = self.name();
                let value = self.player.worth(&name).wrapping_add(by);
                self.put(&name, value);
                return Ok(value);
            }
        }
        if self.take("-") {
            return Ok(self.unary()?.wrapping_neg());
        }
        if self.take("+") {
            return self.unary();
        }
        if self.take("!") {
            return Ok(i64::from(self.unary()? == 0));
        }
        if self.take("~") {
            return Ok(!self.unary()?);
        }
        self.primary()
    }

    fn primary(&mut self) -> Summed {
        if self.take("(") {
            let value = self.assigned()?;
            return if self.take(")") { Ok(value) } else { Err(SumError::Syntax) };
        }
        if name_length(self.text) > 0 {
            let name = self.name();
            let value = self.player.worth(&name);
            for (step, by) in [("++", 1), ("--", -1)] {
                if self.take(step) {
                    self.put(&name, value.wrapping_add(by));
                    return Ok(value);
                }
            }
            return Ok(value);
        }
        let length =
            self.text.find(|c: char| !c.is_ascii_alphanumeric() && c != '#').unwrap_or(self.text.len());
        let (digits, rest) = self.text.split_at(length);
        let value = number(digits).ok_or(SumError::Syntax)?;
        self.text = rest.trim_start();
        Ok(value)
    }

    fn name(&mut self) -> String {
        let (name, rest) = self.text.split_at(name_length(self.text));
        self.text = rest.trim_start();
        name.to_owned()
    }

    fn put(&mut self, name: &str, value: i64) {
        if self.counts {
            self.player.set(name, value.to_string());
        }
    }
}

fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Decimal, `0x` and octal numbers, and `base#digits`.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = if let Some((base, digits)) = digits.split_once('#') {
        i64::from_str_radix(digits, base.parse().ok().filter(|base| (2..=36).contains(base))?).ok()?
    } else if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        // What is too large is the largest.
        digits.parse().ok().or_else(|| digits.bytes().all(|b| b.is_ascii_digit()).then_some(i64::MAX))?
    };
    Some(sign * value).filter(|_| !digits.is_empty())
}

fn applied(a: i64, operator: &str, b: i64) -> Summed {
    Ok(match operator {
        "" => b,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b).ok_or(SumError::DivisionByZero)?,
        "%" => a.checked_rem(b).ok_or(SumError::DivisionByZero)?,
        "<<" => a.wrapping_shl(u32::try_from(b & 63).unwrap_or(0)),
        ">>" => a.wrapping_shr(u32::try_from(b & 63).unwrap_or(0)),
        "&" => a & b,
        "^" => a ^ b,
        "|" => a | b,
        "&&" => i64::from(a != 0 && b != 0),
        "||" => i64::from(a != 0 || b != 0),
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "<=" => i64::from(a <= b),
        _ => i64::from(a >= b),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::Surroundings;

    #[test]
    fn sums_are_those_of_c() {
        let around = Surroundings::default();
        let mut player = Player::new(&around, None, vec![]);
        player.set("x", "7".into());
        for (text, wanted) in [
            ("", Ok(0)),
            ("1 + 2 * 3", Ok(7)),
            ("(1 + 2) * 3 - -4", Ok(13)),
            ("7 % 4 * 2", Ok(6)),
            ("2 ** 3 ** 2", Ok(512)),
            ("x", Ok(7)),
            ("x++ + 1", Ok(8)),
            ("x", Ok(8)),
            ("y = x -= 3, y + x", Ok(10)),
            ("--x", Ok(4)),
            ("x > 3 && x <= 4", Ok(1)),
            ("x == 4 ? 10 : (x = 9)", Ok(10)),
            ("x != 4 || !x", Ok(0)),
            ("0 && 1 / 0", Ok(0)),
            ("0x1f | 010", Ok(31)),
            ("2#101 << 1", Ok(10)),
            ("~5 & 0xf ^ 1", Ok(11)),
            ("nothing + 1", Ok(1)),
            ("1 < 2 == 1", Ok(1)),
            ("9223372036854775807 + 1", Ok(i64::MIN)),
            ("1 / 0", Err(SumError::DivisionByZero)),
            ("1 +", Err(SumError::Syntax)),
            ("1 2", Err(SumError::Syntax)),
            ("(1", Err(SumError::Syntax)),
            ("3 = 4", Err(SumError::Syntax)),
        ] {
            assert_eq!(player.summed(text), wanted, "{text}");
        }
        for deep in
            ["(".repeat(5000), "-".repeat(5000), "!".repeat(5000), "a=".repeat(5000), "1**".repeat(5000)]
        {
            assert_eq!(player.summed(&format!("{deep}1")), Err(SumError::Syntax));
        }
    }
}
