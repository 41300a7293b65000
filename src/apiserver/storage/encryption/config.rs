//! `EncryptionConfiguration` (`apiserver.config.k8s.io/v1`), read and checked
//! (`k8s.io/apiserver/pkg/apis/apiserver/validation`).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::cipher::{Cipher, Method};
use super::rules::{EncryptionKey, EncryptionProvider, EncryptionRule};
use apimachinery::field_error::FieldErrors;
use apimachinery::yaml;
use apis::tree::{at, items, text};
use apis::validation::Field;

const METHODS: [(&str, Method); 3] =
    [("aesgcm", Method::AesGcm), ("aescbc", Method::AesCbc), ("secretbox", Method::Secretbox)];
const NAMES: [&str; 5] = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
const ALL: &str = "KMS, AESGCM, AESCBC, Secretbox, Identity";
/// Where upstream makes the scheme that reads the file.
const SCHEME: &str = "k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go:142";

/// Why a file is no `EncryptionConfiguration` to go by.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It cannot be read as one.
    #[error("error decoding encryption provider configuration file: {0}")]
    Undecodable(String),
    /// It says what cannot be.
    #[error("{0}")]
    Invalid(String),
}

/// The rules of a file.
///
/// # Errors
/// What is wrong with it, in upstream's words; never a secret.
pub(super) fn parse(yaml: &str) -> Result<Arc<[EncryptionRule]>, Mistake> {
    let tree: Value = yaml::from_str(yaml).map_err(|error| Mistake::Undecodable(error.to_string()))?;
    let (api_version, kind) = (text(&tree, "apiVersion"), text(&tree, "kind"));
    let known = ["apiserver.config.k8s.io/v1", "v1"];
    if kind != "EncryptionConfiguration" || !known.contains(&api_version) {
        let why = format!("no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}");
        return Err(Mistake::Undecodable(why));
    }
    let unknown = unknown_providers(&tree);
    if !unknown.is_empty() {
        return Err(Mistake::Undecodable(format!("strict decoding error: {}", unknown.join(", "))));
    }
    let mut errors = FieldErrors::default();
    validate(&tree, &mut errors);
    if !errors.is_empty() {
        return Err(Mistake::Invalid(errors.to_string()));
    }
    let rules: Vec<EncryptionRule> = items(&tree, "resources").iter().map(rule).collect();
    Ok(Arc::from(rules))
}

fn unknown_providers(tree: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for (at, entry) in items(tree, "resources").iter().enumerate() {
        for (nth, provider) in items(entry, "providers").iter().enumerate() {
            let names = provider.as_object().into_iter().flat_map(|provider| provider.keys());
            let strange = names.filter(|name| !NAMES.contains(&name.as_str()));
            let told = |name| format!("unknown field \"resources[{at}].providers[{nth}].{name}\"");
            unknown.extend(strange.map(told));
        }
    }
    unknown
}

fn rule(tree: &Value) -> EncryptionRule {
    let resources = items(tree, "resources").iter().filter_map(Value::as_str).map(String::from).collect();
    EncryptionRule { resources, providers: items(tree, "providers").iter().map(provider).collect() }
}

/// The provider was checked to be one that is known.
fn provider(tree: &Value) -> EncryptionProvider {
    let Some((name, method)) = METHODS.into_iter().find(|(name, _)| !tree[*name].is_null()) else {
        return EncryptionProvider::Identity;
    };
    let key = |tree: &Value| {
        let secret = STANDARD.decode(text(tree, "secret")).ok()?;
        let prefix = format!("{}{}:", method.prefix(), text(tree, "name"));
        Some(EncryptionKey { prefix, cipher: Cipher::new(method, secret) })
    };
    EncryptionProvider::Keys(items(&tree[name], "keys").iter().filter_map(key).collect())
}

fn validate(tree: &Value, errors: &mut FieldErrors) {
    let root = Field { path: "resources".into(), value: at(tree, "resources") };
    if root.is_zero() {
        return root.required("at least one resources is required", errors);
    }
    for entry in root.items() {
        let (resources, providers) = (entry.child("resources"), entry.child("providers"));
        let missing = |field: &Field| format!("at least one {} is required", field.path);
        if resources.is_zero() {
            resources.required(&missing(&resources), errors);
        }
        validate_overlap(&resources, errors);
        resources.items().iter().for_each(|name| validate_name(name, errors));
        if providers.is_zero() {
            providers.required(&missing(&providers), errors);
        }
        providers.items().iter().for_each(|provider| validate_provider(provider, errors));
    }
}

