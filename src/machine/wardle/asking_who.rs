//! Who asks the sample server, and whether he may: it believes the front proxy that the cluster names in
//! `kube-system/extension-apiserver-authentication`, and asks the apiserver about everybody else
//! (`apiserver/pkg/server/options`, delegated authentication and authorization).

use std::sync::Arc;

use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::answers::{GROUP, status};
use crate::agnhost::asking::{AskFirst, Backing};
use crate::requests::{WebAnswer, WebRequest};

const ANONYMOUS: &str = "system:anonymous";
/// Who may do everything, whatever the apiserver says.
const MASTERS: &str = "system:masters";
const TRUST: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// What asks the apiserver with the account of the pod.
const ASKS: &str = "T=/var/run/secrets/kubernetes.io/serviceaccount; \
    curl -s --cacert $T/ca.crt -H \"Authorization: Bearer $(cat $T/token)\" -H 'Content-Type: application/json'";

/// Who asks.
#[derive(Debug, PartialEq)]
struct WardleAsker {
    name: String,
    groups: Vec<String>,
}

/// What the server asks the apiserver before it answers, one question after the other.
struct Delegation<'a> {
    backing: Backing<'a>,
    asked: usize,
}

/// Lets a request in, or says why not.
pub(super) fn refusal(
    request: &WebRequest<'_>,
    backing: Backing<'_>,
) -> Result<Option<WebAnswer>, Box<AskFirst>> {
    let mut delegation = Delegation { backing, asked: 0 };
    let trust = delegation.ask(TRUST, None)?;
    let Some(asker) = asker(request, &trust["data"], &mut delegation)? else {
        return Ok(Some(status(401, "Unauthorized", "Unauthorized", json!({}))));
    };
    if asker.groups.iter().any(|group| group == MASTERS) {
        return Ok(None);
    }
    let (attributes, told) = attributes(request);
    let mut spec = json!({"user": asker.name, "groups": asker.groups});
    spec.as_object_mut()
        .into_iter()
        .for_each(|spec| spec.extend(attributes.as_object().cloned().unwrap_or_default()));
    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    let answered = delegation.ask(ACCESS, Some(&review))?;
    if answered["status"]["allowed"] == true {
        return Ok(None);
    }
    let why = format!("User {:?} cannot {told}", asker.name);
    Ok(Some(status(403, "Forbidden", &format!("forbidden: {why}"), json!({}))))
}

impl Delegation<'_> {
    /// What the apiserver says; nothing where it is not reached, or there is no account.
    fn ask(&mut self, path: &str, body: Option<&Value>) -> Result<Value, Box<AskFirst>> {
        // Each run asks once; what was answered to those before it is not its business.
        let rest = Arc::new(self.backing.answers.get(self.asked..).unwrap_or_default().to_vec());
        self.asked += 1;
        let backing = Backing { answers: &rest, ..self.backing };
        let data = if body.is_some() { " -d \"$BODY\"" } else { "" };
        let script =
            format!("{ASKS}{data} \"https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT{path}\"");
        let body = body.map(Value::to_string).unwrap_or_default();
        let ran = backing.run(&script, &[("BODY", &body)])?;
        Ok(serde_json::from_str(&ran.out).unwrap_or(Value::Null))
    }
}

/// Nothing for a token that is none.
fn asker(
    request: &WebRequest<'_>,
    trust: &Value,
    delegation: &mut Delegation<'_>,
) -> Result<Option<WardleAsker>, Box<AskFirst>> {
    if let Some(asker) = by_proxy(request, trust, &delegation.backing) {
        return Ok(Some(asker));
    }
    if let Some(asker) = by_certificate(trust, &delegation.backing) {
        return Ok(Some(asker));
    }
    let token = request.header("authorization").and_then(|header| header.strip_prefix("Bearer "));
    let Some(token) = token else {
        let groups = vec!["system:unauthenticated".to_owned()];
        return Ok(Some(WardleAsker { name: ANONYMOUS.to_owned(), groups }));
    };
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let answered = delegation.ask(TOKENS, Some(&review))?;
    let status = &answered["status"];
    let user = &status["user"];
    let is_known = status["authenticated"] == true;
    Ok(is_known.then(|| WardleAsker { name: text(&user["username"]), groups: texts(&user["groups"]) }))
}

