//! Acting as somebody else (`filters.WithImpersonation`): `Impersonate-User`, `-Group`, `-Uid`, `-Extra-*`,
//! each to be allowed by the authorizers as the verb `impersonate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;

use super::authorization::forbidden;
use super::{Next, Passing, refuse, user_of};
use crate::apimachinery::status::Status;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::ApiResponse;
use crate::apiserver::audit::AuditContext;
use crate::apiserver::authentication::service_account::{self, split_username};
use crate::apiserver::authorizer::Authorizer;
use crate::apiserver::request::RequestInfo;

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Replaces the user in the extensions by the one that is asked for, if the real one may do that.
pub async fn impersonate(
    authorizer: &Arc<dyn Authorizer>,
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    if !request.headers().keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return next.run(request).await;
    }
    let wanted = match wanted(request.headers()) {
        Ok(wanted) => wanted,
        Err(status) => return refuse(&request, status),
    };
    let user = user_of(&request);
    for info in needed(&wanted) {
        let decision = authorizer.authorize(&user, &info).wait().await;
        if !decision.is_allowed() {
            return refuse(&request, forbidden(&user, &info, decision.reason()));
        }
    }
    let names = request.headers().keys().filter(|name| name.as_str().starts_with(PREFIX));
    for name in names.cloned().collect::<Vec<_>>() {
        request.headers_mut().remove(name);
    }
    let wanted = Arc::new(completed(wanted));
    if let Some(audit) = request.extensions().get::<Arc<AuditContext>>() {
        audit.gather(|gathered| gathered.impersonated = Some(wanted.clone()));
    }
    request.extensions_mut().insert(wanted);
    next.run(request).await
}

/// Whom the headers name.
///
/// # Errors
/// 400 for groups, a uid or extras of nobody.
fn wanted(headers: &HeaderMap) -> Result<UserInfo, Status> {
    let all = |name: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.map(String::from).collect::<Vec<_>>()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in headers.keys().map(http::HeaderName::as_str) {
        if let Some(key) = header.strip_prefix(EXTRA) {
            let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().extend(all(header));
        }
    }
    let wanted = UserInfo {
        name: first("impersonate-user").into(),
        uid: first("impersonate-uid"),
        groups: all("impersonate-group").iter().map(|group| group.as_str().into()).collect(),
        extra,
    };
    match wanted.name.is_empty() && wanted != UserInfo::default() {
        true => Err(Status::bad_request(without_a_user(&wanted))),
        false => Ok(wanted),
    }
}

/// As Go prints the list of what was asked for.
fn without_a_user(wanted: &UserInfo) -> String {
    let mut asked: Vec<String> =
        wanted.groups.iter().map(|group| format!("{{Group  {group}    }}")).collect();
    for (key, values) in &wanted.extra {
        let extra = |value: &String| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}");
        asked.extend(values.iter().map(extra));
    }
    if !wanted.uid.is_empty() {
        asked.push(format!("{{UID  {}  {AUTHENTICATION}/v1  }}", wanted.uid));
    }
    format!("requested [{}] without impersonating a user", asked.join(" "))
}

/// What the real user must be allowed to.
fn needed(wanted: &UserInfo) -> Vec<RequestInfo> {
    let mut needed = Vec::new();
    match split_username(&wanted.name) {
        Some((namespace, name)) => needed.push(attribute("", namespace, "serviceaccounts", "", name)),
        None => needed.push(attribute("", "", "users", "", &wanted.name)),
    }
    needed.extend(wanted.groups.iter().map(|group| attribute("", "", "groups", "", group)));
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

/// With the groups that the server knows without being told.
fn completed(mut user: UserInfo) -> UserInfo {
    if let Some((namespace, _)) = split_username(&user.name).filter(|_| user.groups.is_empty()) {
        user.groups.extend(service_account::groups(namespace).map(Arc::from));
    }
    let is = |group: &str| user.is_member_of(group);
    let missing = match &*user.name {
        "system:anonymous" => (!is(UNAUTHENTICATED)).then_some(UNAUTHENTICATED),
        _ => (!is(AUTHENTICATED) && !is(UNAUTHENTICATED)).then_some(AUTHENTICATED),
    };
    user.groups.extend(missing.map(Arc::from));
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_completed_as_upstream_completes_them() {
        let cases: [(&str, &[&str], &[&str]); 6] = [
            ("jane", &[], &["system:authenticated"]),
            ("jane", &["dev"], &["dev", "system:authenticated"]),
            ("jane", &["system:unauthenticated"], &["system:unauthenticated"]),
            ("system:anonymous", &[], &["system:unauthenticated"]),
            (
                "system:serviceaccount:ns:a",
                &[],
                &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            ),
            ("system:serviceaccount:ns:a", &["dev"], &["dev", "system:authenticated"]),
        ];
        for (name, given, expected) in cases {
            let groups = given.iter().copied().map(Arc::from).collect();
            let user = completed(UserInfo { name: name.into(), groups, ..UserInfo::default() });
            let found: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
            assert_eq!(found, expected, "{name} {given:?}");
        }
    }
}
