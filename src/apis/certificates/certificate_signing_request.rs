//! CertificateSigningRequest: who wants which certificate, and what became of it.

use std::cmp::Ordering;
use std::sync::LazyLock;

use super::request::{CertificateRequest, check_certificates};
use super::signer_name;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{name, or};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::object::Object;
use apimachinery::repeats::repeats;
use apimachinery::time::{Time, human_duration};
use apimachinery::user::UserInfo;
use serde_json::{Map, Value, json};

/// `certificatesigningrequests`
pub static CERTIFICATE_SIGNING_REQUESTS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "io.k8s.api.certificates.v1",
    )
    .cluster_scoped()
    .short(&["csr"])
    .with(&[Subresource::Approval, Subresource::Status])
    .selectable_by(&["spec.signerName"])
    .resets(&["spec", "status"])
    .status_resets(&["spec", "status.conditions"])
    .printed(columns(), cells)
    .governed_by(Rules {
        claim,
        prepare_for_update: |new, old| set(new, "spec", at(old, "spec").clone()),
        validate_name: |_| vec![],
        validate_create: |request, errors| validate(&Field::of(request, "spec"), errors),
        validate_status_update: |new, old, errors| {
            validate_conditions(new, old, errors);
            validate_approval_unchanged(new, old, errors);
        },
        validate_part_update: |_, new, old, errors| validate_conditions(new, old, errors),
        allow_unconditional_update: false,
        ..RULES
    })
    .into()
});

const SPEC: &str = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec";
const STATUS: &str = "io.k8s.api.certificates.v1.CertificateSigningRequestStatus";
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::age(),
        Column::of("SignerName", "string", SPEC, "signerName"),
        Column::of("Requestor", "string", SPEC, "request"),
        Column::of("RequestedDuration", "string", SPEC, "expirationSeconds"),
        Column::of("Condition", "string", STATUS, "conditions"),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let duration = at(&tree, "spec.expirationSeconds").as_i64();
    vec![
        name(object),
        age(object, now),
        json!(or(text(&tree, "spec.signerName"), "<none>")),
        json!(text(&tree, "spec.username")),
        duration.map_or("<none>".to_owned(), human_duration).into(),
        state(&tree).into(),
    ]
}

/// `extractCSRStatus`: `Approved,Issued`
fn state(tree: &Value) -> String {
    let has =
        |wanted| items(tree, "status.conditions").iter().any(|condition| text(condition, "type") == wanted);
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(tree, "status.certificate").is_empty() {
        state.push_str(",Issued");
    }
    state
}

/// A request is its creator's, whatever it says.
fn claim(request: &mut Value, user: &UserInfo) {
    set(request, "spec.username", user.name.to_string());
    set(request, "spec.uid", user.uid.clone());
    set(request, "spec.groups", json!(user.groups));
    let extra: Map<String, Value> =
        user.extra.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
    set(request, "spec.extra", extra);
    for field in ["uid", "groups", "extra"] {
        if is_zero(at(request, &format!("spec.{field}"))) {
            remove(request, &format!("spec.{field}"));
        }
    }
}

fn validate(spec: &Field, errors: &mut FieldErrors) {
    let request = spec.child("request");
    if let Err(why) = CertificateRequest::parse(request.text()) {
        request.invalid(why, errors);
    }
    let usages = spec.each("usages");
    if usages.is_empty() {
        spec.child("usages").required("", errors);
    }
    let is_again = repeats(usages.iter().map(|one| one.text()));
    for (at, usage) in usages.iter().enumerate() {
        if !USAGES.contains(&usage.text()) {
            usage.not_supported(USAGES, errors);
        }
        if is_again[at] {
            usage.duplicate(errors);
        }
    }
    let signer = spec.child("signerName");
    if signer.text() == "kubernetes.io/legacy-unknown" {
        signer.invalid("the legacy signerName is not allowed via this API version", errors);
    } else {
        signer_name(&signer, errors);
    }
    let expiration = spec.child("expirationSeconds");
    if expiration.is_set() && expiration.number() < 600 {
        expiration.invalid("may not specify a duration less than 600 seconds (10 minutes)", errors);
    }
}

/// Who issues does not decide: approvals have a path of their own.
fn validate_approval_unchanged(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for decided in ["Approved", "Denied"] {
        let (was, is) = (conditions_of(old, decided), conditions_of(new, decided));
        let verb = match is.len().cmp(&was.len()) {
            Ordering::Greater => "add",
            Ordering::Equal if is != was => "modify",
            _ => continue,
        };
        errors.forbidden(
            "status.conditions",
            format!("updates may not {verb} a condition of type {decided:?}"),
        );
    }
}

fn conditions_of(request: &Value, condition_type: &str) -> Vec<Value> {
    let all = items(request, "status.conditions").iter();
    all.filter(|condition| text(condition, "type") == condition_type).cloned().collect()
}

fn validate_conditions(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let conditions = Field::of(new, "status.conditions");
    let given = conditions.items();
    let has = |wanted: &str| given.iter().any(|condition| condition.child("type").text() == wanted);
    if has("Approved") && has("Denied") {
        conditions.invalid("Approved and Denied conditions are mutually exclusive", errors);
    }
    for (at, condition) in given.iter().enumerate() {
        let (kind, status) = (condition.child("type"), condition.child("status"));
        if kind.is_zero() {
            kind.required("", errors);
        }
        if matches!(kind.text(), "Approved" | "Denied" | "Failed") && status.text() != "True" {
            if status.is_zero() {
                status.required("", errors)
            } else {
                status.not_supported(&["True"], errors)
            }
        } else if !matches!(status.text(), "True" | "False" | "Unknown") {
            status.not_supported(&["False", "True", "Unknown"], errors);
        }
        if given[..at].iter().any(|earlier| earlier.child("type").text() == kind.text()) {
            kind.duplicate(errors);
        }
        if !kind.is_zero() && !qualified_name(kind.text()).is_empty() {
            kind.invalid_each(qualified_name(kind.text()), errors);
        }
    }
    settled(new, old, errors);
}

/// What was decided stays decided, and an issued certificate stays what it is.
fn settled(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for decided in ["Approved", "Denied", "Failed"] {
        let (was, is) = (conditions_of(old, decided), conditions_of(new, decided));
        if !was.is_empty() && is.is_empty() {
            let path = "status.conditions";
            errors.forbidden(path, format!("updates may not remove a condition of type {decided:?}"));
        }
    }
    let (certificate, before) = (Field::of(new, "status.certificate"), at(old, "status.certificate"));
    if !is_zero(before) && !equal(certificate.value, before) {
        certificate.forbidden("updates may not set certificate content to a different value", errors);
    }
    if let Err(why) = check_certificates(certificate.text())
        && !equal(certificate.value, before)
    {
        errors.invalid("status.certificate", &json!("<certificate data>"), why);
    }
}
