//! Acting as somebody else (`filters.WithImpersonation`): `Impersonate-User`, `-Group`, `-Uid`, `-Extra-*`,
//! each to be allowed by the authorizers as the verb `impersonate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::middleware::Next;
use http::HeaderMap;

use super::authorization::forbidden;
use super::{refuse, user_of};
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::{ApiRequest, ApiResponse, text_response};
use crate::apiserver::authorization::{Authorizers, Decision};
use crate::apiserver::request::RequestInfo;

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Replaces the user in the extensions by the one that is asked for, if the real one may do that.
pub async fn impersonate(
    State(authorizers): State<Arc<Authorizers>>,
    mut request: ApiRequest,
    next: Next,
) -> ApiResponse {
    if !request.headers().keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return next.run(request).await;
    }
    let Some(wanted) = wanted(request.headers()) else {
        let text = format!(
            "Internal Server Error: {:?}: requested impersonation without impersonating a user",
            request.uri().path()
        );
        return text_response(http::StatusCode::INTERNAL_SERVER_ERROR, text);
    };
    let user = user_of(&request);
    for info in needed(&wanted) {
        if let Decision::NoOpinion(reason) = authorizers.authorize(&user, &info) {
            return refuse(&request, forbidden(&user, &info, &reason));
        }
    }
    let names = request.headers().keys().filter(|name| name.as_str().starts_with(PREFIX));
    for name in names.cloned().collect::<Vec<_>>() {
        request.headers_mut().remove(name);
    }
    request.extensions_mut().insert(Arc::new(completed(wanted)));
    next.run(request).await
}

/// Whom the headers name; nobody without a user.
fn wanted(headers: &HeaderMap) -> Option<UserInfo> {
    let all = |name: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.map(String::from).collect::<Vec<_>>()
    };
    let name = all("impersonate-user").into_iter().find(|name| !name.is_empty())?;
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in headers.keys().map(http::HeaderName::as_str) {
        if let Some(key) = header.strip_prefix(EXTRA) {
            let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.insert(key, all(header));
        }
    }
    Some(UserInfo {
        name: name.as_str().into(),
        uid: all("impersonate-uid").pop().unwrap_or_default(),
        groups: all("impersonate-group").iter().map(|group| group.as_str().into()).collect(),
        extra,
    })
}

/// What the real user must be allowed to.
fn needed(wanted: &UserInfo) -> Vec<RequestInfo> {
    let mut needed = Vec::new();
    match wanted.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')) {
        Some((namespace, name)) => needed.push(attribute("", namespace, "serviceaccounts", "", name)),
        None => needed.push(attribute("", "", "users", "", &wanted.name)),
    }
    needed.extend(wanted.groups.iter().map(|group| attribute("", "", "groups", "", group)));
    const AUTHENTICATION: &str = "authentication.k8s.io";
    for (key, values) in &wanted.extra {
        let extras = values.iter().map(|value| attribute(AUTHENTICATION, "", "userextras", key, value));
        needed.extend(extras);
    }
    if !wanted.uid.is_empty() {
        needed.push(attribute(AUTHENTICATION, "", "uids", "", &wanted.uid));
    }
    needed
}

fn attribute(group: &str, namespace: &str, resource: &str, subresource: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        verb: "impersonate".into(),
        group: group.into(),
        version: "v1".into(),
        namespace: namespace.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        name: name.into(),
        ..RequestInfo::default()
    }
}

/// The groups that the server knows without being told.
fn completed(mut user: UserInfo) -> UserInfo {
    if user.groups.is_empty() {
        let account = user.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
        if let Some((namespace, _)) = account {
            user.groups.push("system:serviceaccounts".into());
            user.groups.push(format!("system:serviceaccounts:{namespace}").into());
        }
    }
    let anonymous = &*user.name == "system:anonymous";
    let group = if anonymous { "system:unauthenticated" } else { "system:authenticated" };
    if !user.is_member_of(group) {
        user.groups.push(group.into());
    }
    user
}
