//! `'%s is %d'.format([x, n])` (`cel-go/ext/formatting.go`), numbers as in English.

use golang::go_text::quote;

use super::bounds;
use super::convert;
use super::error::EvaluationError;
use super::value::{MapKey, Value};

/// Digits behind the point where none are asked for.
const DEFAULT_PRECISION: usize = 6;
/// How many may be asked for; more are not written.
const MAX_PRECISION: usize = 1_000;
/// Between the parts of a number with an exponent: narrow spaces that do not break.
const TIMES_TEN: &str = "\u{202f}\u{d7}\u{202f}10";

/// What is wrong with a clause.
type BadClause = Result<String, String>;

/// `format`
pub(super) fn format(text: &str, args: &[Value]) -> Result<Value, EvaluationError> {
    let mut out = String::with_capacity(text.len());
    let mut args = args.iter().enumerate();
    let mut rest = text;
    let mut count = 0;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(behind) = behind.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let arg = args.next().ok_or_else(|| told(format!("index {count} out of range")))?.1;
        count += 1;
        if behind.is_empty() {
            return Err(told("unexpected end of string".to_owned()));
        }
        let (precision, clause, behind) =
            clause(behind).map_err(|error| told(format!("could not parse formatting clause: {error}")))?;
        bounds::written(arg, out.len())?;
        let written = write(clause, precision, arg);
        out.push_str(&written.map_err(|error| told(format!("error during formatting: {error}")))?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(Value::from(out.as_str()))
}

fn told(message: String) -> EvaluationError {
    EvaluationError::Function(message)
}

/// The precision, the letter, and what follows.
fn clause(text: &str) -> Result<(Option<usize>, char, &str), String> {
    let (precision, rest) = match text.strip_prefix('.') {
        Some(behind) => {
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = behind.split_at(digits);
            if rest.is_empty() {
                return Err("error while parsing precision: could not find end of precision specifier".into());
            }
            let wrong = || {
                let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: \
                     parsing {}: {why}",
                    quote(digits)
                )
            };
            (Some(digits.parse::<usize>().map_err(|_| wrong())?), rest)
        }
        None => (None, text),
    };
    let letter = rest.chars().next().unwrap_or_default();
    match letter {
        's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => Ok((precision, letter, &rest[1..])),
        other => Err(format!("unrecognized formatting clause \"{other}\"")),
    }
}

fn write(clause: char, precision: Option<usize>, arg: &Value) -> BadClause {
    let precision = precision.unwrap_or(DEFAULT_PRECISION).min(MAX_PRECISION);
    match clause {
        's' => string(arg),
        'd' => decimal(arg),
        'f' => fixed(arg, precision),
        'e' => scientific(arg),
        'b' => binary(arg),
        'o' => octal(arg),
        letter => hex(arg, letter == 'X'),
    }
}

fn given(what: &str, arg: &Value) -> String {
    format!("{what}, was given {}", arg.type_name())
}

fn string(arg: &Value) -> BadClause {
    match arg {
        Value::Null => Ok("null".to_owned()),
        Value::Type(name) => Ok(name.to_string()),
        Value::List(list) => {
            let items = list.items.iter().map(literal).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Value::Map(map) => {
            let entry = |(key, value): (&MapKey, &Value)| {
                let key = literal(&key.value())?;
                let value = literal(value)?;
                Ok((key, value))
            };
            let mut entries = map.entries.iter().map(entry).collect::<Result<Vec<_>, String>>()?;
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Optional(_) | Value::Opaque(_) | Value::Host(_) | Value::Invalid(_) => Err(given(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps",
            arg,
        )),
        scalar => match convert::string(scalar) {
            Ok(Value::String(text)) => Ok(text.to_string()),
            Ok(_) => Err(format!("could not convert argument {scalar:?} to string")),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Within lists and maps: as an expression would write it.
fn literal(value: &Value) -> BadClause {
    Ok(match value {
        Value::String(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&string(value)?)),
        Value::Timestamp(_) => format!("timestamp({})", quote(&string(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&string(value)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.DEFAULT_PRECISION$}"),
        Value::Double(number) => quote(match number {
            number if number.is_nan() => "NaN",
            number if *number > 0.0 => "+Inf",
            _ => "-Inf",
        }),
        Value::Optional(_) | Value::Opaque(_) | Value::Host(_) | Value::Invalid(_) => {
            return Err(format!("no formatting function for {}", value.type_name()));
        }
        other => string(other)?,
    })
}

fn decimal(arg: &Value) -> BadClause {
    match arg {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        _ => Err(given("decimal clause can only be used on integers", arg)),
    }
}

/// A number, or the text of one that is none.
fn double(arg: &Value) -> Option<f64> {
    match arg {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn unbounded(number: f64) -> Option<String> {
    let text = match number {
        _ if number.is_nan() => "NaN",
        _ if number.is_finite() => return None,
        _ if number > 0.0 => "\u{221e}",
        _ => "-\u{221e}",
    };
    Some(text.to_owned())
}

/// Thousands are set apart.
fn fixed(arg: &Value, precision: usize) -> BadClause {
    let number = double(arg).ok_or_else(|| given("fixed-point clause can only be used on doubles", arg))?;
    if let Some(text) = unbounded(number) {
        return Ok(text);
    }
    let text = format!("{number:.precision$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = sign.to_owned();
    for (at, digit) in text.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    Ok(out)
}

/// `1.052033 × 10⁰³`; what precision is asked for is taken for a width, as upstream does.
fn scientific(arg: &Value) -> BadClause {
    let number = double(arg).ok_or_else(|| given("scientific clause can only be used on doubles", arg))?;
    if let Some(text) = unbounded(number) {
        return Ok(text);
    }
    let text = format!("{number:.DEFAULT_PRECISION$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or_default();
    let sign = if exponent < 0 { "\u{207b}" } else { "" };
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10)? as usize);
    let power: String = format!("{:02}", exponent.abs()).chars().filter_map(raised).collect();
    Ok(format!("{digits}{TIMES_TEN}{sign}{power}"))
}

fn binary(arg: &Value) -> BadClause {
    match arg {
        Value::Int(number) => Ok(signed(*number, format!("{:b}", number.unsigned_abs()))),
        Value::Uint(number) => Ok(format!("{number:b}")),
        Value::Bool(flag) => Ok(u8::from(*flag).to_string()),
        _ => Err(given("only integers and bools can be formatted as binary", arg)),
    }
}

fn octal(arg: &Value) -> BadClause {
    match arg {
        Value::Int(number) => Ok(signed(*number, format!("{:o}", number.unsigned_abs()))),
        Value::Uint(number) => Ok(format!("{number:o}")),
        _ => Err(given("octal clause can only be used on integers", arg)),
    }
}

fn hex(arg: &Value, is_upper: bool) -> BadClause {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = match arg {
        Value::Int(number) => signed(*number, format!("{:x}", number.unsigned_abs())),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(of) => bytes(of),
        _ => return Err(given("only integers, byte buffers, and strings can be formatted as hex", arg)),
    };
    Ok(if is_upper { text.to_uppercase() } else { text })
}

fn signed(number: i64, digits: String) -> String {
    if number < 0 { format!("-{digits}") } else { digits }
}
