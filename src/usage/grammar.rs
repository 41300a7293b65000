//! Reads the texts of curves.

use apimachinery::quantity::Quantity;
use golang::duration;

use super::against::CurveError;
use super::curve::{Amount, Curve};
use super::expression::CurveExpression;

/// What is longer is refused.
const MAX_TEXT_BYTES: usize = 1024;
/// More steps are refused.
const MAX_STEPS: usize = 64;

impl Curve {
    /// Reads a text as users write it.
    ///
    /// # Errors
    /// What is wrong with it, and what it may be.
    pub fn parse(text: &str) -> Result<Curve, CurveError> {
        read(text)
    }
}

fn read(text: &str) -> Result<Curve, CurveError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("longer than {MAX_TEXT_BYTES} bytes").into());
    }
    let text = text.trim();
    if let Some(expression) = text.strip_prefix("cel:") {
        return Ok(Curve::Expression(Box::new(CurveExpression::parse(expression.trim())?)));
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let curve = match word {
        "ramp" => between(rest).map(|(from, to, over)| Curve::Ramp(from, to, over)),
        "wave" => between(rest).map(|(low, high, period)| Curve::Wave(low, high, period)),
        "steps" => steps(rest).map(Curve::Steps),
        "requests" => requests(rest),
        _ if rest.is_empty() => amount(word).map(Curve::Constant),
        _ => Err(format!(
            "{text:?} is no amount (as 250m, 64Mi or 40%), and none of: ramp FROM TO TIME; wave LOW HIGH TIME; \
             steps AMOUNT, AMOUNT at TIME, ...; requests BASE EACH; cel: EXPRESSION"
        )),
    };
    Ok(curve?)
}

fn between(text: &str) -> Result<(Amount, Amount, f64), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [first, second, over] = words[..] else {
        return Err(format!("{text:?} must be two amounts and a time, as 100m 2 5m"));
    };
    let over = time(over)?;
    if over <= 0.0 {
        return Err("the time must be longer than 0s".into());
    }
    Ok((amount(first)?, amount(second)?, over))
}

fn requests(text: &str) -> Result<Curve, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [base, each] = words[..] else {
        return Err(format!(
            "{text:?} must be two amounts: without requests, and for each a second, as 20m 5m"
        ));
    };
    Ok(Curve::Requests(amount(base)?, amount(each)?))
}

fn steps(text: &str) -> Result<Vec<(f64, Amount)>, String> {
    let mut steps: Vec<(f64, Amount)> = Vec::new();
    for step in text.split(',') {
        let words: Vec<&str> = step.split_whitespace().collect();
        let (at, amount) = match words[..] {
            [first] if steps.is_empty() => (0.0, amount(first)?),
            [next, "at", at] if !steps.is_empty() => (time(at)?, amount(next)?),
            _ => {
                return Err(format!(
                    "{step:?} must be AMOUNT for the first step, and AMOUNT at TIME for others"
                ));
            }
        };
        if steps.last().is_some_and(|(before, _)| *before >= at) {
            return Err(format!("{step:?} must be later than the step before"));
        }
        steps.push((at, amount));
    }
    if steps.len() > MAX_STEPS {
        return Err(format!("more than {MAX_STEPS} steps"));
    }
    Ok(steps)
}

fn amount(text: &str) -> Result<Amount, String> {
    let wrong =
        || format!("{text:?} is no amount: it may be a quantity, as 250m or 64Mi, or a share, as 40%");
    if let Some(share) = text.strip_suffix('%') {
        let share: f64 = share.parse().map_err(|_| wrong())?;
        return if (0.0..=10_000.0).contains(&share) {
            Ok(Amount::Share(share / 100.0))
        } else {
            Err(wrong())
        };
    }
    let units = Quantity::parse(text).map_err(|_| wrong())?.as_approximate_f64();
    if units >= 0.0 { Ok(Amount::Units(units)) } else { Err(wrong()) }
}

fn time(text: &str) -> Result<f64, String> {
    let time = duration::parse(text).ok_or_else(|| format!("{text:?} is no time, as 90s or 5m"))?;
    Ok(time.as_secs_f64())
}
