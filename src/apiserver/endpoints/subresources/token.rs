//! `serviceaccounts/token`: a token for an account (`registry/core/serviceaccount/storage.TokenREST`).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::Operation;
use crate::authentication::service_account::issuer::{ClaimedObject, TokenIssuer, TokenRequest};
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::field_manager::FieldManagement;
use crate::endpoints::handlers::form::BodyKind;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::registry::Validating;
use crate::registry::rest::ensure_namespace;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::{GroupResource, GroupVersion, GroupVersionKind};
use apimachinery::object::{Object, encode_for_storage};
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::authentication::TOKEN_REQUESTS;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::core::secret::SECRETS;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::tree::{items, number, set, text, texts};

const MIN_EXPIRATION_SECONDS: i64 = 10 * 60;
const MAX_EXPIRATION_SECONDS: i64 = 1 << 32;

/// Issues a token for the account that the path names.
pub(crate) async fn create_token(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let issuer = scope.server.token_issuer.clone();
    let issuer = issuer.ok_or_else(no_issuer)?;
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let form = BodyKind::of(&scope.server, &TOKEN_REQUESTS);
    let mut request = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut request, scope.namespace())?;
    form.apply_defaults(&mut request)?;
    form.complete(&mut request);
    FieldManagement::new(scope, &form).update(None, &mut request);
    let attributes = scope.attributes(Operation::Create, scope.name());
    scope.server.admission.admit(&attributes, Some(&mut request), None).await?;
    form.complete(&mut request);
    let account = find_account(scope, &request).await?;
    complete(&mut request, &account, &issuer, scope);
    validate(&request)?;
    scope.server.admission.validating(&attributes).validate(Some(&request), None).await?;
    let bound = bind(scope, &request).await?;
    shorten(scope, &mut request, &issuer);
    issue(scope, &issuer, &mut request, &account, bound)?;
    let body = encode_for_storage(&request).map_err(Status::internal)?;
    scope.kind = TOKEN_REQUESTS.clone();
    Ok(Answer::Object(201, scope.kind.object(body, 0).map(Arc::new).map_err(Status::internal)?))
}

/// There is no key to sign with.
fn no_issuer() -> Status {
    let text = "serviceaccounts/token is not supported by this server yet";
    Status::failure(501, "NotImplemented", text)
}

/// What the token lives and dies with.
#[derive(Default)]
struct BoundObject {
    pod: Option<ClaimedObject>,
    node: Option<ClaimedObject>,
    secret: Option<ClaimedObject>,
}

async fn find_account(scope: &Scope, request: &Value) -> Result<Arc<Object>, Status> {
    let kind = TOKEN_REQUESTS.gvk();
    let own = text(request, "metadata.name");
    if !own.is_empty() && own != scope.name() {
        let mut errors = FieldErrors::default();
        let detail = "must match the service account name if specified";
        errors.invalid("metadata.name", &own.into(), detail);
        return Err(Status::invalid(&kind, scope.name(), &errors));
    }
    let account = scope.server.registry.get(&SERVICE_ACCOUNTS, scope.namespace(), scope.name(), None).await?;
    let (uid, own) = (&account.metadata.uid, text(request, "metadata.uid"));
    if !own.is_empty() && own != uid {
        let why = format!(
            "the UID in the token request ({own}) does not match the UID of the service account ({uid})"
        );
        return Err(Status::conflict(&as_resource(&kind), scope.name(), &why));
    }
    Ok(account)
}

fn complete(request: &mut Value, account: &Object, issuer: &TokenIssuer, scope: &Scope) {
    if items(request, "spec.audiences").is_empty() {
        set(request, "spec.audiences", json!(issuer.audiences()));
    }
    let now = rfc3339(scope.server.clock.now());
    set(request, "metadata.name", &*account.metadata.name);
    set(request, "metadata.namespace", &*account.metadata.namespace);
    set(request, "metadata.uid", &*account.metadata.uid);
    set(request, "metadata.creationTimestamp", now);
    set(request, "status", json!({}));
}

/// `ValidateTokenRequest`
fn validate(request: &Value) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let path = "spec.expirationSeconds";
    let seconds = &request["spec"]["expirationSeconds"];
    let words = match number(request, path) {
        MIN_EXPIRATION_SECONDS..=MAX_EXPIRATION_SECONDS => return Ok(()),
        i64::MIN..MIN_EXPIRATION_SECONDS => "may not specify a duration less than 10 minutes",
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    errors.invalid(path, seconds, words);
    Err(Status::invalid(&TOKEN_REQUESTS.gvk(), "", &errors))
}

