//! Texts of `awk` as numbers.

/// Two numbers, by an operator.
pub(super) fn summed(a: f64, operator: &str, b: f64) -> f64 {
    match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => a % b,
    }
}

/// The number at the beginning of a text.
pub(super) fn number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part =
        |(at, c): (usize, char)| c.is_ascii_digit() || c == '.' || at == 0 && matches!(c, '-' | '+');
    let end = text.char_indices().find(|part| !is_part(*part)).map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(0.0)
}

/// As it is printed.
pub(super) fn shown(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Whether a value holds: a number that is not 0, or a text that is there.
pub(super) fn is_so(text: &str) -> bool {
    match text.trim().parse::<f64>() {
        Ok(number) => number != 0.0,
        Err(_) => !text.is_empty(),
    }
}

/// Numbers are compared as such, texts letter by letter.
pub(super) fn compares(a: &str, operator: &str, b: &str) -> bool {
    let numbers = a.trim().parse::<f64>().ok().zip(b.trim().parse::<f64>().ok());
    let order = match numbers {
        Some((a, b)) => a.partial_cmp(&b),
        None => Some(a.cmp(b)),
    };
    let Some(order) = order else { return operator == "!=" };
    match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}
