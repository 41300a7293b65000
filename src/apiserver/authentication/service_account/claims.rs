//! What a service account's token says (`pkg/serviceaccount/claims.go`).

use serde::{Deserialize, Deserializer, Serialize};

/// What every token says (RFC 7519).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PublicClaims {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub aud: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub iat: Option<i64>,
    pub iss: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jti: String,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub nbf: Option<i64>,
    pub sub: String,
}

/// What a bound token says of its account beside that.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BoundClaims {
    #[serde(flatten)]
    pub public: PublicClaims,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Kubernetes,
}

/// The account, and the object that the token lives and dies with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kubernetes {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ClaimedObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<ClaimedObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<ClaimedObject>,
    pub serviceaccount: ClaimedObject,
    /// From when on its use is worth a word: a client that does not reload it would have failed by now.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub warnafter: Option<i64>,
}

/// An object, as a token names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimedObject {
    /// The name; the namespace is the token's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid: another object of the same name is another object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What a token that lives in a Secret says (`pkg/serviceaccount/legacy.go`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LegacyClaims {
    #[serde(flatten)]
    pub public: PublicClaims,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret_name: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub account_name: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub account_uid: String,
}

/// An audience may stand alone or in a list.
pub(crate) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(audience) => vec![audience],
        Audience::Many(audiences) => audiences,
    })
}

/// A time in seconds since 1970, fractions cut off.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    #[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest time")]
    let whole = |number: serde_json::Number| number.as_i64().or_else(|| Some(number.as_f64()? as i64));
    Ok(number.and_then(whole))
}
