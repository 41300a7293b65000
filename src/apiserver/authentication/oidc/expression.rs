//! Expressions over what a token says and over the user that is made of it
//! (`k8s.io/apiserver/pkg/authentication/cel`).

use crate::authentication::errors::BadCredential;
use apis::admissionregistration::expressions::{BadExpression, compile};
use cel::{Activation, Budget, Environment, Program, Type, Value};

/// The variable of what a token says.
pub(super) const CLAIMS: &str = "claims";
/// The variable of the user.
pub(super) const USER: &str = "user";

/// One expression over [`CLAIMS`] or [`USER`].
#[derive(Debug)]
pub struct ClaimExpression {
    text: String,
    variable: &'static str,
    program: Program,
}

impl ClaimExpression {
    /// One over claims; of any type.
    ///
    /// # Errors
    /// Why it does not compile, in upstream's words.
    pub fn of_claims(text: &str) -> Result<ClaimExpression, BadExpression> {
        ClaimExpression::new(text, CLAIMS, Type::map_of(Type::Dyn), &[])
    }

    /// A condition over claims.
    ///
    /// # Errors
    /// What is wrong with the expression, or that it is no condition.
    pub fn claims_condition(text: &str) -> Result<ClaimExpression, BadExpression> {
        ClaimExpression::new(text, CLAIMS, Type::map_of(Type::Dyn), &[Type::Bool])
    }

    /// A condition over the user.
    ///
    /// # Errors
    /// What is wrong with the expression, or that it is no condition.
    pub fn user_condition(text: &str) -> Result<ClaimExpression, BadExpression> {
        let fields = [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map_of(Type::list(Type::String))),
        ];
        ClaimExpression::new(text, USER, Type::object("kubernetes.UserInfo", fields), &[Type::Bool])
    }

    fn new(
        text: &str,
        variable: &'static str,
        of: Type,
        wanted: &[Type],
    ) -> Result<ClaimExpression, BadExpression> {
        let environment = Environment::new().with_variable(variable, of);
        // Here upstream does not say what it evaluates to instead.
        let program =
            compile(&environment, text, wanted).map_err(|why| match why.split_once(" but got ") {
                Some((why, _)) if why.starts_with("must evaluate to") => why.into(),
                _ => why,
            })?;
        Ok(ClaimExpression { text: text.to_owned(), variable, program })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks for a claim.
    pub fn uses_claim(&self, claim: &str) -> bool {
        self.program.selects(CLAIMS, claim)
    }

    /// What it gives for a value of its variable.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn evaluate(&self, value: &Value) -> Result<Value, BadCredential> {
        let activation = Activation::new().with(self.variable, value.clone());
        let outcome = self.program.evaluate(&activation, &mut Budget::new(Budget::PER_CALL));
        outcome.map_err(|error| format!("expression '{}' resulted in error: {error}", self.text).into())
    }
}

/// A text, or texts; what is empty is not there (`convertCELValueToStringList`).
///
/// # Errors
/// It is something else.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, BadCredential> {
    let wrong = || BadCredential::from("expression must return a string or a list of strings");
    let all = match value {
        Value::Null => vec![],
        Value::String(one) => vec![one.to_string()],
        Value::List(many) => {
            let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
            many.items.iter().map(text).collect::<Result<Vec<String>, BadCredential>>()?
        }
        _ => return Err(wrong()),
    };
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}
