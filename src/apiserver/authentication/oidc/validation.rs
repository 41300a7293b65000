//! What an AuthenticationConfiguration may say (`apis/apiserver/validation`).

use std::collections::BTreeSet;

use apis::admissionregistration::expressions::BadExpression;
use serde_json::{Value, json};

use super::expression::ClaimExpression;
use super::types::{
    AnonymousAuthConfig, AuthenticationConfigurationFile, ClaimMappings, ClaimValidationRule, ExtraMapping,
    Issuer, Jwt, PrefixedClaimOrExpression, UserValidationRule,
};
use apimachinery::field_error::FieldErrors;

const MAX_ISSUERS: usize = 64;

/// All that is wrong with a file.
pub(super) fn validate(file: &AuthenticationConfigurationFile, disallowed: &[String]) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if file.jwt.len() > MAX_ISSUERS {
        errors.too_many("jwt", file.jwt.len(), MAX_ISSUERS);
        return errors;
    }
    let mut issuers = BTreeSet::new();
    let mut discoveries = BTreeSet::new();
    for (at, jwt) in file.jwt.iter().enumerate() {
        let path = format!("jwt[{at}]");
        validate_jwt(&path, jwt, disallowed, &mut errors);
        if !issuers.insert(&jwt.issuer.url) {
            errors.duplicate(format!("{path}.issuer.url"), &json!(jwt.issuer.url));
        }
        let discovery = &jwt.issuer.discovery_url;
        if !discovery.is_empty() && !discoveries.insert(discovery) {
            errors.duplicate(format!("{path}.issuer.discoveryURL"), &json!(discovery));
        }
    }
    if let Some(AnonymousAuthConfig { enabled: false, conditions }) = &file.anonymous
        && !conditions.is_empty()
    {
        let why = "enabled should be set to true when conditions are defined";
        errors.invalid("anonymous.conditions", &json!(conditions.len()), why);
    }
    errors
}

fn validate_jwt(path: &str, jwt: &Jwt, disallowed: &[String], errors: &mut FieldErrors) {
    validate_issuer(&format!("{path}.issuer"), &jwt.issuer, disallowed, errors);
    let mut verified = validate_claim_rules(path, &jwt.claim_validation_rules, errors);
    let mappings = format!("{path}.claimMappings");
    let ClaimMappings { username, groups, uid, extra } = &jwt.claim_mappings;
    let name = validate_mapping(&format!("{mappings}.username"), username, true, errors);
    validate_mapping(&format!("{mappings}.groups"), groups, false, errors);
    match (uid.claim.is_empty(), uid.expression.is_empty()) {
        (false, false) => {
            let why = "claim and expression can't both be set";
            errors.invalid(format!("{mappings}.uid"), &json!(""), why);
        }
        (_, false) => {
            let path = format!("{mappings}.uid.expression");
            compiled(&path, &uid.expression, ClaimExpression::of_claims, errors);
        }
        _ => {}
    }
    verified |= validate_extra(&mappings, extra, errors);
    if let Some(name) = name {
        verified |= name.uses_claim("email_verified");
        if name.uses_claim("email") && !verified {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                       claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
                       claims.email is used in claimMappings.username.expression";
            errors.invalid(format!("{mappings}.username.expression"), &json!(name.text()), why);
        }
    }
    validate_user_rules(path, &jwt.user_validation_rules, errors);
}

fn validate_issuer(path: &str, issuer: &Issuer, disallowed: &[String], errors: &mut FieldErrors) {
    let Issuer { url, discovery_url, .. } = issuer;
    match url.as_str() {
        "" => errors.required(format!("{path}.url"), ""),
        url => validate_url(&format!("{path}.url"), url, disallowed, errors),
    }
    if !discovery_url.is_empty() {
        let path = format!("{path}.discoveryURL");
        if url.trim_end_matches('/') == discovery_url.trim_end_matches('/') {
            errors.invalid(&path, &json!(discovery_url), "discoveryURL must be different from URL");
        }
        validate_url(&path, discovery_url, &[], errors);
    }
    validate_audiences(path, issuer, errors);
    let authority = &issuer.certificate_authority;
    if !authority.is_empty() && !authority.contains("-----BEGIN CERTIFICATE-----") {
        let why = "data does not contain any valid RSA or ECDSA certificates";
        errors.invalid(format!("{path}.certificateAuthority"), &json!("<omitted>"), why);
    }
    let egress = &issuer.egress_selector_type;
    if !matches!(egress.as_str(), "" | "controlplane" | "cluster") {
        let why = "egress selector must be either controlplane or cluster";
        errors.invalid(format!("{path}.egressSelectorType"), &json!(egress), why);
    }
}

