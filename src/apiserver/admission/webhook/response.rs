//! `AdmissionResponse`: what a webhook may answer (`plugin/webhook/request.VerifyAdmissionResponse`,
//! `plugin/webhook/errors`).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use apimachinery::status::{Status, StatusDetails};
use apis::tree::{at, flag, string_map, text, texts};

golang::text_error! {
    /// What is wrong with the answer of a webhook; in upstream's words.
    pub(super) struct BadReview;
}

/// A checked answer.
#[derive(Debug)]
pub(super) struct WebhookAnswer {
    /// Whether it goes on.
    pub is_allowed: bool,
    /// What is wrong, if not; null when nothing was said.
    pub result: Value,
    /// The patch document and its type; empty when nothing is to be changed.
    pub patch: Vec<u8>,
    /// `JSONPatch`, the only one that there is.
    pub patch_type: String,
    /// For the audit event, under the webhook's name.
    pub annotations: BTreeMap<String, String>,
    /// For the client.
    pub warnings: Vec<String>,
}

/// What the scheme that decodes answers is called in upstream's errors.
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

/// Whether an answer is one that can be decoded as the version that was asked for.
///
/// # Errors
/// What upstream says behind `failed to call webhook: `.
pub(super) fn check_type(review: &Value, version: &str) -> Result<(), BadReview> {
    let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if api_version.is_empty() && kind.is_empty() {
        return Ok(());
    }
    let named =
        api_version.strip_prefix("admission.k8s.io/").filter(|named| matches!(*named, "v1" | "v1beta1"));
    match (named, kind) {
        (Some(named), "AdmissionReview") if named == version => check_patch(at(review, "response.patch")),
        (Some(named), "AdmissionReview") => Err(format!(
            "converting ({named}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )
        .into()),
        _ => {
            Err(format!("no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}")
                .into())
        }
    }
}

fn check_patch(patch: &Value) -> Result<(), BadReview> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol};
    let text = patch.as_str().unwrap_or_default();
    match STANDARD.decode(text) {
        Ok(_) => Ok(()),
        Err(InvalidByte(at, _) | InvalidLastSymbol(at, _)) => {
            Err(format!("illegal base64 data at input byte {at}").into())
        }
        Err(_) => Err(format!("illegal base64 data at input byte {}", text.len()).into()),
    }
}

impl WebhookAnswer {
    /// Reads an AdmissionReview whose type was checked.
    ///
    /// # Errors
    /// What upstream says behind `received invalid webhook response: `.
    pub(super) fn read(
        review: &Value,
        version: &str,
        uid: &str,
        is_mutating: bool,
    ) -> Result<WebhookAnswer, BadReview> {
        let response = at(review, "response");
        if !response.is_object() {
            return Err("webhook response was absent".into());
        }
        if version == "v1" {
            check(review, uid, is_mutating)?;
        }
        let patch = match at(response, "patch") {
            Value::String(text) => STANDARD.decode(text).unwrap_or_default(),
            _ => vec![],
        };
        Ok(WebhookAnswer {
            is_allowed: flag(response, "allowed"),
            result: at(response, "status").clone(),
            patch_type: match (patch.is_empty(), text(response, "patchType")) {
                (false, "") => "JSONPatch".into(),
                (_, patch_type) => patch_type.into(),
            },
            patch,
            annotations: string_map(response, "auditAnnotations"),
            warnings: texts(response, "warnings").into_iter().map(str::to_owned).collect(),
        })
    }
}

fn check(review: &Value, uid: &str, is_mutating: bool) -> Result<(), BadReview> {
    let response = at(review, "response");
    let got = text(response, "uid");
    if got != uid {
        return Err(format!("expected response.uid={uid:?}, got {got:?}").into());
    }
    let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
        let shown = if api_version.contains('/') { api_version.into() } else { format!("/{api_version}") };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
        )
        .into());
    }
    let (has_patch, patch_type) = (!text(response, "patch").is_empty(), at(response, "patchType"));
    match (is_mutating, has_patch, patch_type.as_str()) {
        (true, true, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (true, false, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (true, true, Some("")) => Err("webhook returned invalid response.patchType of \"\"".into()),
        (false, true, _) => Err("validating webhook may not return response.patch".into()),
        (false, _, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

/// `ToStatusErr`: a refusal as the client sees it.
pub(super) fn refusal(webhook: &str, result: &Value) -> Status {
    let denied = format!("admission webhook {webhook:?} denied the request");
    let (message, reason) = (text(result, "message"), text(result, "reason"));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = at(result, "code").as_u64().and_then(|code| u16::try_from(code).ok());
    let status = Status::failure(code.filter(|code| *code >= 400).unwrap_or(400), reason, message);
    match serde_json::from_value::<StatusDetails>(at(result, "details").clone()) {
        Ok(details) => status.with_details(details),
        Err(_) => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_checked() {
        let read = |response: Value, is_mutating: bool| {
            let review =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            WebhookAnswer::read(&review, "v1", "u", is_mutating).map(|answer| answer.is_allowed)
        };
        for (response, is_mutating, wanted) in [
            (json!({"uid": "u", "allowed": true}), false, Ok(true)),
            (json!({"uid": "u"}), true, Ok(false)),
            (json!(null), true, Err("webhook response was absent")),
            (json!({"uid": "x"}), true, Err("expected response.uid=\"u\", got \"x\"")),
            (
                json!({"uid": "u", "patch": "W10="}),
                true,
                Err("webhook returned response.patch but not response.patchType"),
            ),
            (
                json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"}),
                false,
                Err("validating webhook may not return response.patch"),
            ),
        ] {
            assert_eq!(read(response, is_mutating), wanted.map_err(BadReview::from));
        }
        let other = WebhookAnswer::read(
            &json!({"apiVersion": "v1", "kind": "Pod", "response": {"uid": "u"}}),
            "v1",
            "u",
            true,
        );
        let wanted =
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Pod";
        assert_eq!(other.unwrap_err(), wanted);
    }

    #[test]
    fn types_are_checked_first() {
        let review = |api_version: &str, kind: &str, patch: &str| json!({"apiVersion": api_version, "kind": kind, "response": {"patch": patch}});
        let admission = "admission.k8s.io/v1";
        for (review, wanted) in [
            (review(admission, "AdmissionReview", "W10="), Ok(())),
            (review(admission, "AdmissionReview", "%%%"), Err("illegal base64 data at input byte 0")),
            (
                review("admission.k8s.io/v1beta1", "AdmissionReview", ""),
                Err("converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
            ),
            (
                review("v1", "Pod", ""),
                Err("no kind \"Pod\" is registered for version \"v1\" in scheme \
                     \"k8s.io/apiserver/pkg/util/webhook/client.go:71\""),
            ),
        ] {
            assert_eq!(check_type(&review, "v1"), wanted.map_err(BadReview::from));
        }
    }

    #[test]
    fn refusals_have_defaults() {
        for (result, code, message) in [
            (json!(null), 400, "admission webhook \"w\" denied the request without explanation"),
            (json!({"code": 200, "message": "no"}), 400, "admission webhook \"w\" denied the request: no"),
            (json!({"code": 418, "reason": "Tea"}), 418, "admission webhook \"w\" denied the request: Tea"),
        ] {
            let status = refusal("w", &result);
            assert_eq!((status.code, &*status.message, &*status.status), (code, message, "Failure"));
        }
    }
}
