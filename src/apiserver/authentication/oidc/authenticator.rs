//! `Oidc`: knows the tokens of one provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::super::extra::CREDENTIAL_ID;
use super::super::remarks::Remarks;
use super::super::service_account::authenticator::has_issuer;
use super::super::{Response, TokenAuthenticator, audience_agnostic, jwt};
use super::claims::{Claims, check};
use super::distributed::ClaimResolver;
use super::expression::{ClaimExpression, texts};
use super::key_set::KeySet;
use crate::authentication::errors::BadCredential;
use apimachinery::user::UserInfo;
use cel::Value as CelValue;
use clock::Clock;

/// What a token of one issuer must say, and what is made of that (`apiserver.JWTAuthenticator`).
#[derive(Debug)]
pub struct JwtAuthenticator {
    /// `iss`
    pub issuer: String,
    /// Of these a token must name one.
    pub audiences: Vec<String>,
    /// The user's name.
    pub username: ClaimMapping,
    /// Its groups.
    pub groups: Option<ClaimMapping>,
    /// Its uid.
    pub uid: Option<ClaimMapping>,
    /// What else is said of it, by key.
    pub extra: Vec<(String, ClaimExpression)>,
    /// Claims that must have these values.
    pub required_claims: BTreeMap<String, String>,
    /// What must hold for the claims.
    pub claim_rules: Vec<ClaimRule>,
    /// What must hold for the user.
    pub user_rules: Vec<ClaimRule>,
}

/// Where a part of the user comes from.
#[derive(Debug)]
pub enum ClaimMapping {
    /// A claim, with something in front.
    Claim {
        /// Its name.
        claim: String,
        /// May be empty.
        prefix: String,
    },
    /// An expression over all claims.
    Expression(ClaimExpression),
}

/// A condition, and what is said when it does not hold.
#[derive(Debug)]
pub struct ClaimRule {
    /// The condition.
    pub expression: ClaimExpression,
    /// May be empty.
    pub message: String,
}

/// Knows the tokens of one provider.
pub struct Oidc {
    settings: JwtAuthenticator,
    issuers: [String; 1],
    audiences: Vec<String>,
    keys: KeySet,
    resolver: Option<ClaimResolver>,
    clock: Clock,
}

impl Oidc {
    /// Tokens that one of the keys signed; `audiences` are those of this server.
    pub fn new(settings: JwtAuthenticator, keys: KeySet, audiences: &[String], clock: &Clock) -> Oidc {
        let issuers = [settings.issuer.clone()];
        let resolver = match (&settings.groups, keys.provider()) {
            (Some(ClaimMapping::Claim { claim, .. }), Some(provider)) => {
                Some(ClaimResolver::new(claim, &settings.audiences, provider.clone()))
            }
            _ => None,
        };
        Oidc { settings, issuers, audiences: audiences.to_vec(), keys, resolver, clock: clock.clone() }
    }

    /// The future that the trait gives, for those who hold it by its type.
    pub(super) async fn known(
        &self,
        token: &str,
        asked: Option<&[String]>,
    ) -> Result<Option<Response>, BadCredential> {
        if !has_issuer(token, &self.issuers) {
            return Ok(None);
        }
        let Some(audiences) = audience_agnostic(&self.audiences, asked) else { return Ok(None) };
        let mut claims =
            self.verified(token).await.map_err(|error| format!("oidc: verify token: {error}"))?;
        check(&claims, &self.settings.audiences, self.clock.now().timestamp())
            .map_err(|error| format!("oidc: verify token: {error}"))?;
        if let Some(resolver) = &self.resolver {
            let expanded = resolver.expand(&mut claims).await;
            expanded.map_err(|error| format!("oidc: could not expand distributed claims: {error}"))?;
        }
        Ok(Some(Response { user: Arc::new(self.settings.user(&claims)?), audiences }))
    }

    async fn verified(&self, token: &str) -> Result<Claims, BadCredential> {
        let id = jwt::key_id(token).ok_or("malformed jwt")?;
        let keys = self.keys.find(&id).await?;
        jwt::verified(token, &keys.iter().collect::<Vec<_>>())
    }
}

impl TokenAuthenticator for Oidc {
    fn name(&self) -> &'static str {
        "OIDC"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
        _remarks: &'a Remarks,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>> {
        self.known(token, audiences).boxed()
    }
}