/// Whom the front proxy names, if it is one: an authority vouches for it, and it has one of the names.
fn by_proxy(request: &WebRequest<'_>, trust: &Value, backing: &Backing<'_>) -> Option<WardleAsker> {
    let list = |name: &str| {
        let listed: Vec<String> = serde_json::from_str(trust[name].as_str()?).ok()?;
        Some(listed)
    };
    let allowed = list("requestheader-allowed-names").unwrap_or_default();
    let (name, _) = vouched_for(&trust["requestheader-client-ca-file"], backing)?;
    if !allowed.is_empty() && !allowed.contains(&name) {
        return None;
    }
    let header = |names: Option<Vec<String>>| {
        let found = names
            .unwrap_or_default()
            .into_iter()
            .filter_map(|name| request.header(&name.to_ascii_lowercase()));
        found.map(str::to_owned).find(|value| !value.is_empty())
    };
    let name = header(list("requestheader-username-headers"))?;
    let group_headers = list("requestheader-group-headers").unwrap_or_default();
    let is_group = |own: &str| group_headers.iter().any(|name| name.eq_ignore_ascii_case(own));
    let groups =
        request.headers.iter().filter(|(own, _)| is_group(own)).map(|(_, value)| (*value).to_owned());
    Some(WardleAsker { name, groups: groups.collect() })
}

/// Who has a certificate of the cluster himself.
fn by_certificate(trust: &Value, backing: &Backing<'_>) -> Option<WardleAsker> {
    let (name, groups) = vouched_for(&trust["client-ca-file"], backing)?;
    Some(WardleAsker { name, groups })
}

/// The common name and the organizations of the client's certificate.
fn vouched_for(authorities: &Value, backing: &Backing<'_>) -> Option<(String, Vec<String>)> {
    let client =
        backing.client.filter(|client| (client.is_vouched_for)(authorities.as_str().unwrap_or_default()))?;
    let (_, certificate) = X509Certificate::from_der(client.chain.first()?).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok().map(str::to_owned));
    Some((name, groups.collect()))
}

/// What is asked for, as a review has it, and as people read it.
fn attributes(request: &WebRequest<'_>) -> (Value, String) {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
    let ["apis", GROUP, version, rest @ ..] = words.as_slice() else {
        let verb = request.method.to_ascii_lowercase();
        let told = format!("{verb} path {path:?}");
        return (json!({"nonResourceAttributes": {"path": path, "verb": verb}}), told);
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let Some((resource, rest)) = rest.split_first() else {
        let verb = request.method.to_ascii_lowercase();
        let told = format!("{verb} path {path:?}");
        return (json!({"nonResourceAttributes": {"path": path, "verb": verb}}), told);
    };
    let name = rest.first().copied().unwrap_or_default();
    let is_watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
    let verb = match (request.method, name.is_empty()) {
        ("GET" | "HEAD", true) if is_watch => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        (_, _) => "",
    };
    let own = json!({"group": GROUP, "version": version, "resource": resource, "namespace": namespace,
        "name": name, "verb": verb});
    let place = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    (
        json!({"resourceAttributes": own}),
        format!("{verb} resource {resource:?} in API group {GROUP:?} {place}"),
    )
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_reviews_ask_about() {
        let of = |method: &'static str, target: &'static str| {
            let (attributes, told) = attributes(&WebRequest { method, target, ..WebRequest::default() });
            let own = &attributes["resourceAttributes"];
            (text(&own["verb"]), text(&own["resource"]), text(&own["namespace"]), told)
        };
        let owned = |verb: &str, told: &str| {
            (verb.to_owned(), "flunders".to_owned(), "a".to_owned(), told.to_owned())
        };
        let flunders = "/apis/wardle.example.com/v1alpha1/namespaces/a/flunders";
        let told = "list resource \"flunders\" in API group \"wardle.example.com\" in the namespace \"a\"";
        assert_eq!(of("GET", flunders), owned("list", told));
        assert_eq!(of("GET", "/apis/wardle.example.com/v1alpha1/namespaces/a/flunders?watch=1").0, "watch");
        assert_eq!(of("DELETE", flunders).0, "deletecollection");
        assert_eq!(of("GET", "/apis").3, "get path \"/apis\"");
    }
}
