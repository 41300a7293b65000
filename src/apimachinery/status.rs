//! `Status`: what every error becomes (`metav1.Status`, made as `k8s.io/apimachinery/pkg/api/errors` makes
//! it).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::field_error::FieldErrors;
use super::gvk::{GroupResource, GroupVersionKind};

pub use super::status_cause::StatusCause;

/// `metav1.Status`: the answer to a request that failed, and to a delete that removed an object.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Map<String, Value>,
    /// `Success` or `Failure`.
    pub status: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For machines: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, ...
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<StatusDetails>>,
    /// The HTTP status; 0, which is not sent, stands for 200 (`omitempty`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub code: u16,
}

/// `metav1.StatusDetails`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The resource's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (or, for invalid objects, the kind).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per field at fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// When to try again, in seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(code: &u16) -> bool {
    *code == 0
}

/// The object is larger than what etcd takes in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("etcdserver: request is too large")]
pub struct TooLargeToStore;

/// What upstream's handlers do not classify: 500 without a reason.
impl From<TooLargeToStore> for Status {
    fn from(error: TooLargeToStore) -> Status {
        Status::failure(500, "", error.to_string())
    }
}

/// The reason of a failure that came from no server.
const UNREACHABLE: &str = "Unreachable";

impl Status {
    /// Any failure.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Status {
        Status {
            kind: "Status".into(),
            api_version: "v1".into(),
            metadata: Map::new(),
            status: "Failure".into(),
            message: message.into(),
            reason: reason.into(),
            details: None,
            code,
        }
    }

    /// A success that has nothing to show.
    pub fn success(code: u16) -> Status {
        Status { status: "Success".into(), ..Status::failure(code, "", "") }
    }

    /// The answer to a delete that removed the object.
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Status {
        let details = StatusDetails { uid: uid.into(), ..details(resource, name) };
        Status::success(0).with_details(details)
    }

    /// 404: no such object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Status {
        let message = format!("{resource} {name:?} not found");
        Status::failure(404, "NotFound", message).with_details(details(resource, name))
    }

    /// 404: no such path; kubectl and client-go know the text.
    pub fn path_not_found() -> Status {
        Status::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(StatusDetails::default())
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Status {
        let message = format!("{resource} {name:?} already exists");
        Status::failure(409, "AlreadyExists", message).with_details(details(resource, name))
    }

    /// 409: somebody else was first.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Status::failure(409, "Conflict", message).with_details(details(resource, name))
    }

    /// 409: the object was changed since the caller read it.
    pub fn modified(resource: &GroupResource, name: &str) -> Status {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(resource, name, why)
    }

    /// A bad request, 400.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::failure(400, "BadRequest", message)
    }

    /// Unauthorized, 401.
    pub fn unauthorized() -> Status {
        Status::failure(401, "Unauthorized", "Unauthorized")
    }

    /// 403: the authorizer or an admission plugin refused. `name` may be empty.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Status {
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Status::failure(403, "Forbidden", message).with_details(details(resource, name))
    }

    /// A verb that the resource does not have, 405.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Status {
        let message = format!("{action} is not supported on resources of kind {:?}", resource.to_string());
        Status::failure(405, "MethodNotAllowed", message).with_details(details(resource, ""))
    }

    /// 410: the revision was compacted away.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::failure(410, "Expired", message)
    }

    /// 422: the object's fields, one cause each.
    pub fn invalid(kind: &GroupVersionKind, name: &str, errors: &FieldErrors) -> Status {
        let group = &kind.group_version.group;
        let shown = GroupResource { group: group.clone(), resource: kind.kind.clone() };
        let message = format!("{shown} {name:?} is invalid: {errors}");
        let details = StatusDetails { causes: errors.causes(), ..details(&shown, name) };
        Status::failure(422, "Invalid", message).with_details(details)
    }

    /// 429: come again. `seconds` goes into `Retry-After`.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Status {
        Status::failure(429, "TooManyRequests", message)
            .with_details(StatusDetails { retry_after_seconds: seconds, ..StatusDetails::default() })
    }

    /// 500: our fault.
    pub fn internal(error: impl std::fmt::Display) -> Status {
        let message = format!("Internal error occurred: {error}");
        let cause = StatusCause { reason: String::new(), message: error.to_string(), field: String::new() };
        Status::failure(500, "InternalError", message)
            .with_details(StatusDetails { causes: vec![cause], ..StatusDetails::default() })
    }

    /// 504: it took longer than the caller or the server allows.
    pub fn timeout(message: impl Into<String>) -> Status {
        Status::failure(504, "Timeout", format!("Timeout: {}", message.into()))
    }

    /// 503 of ours: the server could not be asked. No server says this.
    pub fn unreachable(why: impl Into<String>) -> Status {
        Status::failure(503, UNREACHABLE, why)
    }

    /// This status with its details.
    pub fn with_details(mut self, details: StatusDetails) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// This status with a token to go on from (a list whose revision was compacted away).
    pub fn with_continue(mut self, token: &str) -> Status {
        self.metadata.insert("continue".into(), token.into());
        self
    }

    /// The token that [`Status::with_continue`] put in; empty when there is none.
    pub fn continue_token(&self) -> &str {
        self.metadata.get("continue").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether its reason is `reason`.
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// Whether it says that something is not found, 404.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound")
    }

    /// 409 for a name that is taken.
    pub fn is_already_exists(&self) -> bool {
        self.is("AlreadyExists")
    }

    /// 409 for an object that changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict")
    }

    /// 410: list anew.
    pub fn is_expired(&self) -> bool {
        self.is("Expired") || self.is("Gone")
    }

    /// Nobody was asked ([`Status::unreachable`]).
    pub fn is_unreachable(&self) -> bool {
        self.is(UNREACHABLE)
    }

    /// As a tree, as it is sent.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_else(|_| json!({"kind": "Status", "apiVersion": "v1"}))
    }
}

fn details(resource: &GroupResource, name: &str) -> StatusDetails {
    let (group, kind) = (resource.group.to_string(), resource.resource.to_string());
    StatusDetails { name: name.into(), group, kind, ..StatusDetails::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_upstreams() {
        let pods = GroupResource::new("", "pods");
        let deployments = GroupResource::new("apps", "deployments");
        assert_eq!(Status::not_found(&pods, "a").message, r#"pods "a" not found"#);
        let exists = Status::already_exists(&deployments, "web");
        assert_eq!(exists.message, r#"deployments.apps "web" already exists"#);
        assert_eq!(exists.details.unwrap().group, "apps");
        assert_eq!(Status::forbidden(&pods, "", "no").message, "pods is forbidden: no");
    }
}