impl JwtAuthenticator {
    /// The user that claims name, in upstream's order of what is looked at.
    fn user(&self, claims: &Claims) -> Result<UserInfo, BadCredential> {
        let seen = CelValue::from_json(&Value::Object(claims.clone()));
        let name = self.name(claims, &seen)?;
        let groups = self.groups(claims, &seen)?;
        let uid = self.uid(claims, &seen)?;
        let mut extra = BTreeMap::new();
        let id = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty());
        extra.extend(id.map(|id| (CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")])));
        for (key, expression) in &self.extra {
            let values = texts(&expression.evaluate(&seen)?).map_err(|error| {
                let text = expression.text();
                format!("oidc: error evaluating extra claim expression: {text}: {error}")
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        self.check_required(claims)?;
        hold(&self.claim_rules, &seen)
            .map_err(|error| format!("oidc: error evaluating claim validation expression: {error}"))?;
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let known = UserInfo::authenticated("", &groups);
        let user = UserInfo { name: name.as_str().into(), uid, extra, ..known };
        hold(&self.user_rules, &user_value(&user, groups.len()))
            .map_err(|error| format!("oidc: error evaluating user info validation rule: {error}"))?;
        Ok(user)
    }

    fn name(&self, claims: &Claims, seen: &CelValue) -> Result<String, BadCredential> {
        match &self.username {
            ClaimMapping::Claim { claim, prefix } => {
                let name = text_claim(claims, claim)
                    .map_err(|error| format!("oidc: parse username claims {claim:?}: {error}"))?;
                if claim == "email" {
                    check_email(claims)?;
                }
                Ok(format!("{prefix}{name}"))
            }
            ClaimMapping::Expression(expression) => one_text(expression, seen, "username"),
        }
    }

    fn groups(&self, claims: &Claims, seen: &CelValue) -> Result<Vec<String>, BadCredential> {
        match &self.groups {
            None => Ok(vec![]),
            Some(ClaimMapping::Expression(expression)) => {
                let groups = expression.evaluate(seen).and_then(|value| texts(&value));
                groups
                    .map_err(|error| format!("oidc: error evaluating group claim expression: {error}").into())
            }
            Some(ClaimMapping::Claim { claim, prefix }) => groups_of_claim(claims, claim, prefix),
        }
    }

    fn uid(&self, claims: &Claims, seen: &CelValue) -> Result<String, BadCredential> {
        match &self.uid {
            None => Ok(String::new()),
            Some(ClaimMapping::Claim { claim, .. }) => text_claim(claims, claim)
                .map(str::to_owned)
                .map_err(|error| format!("oidc: parse uid claim {claim:?}: {error}").into()),
            Some(ClaimMapping::Expression(expression)) => one_text(expression, seen, "uid"),
        }
    }

    fn check_required(&self, claims: &Claims) -> Result<(), BadCredential> {
        for (claim, wanted) in &self.required_claims {
            let value = claims
                .get(claim)
                .ok_or_else(|| format!("oidc: required claim {claim} not present in ID token"))?;
            let value =
                value.as_str().ok_or_else(|| format!("oidc: parse claim {claim}: it is no string"))?;
            if value != wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}"
                )
                .into());
            }
        }
        Ok(())
    }
}

/// Whether all rules hold.
fn hold(rules: &[ClaimRule], value: &CelValue) -> Result<(), BadCredential> {
    for ClaimRule { expression, message } in rules {
        match expression.evaluate(value)? {
            CelValue::Bool(true) => {}
            CelValue::Bool(false) => {
                let text = expression.text();
                return Err(format!("validation expression '{text}' failed: {message}").into());
            }
            _ => return Err("validation expression must return a boolean".into()),
        }
    }
    Ok(())
}

fn one_text(expression: &ClaimExpression, claims: &CelValue, what: &str) -> Result<String, BadCredential> {
    let failed = |error: BadCredential| -> BadCredential {
        format!("oidc: error evaluating {what} claim expression: {error}").into()
    };
    match expression.evaluate(claims).map_err(failed)? {
        CelValue::String(text) => Ok(text.to_string()),
        _ => Err(failed(format!("{what} claim expression must return a string").into())),
    }
}

/// The user as its rules see it: with every field, and with the `own` groups that the token names.
fn user_value(user: &UserInfo, own: usize) -> CelValue {
    let groups: Vec<&str> = user.groups.iter().take(own).map(|group| &**group).collect();
    let (name, uid, extra) = (&*user.name, &user.uid, &user.extra);
    CelValue::from_json(&serde_json::json!({"username": name, "uid": uid, "groups": groups, "extra": extra}))
}

fn groups_of_claim(claims: &Claims, claim: &str, prefix: &str) -> Result<Vec<String>, BadCredential> {
    let Some(value) = claims.get(claim).filter(|value| !value.is_null()) else { return Ok(vec![]) };
    let names: Option<Vec<&str>> = match value {
        Value::String(one) => Some(vec![one]),
        Value::Array(many) => many.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let names = names.ok_or_else(|| {
        format!("oidc: parse groups claim {claim:?}: it is no string and no list of strings")
    })?;
    Ok(names.into_iter().map(|name| format!("{prefix}{name}")).collect())
}

fn text_claim<'a>(claims: &'a Claims, claim: &str) -> Result<&'a str, &'static str> {
    claims.get(claim).ok_or("claim not present")?.as_str().ok_or("it is no string")
}

/// An address that says of itself that nobody checked it is no name.
fn check_email(claims: &Claims) -> Result<(), BadCredential> {
    match claims.get("email_verified") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err("oidc: email not verified".into()),
        Some(_) => Err("oidc: parse 'email_verified' claim: it is no boolean".into()),
    }
}
