//! `matchConditions`: several conditions that must all hold, of webhooks, policies and authorizers
//! (`webhook/matchconditions`, `authorization/cel`).

golang::text_error! {
    /// Why an expression, or several of them, could not be evaluated; in upstream's words.
    pub struct ExpressionError;
}

/// Whether all hold. One that does not decides, whatever goes wrong with others.
///
/// # Errors
/// What went wrong with those that could not be evaluated; one as it is, several in brackets.
pub fn all_hold(
    outcomes: impl Iterator<Item = Result<bool, ExpressionError>>,
) -> Result<bool, ExpressionError> {
    let mut errors = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => {
            let many: Vec<&str> = many.iter().map(|error| &**error).collect();
            Err(format!("[{}]", many.join(", ")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_hold_decides() {
        let of = |outcomes: &[Result<bool, &str>]| {
            all_hold(outcomes.iter().map(|outcome| outcome.map_err(ExpressionError::from)))
        };
        assert_eq!(of(&[]), Ok(true));
        assert_eq!(of(&[Ok(true), Ok(true)]), Ok(true));
        assert_eq!(of(&[Err("x"), Ok(false), Err("y")]), Ok(false));
        assert_eq!(of(&[Err("x"), Ok(true)]), Err("x".into()));
        assert_eq!(of(&[Err("x"), Err("y")]), Err("[x, y]".into()));
    }
}
