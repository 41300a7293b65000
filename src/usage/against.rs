//! `Against`: what a number is measured against; and why a text is none.

use super::load::AddressLoad;

/// What a share is a share of, and what an expression may ask for.
#[derive(Clone, Copy, Default)]
pub struct Against<'a> {
    /// What `100%` is.
    pub whole: f64,
    /// The variables of an expression, as JSON.
    pub variables: Option<&'a serde_json::Value>,
    /// When what is measured began, in seconds since 1970.
    pub began: f64,
    /// The requests that it gets, where anybody knows.
    pub load: Option<AddressLoad<'a>>,
}

golang::text_error! {
    /// Why a text is no curve, or an expression has no value.
    pub struct CurveError;
}