fn validate_url(path: &str, url: &str, disallowed: &[String], errors: &mut FieldErrors) {
    let mut wrong = |why: &str| errors.invalid(path, &json!(url), why);
    if disallowed.iter().any(|own| own == url) {
        wrong(&format!("URL must not overlap with disallowed issuers: [{}]", disallowed.join(" ")));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        wrong("URL scheme must be https");
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        wrong("URL must not contain a username or password");
    }
    let (before, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    if before.split_once('?').is_some_and(|(_, query)| !query.is_empty()) {
        wrong("URL must not contain a query");
    }
    if !fragment.is_empty() {
        wrong("URL must not contain a fragment");
    }
}

fn validate_audiences(path: &str, issuer: &Issuer, errors: &mut FieldErrors) {
    let Issuer { audiences, audience_match_policy: policy, .. } = issuer;
    let own = format!("{path}.audiences");
    if audiences.is_empty() {
        errors.required(&own, &format!("at least one {own} is required"));
        return;
    }
    for (at, audience) in audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.required(format!("{own}[{at}]"), "");
        }
        if audiences[..at].contains(audience) {
            errors.duplicate(format!("{own}[{at}]"), &json!(audience));
        }
    }
    let why = match (audiences.len(), policy.as_str()) {
        (_, "MatchAny") | (1, "") => return,
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.invalid(format!("{path}.audienceMatchPolicy"), &json!(policy), why);
}

/// Whether one of them asks whether an address was verified.
fn validate_claim_rules(path: &str, rules: &[ClaimValidationRule], errors: &mut FieldErrors) -> bool {
    let mut claims = BTreeSet::new();
    let mut expressions = BTreeSet::new();
    let mut verified = false;
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{path}.claimValidationRules[{at}]");
        match (rule.claim.is_empty(), rule.expression.is_empty()) {
            (false, false) => {
                errors.invalid(path, &json!(rule.claim), "claim and expression can't both be set");
            }
            (true, true) => errors.required(path, "claim or expression is required"),
            (false, true) => {
                if !rule.message.is_empty() {
                    let why = "may not be specified when claim is set";
                    errors.invalid(format!("{path}.message"), &json!(rule.message), why);
                }
                if !claims.insert(&rule.claim) {
                    errors.duplicate(format!("{path}.claim"), &json!(rule.claim));
                }
            }
            (true, false) => {
                if !rule.required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    errors.invalid(format!("{path}.requiredValue"), &json!(rule.required_value), why);
                }
                let path = format!("{path}.expression");
                if !expressions.insert(&rule.expression) {
                    errors.duplicate(path, &json!(rule.expression));
                    continue;
                }
                let rule = compiled(&path, &rule.expression, ClaimExpression::claims_condition, errors);
                verified |= rule.is_some_and(|rule| rule.uses_claim("email_verified"));
            }
        }
    }
    verified
}

fn validate_mapping(
    path: &str,
    mapping: &PrefixedClaimOrExpression,
    is_required: bool,
    errors: &mut FieldErrors,
) -> Option<ClaimExpression> {
    match (mapping.claim.is_empty(), mapping.expression.is_empty()) {
        (false, false) => errors.invalid(path, &json!(""), "claim and expression can't both be set"),
        (true, true) if is_required => errors.required(path, "claim or expression is required"),
        (true, true) => {}
        (true, false) => {
            if let Some(prefix) = &mapping.prefix {
                let why = "may not be specified when expression is set";
                errors.invalid(format!("{path}.prefix"), &json!(prefix), why);
            }
            let path = format!("{path}.expression");
            return compiled(&path, &mapping.expression, ClaimExpression::of_claims, errors);
        }
        (false, true) if mapping.prefix.is_none() => {
            let why = "prefix is required when claim is set. It can be set to an empty string to disable \
                       prefixing";
            errors.required(format!("{path}.prefix"), why);
        }
        (false, true) => {}
    }
    None
}

/// Whether one of them asks whether an address was verified.
fn validate_extra(path: &str, extra: &[ExtraMapping], errors: &mut FieldErrors) -> bool {
    let mut verified = false;
    for (at, mapping) in extra.iter().enumerate() {
        let path = format!("{path}.extra[{at}]");
        let key = &mapping.key;
        validate_key(&format!("{path}.key"), key, errors);
        if extra[..at].iter().any(|other| other.key == *key) {
            errors.duplicate(format!("{path}.key"), &json!(key));
            continue;
        }
        let path = format!("{path}.valueExpression");
        if mapping.value_expression.is_empty() {
            errors.required(path, "");
            continue;
        }
        let value = compiled(&path, &mapping.value_expression, ClaimExpression::of_claims, errors);
        verified |= value.is_some_and(|value| value.uses_claim("email_verified"));
    }
    verified
}