fn validate_overlap(resources: &Field, errors: &mut FieldErrors) {
    let names: Vec<(&str, &str)> = resources
        .items()
        .iter()
        .map(|item| item.text().split_once('.').unwrap_or((item.text(), "")))
        .collect();
    let pairs = || {
        let others = |at: usize| names.iter().enumerate().filter(move |(other, _)| *other != at);
        names.iter().enumerate().flat_map(move |(at, name)| others(at).map(move |(_, other)| (*name, *other)))
    };
    if pairs().any(|(one, other)| one == other) {
        resources.invalid("the same resource cannot be specified multiple times", errors);
    }
    let overlap = |(one, other): ((&str, &str), (&str, &str))| {
        one != other && (one == ("*", "*") || one.1 == other.1 && (one.0 == "*" || other.0 == "*"))
    };
    if pairs().any(overlap) {
        let words = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not \
             allowed as they will be masked";
        resources.invalid(words, errors);
    }
}

fn validate_name(name: &Field, errors: &mut FieldErrors) {
    let text = name.text();
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    let without_api = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];
    let wrong = if text.to_lowercase() != text {
        "resource name should not contain capital letters"
    } else if text == "*" {
        "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    } else if without_api.contains(&text) {
        "resources which do not have REST API/s cannot be encrypted"
    } else if group == "events.k8s.io" {
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in \
         the config file"
    } else if group == "extensions" {
        "'extensions' group has been removed and cannot be used for encryption"
    } else if group == "*" && resource != "*" {
        "encrypting the same resource across groups is not supported"
    } else {
        return;
    };
    name.invalid(wrong, errors);
}

fn validate_provider(provider: &Field, errors: &mut FieldErrors) {
    let found: Vec<&str> = NAMES.into_iter().filter(|name| provider.child(name).is_set()).collect();
    // Its keys are never shown.
    let shown = json!(found);
    let shown = Field { path: provider.path.clone(), value: &shown };
    match found.as_slice() {
        [] => {
            shown.invalid(format!("provider does not contain any of the expected providers: {ALL}"), errors)
        }
        ["kms"] => provider.child("kms").forbidden(
            "there is no KMS plugin that this server could call: use aescbc, aesgcm or secretbox",
            errors,
        ),
        [name] => {
            if let Some((_, method)) = METHODS.iter().find(|(known, _)| known == name) {
                validate_keys(&provider.child(name).child("keys"), *method, errors);
            }
        }
        _ => shown.invalid(
            "more than one provider specified in a single element, should split into different list elements",
            errors,
        ),
    }
}

fn validate_keys(keys: &Field, method: Method, errors: &mut FieldErrors) {
    if keys.is_zero() {
        return keys.required("at least one keys is required", errors);
    }
    for key in keys.items() {
        let (name, secret) = (key.child("name"), key.child("secret"));
        for field in [&name, &secret].into_iter().filter(|field| field.is_zero()) {
            let short = field.path.rsplit('.').next().unwrap_or_default();
            field.required(&format!("{short} is a mandatory field for a key"), errors);
        }
        if secret.is_zero() {
            continue;
        }
        let redacted = json!("REDACTED");
        let shown = Field { path: secret.path.clone(), value: &redacted };
        match STANDARD.decode(secret.text()) {
            Err(_) => shown.invalid("secrets must be base64 encoded", errors),
            Ok(bytes) if !method.key_sizes().contains(&bytes.len()) => {
                let sizes: Vec<String> = method.key_sizes().iter().map(ToString::to_string).collect();
                let (got, sizes) = (bytes.len(), sizes.join(" "));
                shown.invalid(
                    format!("secret is not of the expected length, got {got}, expected one of [{sizes}]"),
                    errors,
                );
            }
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_and_secrets_are_not() {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
        let with = |resources: &str, providers: &str| {
            format!("{head}resources: [{{resources: {resources}, providers: {providers}}}]")
        };
        let identity = "[{identity: {}}]";
        for (text, wanted) in [
            (head.to_owned(), "resources: Required value: at least one resources is required"),
            (
                with("['*']", identity),
                "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from \
                 core API group or *.* to encrypt all resources",
            ),
            (
                with("[secrets]", "[{kms: {name: k}}]"),
                "resources[0].providers[0].kms: Forbidden: there is no KMS plugin that this server could call: \
                 use aescbc, aesgcm or secretbox",
            ),
            (
                with("[secrets]", "[{aescbc: {keys: [{name: k, secret: c2hvcnQ=}]}}]"),
                "resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": secret is not of \
                 the expected length, got 5, expected one of [16 24 32]",
            ),
            (
                with("[secrets, secrets]", identity),
                "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be \
                 specified multiple times",
            ),
        ] {
            assert_eq!(parse(&text).err().unwrap().to_string(), wanted);
        }
        for (text, wanted) in [
            (
                "kind: Secret\napiVersion: v1".to_owned(),
                "no kind \"Secret\" is registered for version \"v1\" in scheme \
                 \"k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go:142\"",
            ),
            (
                with("[secrets]", "[{foo: {}}]"),
                "strict decoding error: unknown field \"resources[0].providers[0].foo\"",
            ),
        ] {
            assert_eq!(parse(&text).err().unwrap(), Mistake::Undecodable(wanted.into()));
        }
    }
}
