//! Acting as somebody else (`filters/impersonation`): `Impersonate-User`, `-Group`, `-Uid`, `-Extra-*`, each
//! to be allowed by the authorizers.
//!
//! In come a request and who sends it; on goes the same request of somebody else, or a refusal. What must be
//! allowed is in [`modes`]: the constrained ways of 1.36 first, then the verb `impersonate` as ever.

mod metrics;
mod modes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use http::header::X_CONTENT_TYPE_OPTIONS;

use super::passed::Impersonator;
use super::{NOSNIFF, Next, Passing, refuse};
use crate::authorizer::Refused;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiResponse;
use golang::go_text::quote;

pub use modes::Impersonation;

/// How all of its headers begin.
pub(super) const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";

/// Replaces the user by the one that is asked for, if the real one may do that.
pub async fn impersonate(
    impersonation: &Arc<Impersonation>,
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    if !request.headers().keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return next.run(request).await;
    }
    let wanted = match wanted(request.headers()) {
        Ok(Some(wanted)) => wanted,
        // Headers without a value ask for nobody.
        Ok(None) => return next.run(request).await,
        Err(status) => return refuse(&mut request, status),
    };
    remove_headers(request.headers_mut());
    let user = request.ctx.user.clone();
    let found = impersonation.find(&wanted, &user, &request.ctx.info).await;
    let acted = match found {
        Ok(acted) => acted,
        Err(status) => {
            let mut answer = refuse(&mut request, status);
            answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            return answer;
        }
    };
    if let Some(audit) = &request.ctx.audit {
        audit.gather(|gathered| {
            gathered.impersonated = Some(acted.user.clone());
            gathered.impersonation_constraint = acted.constraint;
        });
    }
    let verb = acted.constraint.unwrap_or("impersonate");
    let impersonator = Impersonator { user, acting: acted.user.clone(), verb };
    if let Some(line) = &request.line {
        line.acting_as(&impersonator.acting);
    }
    request.story.impersonator = Some(impersonator.clone());
    request.ctx.user = acted.user;
    let mut response = next.run(request).await;
    if response.extensions().get::<Refused>().is_some() {
        response.extensions_mut().insert(impersonator);
    }
    response
}

/// Whom the headers name, as they name them.
///
/// # Errors
/// 400 for groups, a uid or extras of nobody.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Status> {
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
    match (wanted.name.is_empty(), wanted == UserInfo::default()) {
        (true, true) => Ok(None),
        (true, false) => Err(Status::bad_request(without_a_name(&wanted))),
        (false, _) => Ok(Some(wanted)),
    }
}

/// As Go prints a user.
fn without_a_name(wanted: &UserInfo) -> String {
    let list = |values: &mut dyn Iterator<Item = &str>| {
        let quoted: Vec<String> = values.map(quote).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match &wanted.groups[..] {
        [] => "[]string(nil)".to_owned(),
        groups => list(&mut groups.iter().map(|group| &**group)),
    };
    let pair = |(key, values): (&String, &Vec<String>)| {
        format!("{}:{}", quote(key), list(&mut values.iter().map(String::as_str)))
    };
    let extra = match wanted.extra.iter().map(pair).collect::<Vec<_>>() {
        pairs if pairs.is_empty() => "map[string][]string(nil)".to_owned(),
        pairs => format!("map[string][]string{{{}}}", pairs.join(", ")),
    };
    format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}} without impersonating a \
         user name",
        quote(&wanted.uid)
    )
}

/// Nobody below is to know that there were any.
fn remove_headers(headers: &mut HeaderMap) {
    let names = headers.keys().filter(|name| name.as_str().starts_with(PREFIX));
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}