fn validate_key(path: &str, key: &str, errors: &mut FieldErrors) {
    let (domain, name) = key.split_once('/').unwrap_or(("", key));
    if key.is_empty() {
        errors.required(path, "");
    } else if domain.is_empty() || name.is_empty() {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.invalid(path, &json!(key), why);
    }
    if key.chars().any(char::is_uppercase) {
        errors.invalid(path, &json!(key), "must be lowercase");
    }
    let is_reserved =
        |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    if is_reserved("kubernetes.io") || is_reserved("k8s.io") {
        let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        errors.invalid(path, &json!(key), why);
    }
}

fn validate_user_rules(path: &str, rules: &[UserValidationRule], errors: &mut FieldErrors) {
    for (at, UserValidationRule { expression, .. }) in rules.iter().enumerate() {
        let path = format!("{path}.userValidationRules[{at}].expression");
        if expression.is_empty() {
            errors.required(path, "");
        } else if rules[..at].iter().any(|other| other.expression == *expression) {
            errors.duplicate(path, &json!(expression));
        } else {
            compiled(&path, expression, ClaimExpression::user_condition, errors);
        }
    }
}

fn compiled(
    path: &str,
    text: &str,
    compile: fn(&str) -> Result<ClaimExpression, BadExpression>,
    errors: &mut FieldErrors,
) -> Option<ClaimExpression> {
    let why = match compile(text) {
        Ok(expression) => return Some(expression),
        Err(why) => why,
    };
    errors.invalid(path, &Value::from(text), why);
    None
}

#[cfg(test)]
mod tests {
    use super::super::configuration::Configuration;

    const FILE: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /healthz}]}
jwt:
- issuer: {url: 'https://a.example', audiences: [kube]}
  claimValidationRules:
  - {expression: 'claims.hd == \"example\"', message: of the example only}
  claimMappings:
    username: {expression: 'claims.sub'}
    groups: {claim: groups, prefix: 'a:'}
    extra: [{key: example.com/team, valueExpression: claims.team}]
  userValidationRules:
  - {expression: \"!user.username.startsWith('system:')\"}
";

    #[test]
    fn mistakes_are_told_in_upstreams_words() {
        let own = ["https://own.example".to_owned()];
        let read = |from: &str, to: &str| Configuration::parse(&FILE.replace(from, to), &own);
        assert!(read("", "").is_ok_and(|read| read.providers.len() == 1));
        for (from, to, wanted) in [
            (
                "https://a.example",
                "https://own.example",
                "jwt[0].issuer.url: Invalid value: \"https://own.example\": URL must not overlap with \
                 disallowed issuers: [https://own.example]",
            ),
            (
                "https://a.example",
                "http://a.example/?x",
                "[jwt[0].issuer.url: Invalid value: \"http://a.example/?x\": URL scheme must be https, \
                 jwt[0].issuer.url: Invalid value: \"http://a.example/?x\": URL must not contain a query]",
            ),
            (
                "audiences: [kube]",
                "audiences: [kube, other]",
                "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny \
                 for multiple audiences",
            ),
            (
                "{claim: groups, prefix: 'a:'}",
                "{claim: groups}",
                "jwt[0].claimMappings.groups.prefix: Required value: prefix is required when claim is set. It \
                 can be set to an empty string to disable prefixing",
            ),
            (
                "expression: 'claims.sub'",
                "expression: 'claims.email'",
                "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": \
                 claims.email_verified must be used in claimMappings.username.expression or \
                 claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
                 claims.email is used in claimMappings.username.expression",
            ),
            (
                "example.com/team",
                "team.kubernetes.io/Team",
                "[jwt[0].claimMappings.extra[0].key: Invalid value: \"team.kubernetes.io/Team\": must be \
                 lowercase, jwt[0].claimMappings.extra[0].key: Invalid value: \"team.kubernetes.io/Team\": \
                 k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use]",
            ),
            (
                "!user.username.startsWith('system:')",
                "user.username",
                "jwt[0].userValidationRules[0].expression: Invalid value: \"user.username\": must evaluate to \
                 bool",
            ),
            (
                "kind: Auth",
                "kind: X",
                "no kind \"XenticationConfiguration\" is registered for version \
                 \"apiserver.config.k8s.io/v1\"",
            ),
        ] {
            assert_eq!(read(from, to).err().as_deref(), Some(wanted));
        }
        let verified = "'claims.email_verified == true && claims.email != \"\"'";
        let rule = FILE.replace("expression: 'claims.sub'", "expression: claims.email");
        let rule = rule.replace("'claims.hd == \"example\"'", verified);
        assert!(Configuration::parse(&rule, &own).is_ok());
    }
}
