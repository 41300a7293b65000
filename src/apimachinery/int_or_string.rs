//! `intstr.IntOrString`: a number, or a percentage of one, or a name.

use serde::Deserialize;

golang::text_error! {
    /// A text where a number or a percentage should stand; in upstream's words.
    pub struct NoPercentage;
}

/// `spec.maxSurge`, `spec.maxUnavailable`, `targetPort`: what the field means says how to read it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// As `2`.
    Int(i64),
    /// As `25%` or `http`.
    String(String),
}

impl IntOrString {
    /// A number as it stands, a percentage of `total` (`GetScaledValueFromIntOrPercent`); any other text is
    /// an error.
    pub fn scaled(&self, total: i64, round_up: bool) -> Result<i64, NoPercentage> {
        let text = match self {
            IntOrString::Int(number) => return Ok(*number),
            IntOrString::String(text) => text,
        };
        let Some(percent) = text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok()) else {
            return Err(
                format!("invalid value for IntOrString: invalid type: {text:?} is not a percentage").into()
            );
        };
        let share = percent.saturating_mul(total);
        Ok(if round_up { share.saturating_add(99).div_euclid(100) } else { share.div_euclid(100) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_asked() {
        let quarter = IntOrString::String("25%".into());
        assert_eq!(quarter.scaled(10, true), Ok(3));
        assert_eq!(quarter.scaled(10, false), Ok(2));
        assert_eq!(quarter.scaled(0, true), Ok(0));
        assert_eq!(IntOrString::Int(7).scaled(10, true), Ok(7));
        assert!(IntOrString::String("seven".into()).scaled(10, true).is_err());
    }
}