/// Finds the object that the token is to be bound to.
async fn bind(scope: &Scope, request: &Value) -> Result<BoundObject, Status> {
    let reference = &request["spec"]["boundObjectRef"];
    if reference.is_null() {
        return Ok(BoundObject::default());
    }
    let registry = &scope.server.registry;
    let (namespace, name) = (scope.namespace(), text(reference, "name"));
    let version = GroupVersion::parse(text(reference, "apiVersion"));
    let kind = version.unwrap_or(GroupVersion::new("", "")).kind(text(reference, "kind"));
    let mut bound = BoundObject::default();
    let object = match (&*kind.group_version.group, &*kind.kind) {
        ("", "Pod") => {
            let pod = registry.get(&PODS, namespace, name, None).await?;
            bound.node = check_pod(scope, &pod).await?;
            bound.pod = Some(reference_to(&pod));
            pod
        }
        ("", "Secret") => {
            let secret = registry.get(&SECRETS, namespace, name, None).await?;
            bound.secret = Some(reference_to(&secret));
            secret
        }
        ("", "Node") => {
            let node = registry.get(&NODES, "", name, None).await?;
            bound.node = Some(reference_to(&node));
            node
        }
        _ => return Err(Status::bad_request(format!("cannot bind token to object of type {kind}"))),
    };
    let uid = text(reference, "uid");
    if !uid.is_empty() && uid != object.metadata.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object \
             might have been deleted and then recreated"
        );
        return Err(Status::conflict(&as_resource(&kind), name, &why));
    }
    Ok(bound)
}

/// The pod runs as this account; returns its node, of which the token tells too.
async fn check_pod(scope: &Scope, pod: &Object) -> Result<Option<ClaimedObject>, Status> {
    let pod = pod.to_value();
    let name = scope.name();
    if text(&pod, "spec.serviceAccountName") != name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {name:?} to pod running with different serviceaccount name."
        )));
    }
    let node = match text(&pod, "spec.nodeName") {
        "" => return Ok(None),
        node => node,
    };
    match scope.server.registry.get(&NODES, "", node, None).await {
        Ok(node) => Ok(Some(reference_to(&node))),
        // The name alone still says something to whoever reads the token.
        Err(status) if status.is_not_found() => {
            Ok(Some(ClaimedObject { name: node.into(), uid: String::new() }))
        }
        Err(status) => Err(status),
    }
}

fn shorten(scope: &Scope, request: &mut Value, issuer: &TokenIssuer) {
    let asked = number(request, "spec.expirationSeconds");
    if let Some(longest) = issuer.max_expiration_seconds().filter(|longest| asked > *longest) {
        let text = format!("requested expiration of {asked} seconds shortened to {longest} seconds");
        scope.ctx.warn(text);
        set(request, "spec.expirationSeconds", longest);
    }
}

fn issue(
    scope: &Scope,
    issuer: &TokenIssuer,
    request: &mut Value,
    account: &Object,
    bound: BoundObject,
) -> Result<(), Status> {
    let expiration_seconds = number(request, "spec.expirationSeconds");
    let now = scope.server.clock.now();
    let (token, id) = issuer
        .issue(&TokenRequest {
            namespace: account.metadata.namespace.clone(),
            account: reference_to(account),
            pod: bound.pod,
            node: bound.node,
            secret: bound.secret,
            audiences: texts(request, "spec.audiences").into_iter().map(str::to_owned).collect(),
            expiration_seconds,
        })
        .map_err(|error| Status::internal(format!("failed to generate token: {error}")))?;
    scope.ctx.annotate("authentication.kubernetes.io/issued-credential-id", &format!("JTI={id}"));
    let end = now + chrono::TimeDelta::seconds(expiration_seconds);
    set(request, "status", json!({"token": token, "expirationTimestamp": rfc3339(end)}));
    Ok(())
}

fn reference_to(object: &Object) -> ClaimedObject {
    ClaimedObject { name: object.metadata.name.clone(), uid: object.metadata.uid.clone() }
}

/// Upstream names the kind where others name the resource.
fn as_resource(kind: &GroupVersionKind) -> GroupResource {
    GroupResource { group: kind.group_version.group.clone(), resource: kind.kind.clone() }
}
