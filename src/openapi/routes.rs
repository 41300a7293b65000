//! Routes beside the plain verbs: the deprecated `/watch/` paths, and the subresources that are connections
//! (exec, attach, port forwarding, proxies), under upstream's operation ids.

use super::names::{camel, group_path, group_version_id, tag};
use super::operation::{PathItem, PathOperation};
use super::parameters::{ATTACH, EXEC, LIST, NODE_PROXY, POD_PROXY, PORT_FORWARD, Parameter, SERVICE_PROXY};
use super::{ServedResource, ServedSubresource};

const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
const DEPRECATED: &str = "deprecated: use the 'watch' parameter with a list operation instead";

/// Whether a subresource is a connection.
pub(super) fn is_connection(subresource: &ServedSubresource) -> bool {
    matches!(subresource.name.as_str(), "exec" | "attach" | "portforward" | "proxy")
}

/// The `/watch/` paths of a resource; definitions publish none.
pub(super) fn watches(resource: &ServedResource) -> Vec<PathItem> {
    let can = |wanted: &str| resource.verbs.iter().any(|verb| verb == wanted);
    if !can("watch") || resource.schema.is_some() {
        return vec![];
    }
    let ServedResource { kind, plural, namespaced, .. } = resource;
    let base = format!("{}/watch", group_path(&resource.group, &resource.version));
    let id = group_version_id(&resource.group, &resource.version);
    let (collection, scope) = if *namespaced {
        (format!("{base}/namespaces/{{namespace}}/{plural}"), "Namespaced")
    } else {
        (format!("{base}/{plural}"), "")
    };
    let list = format!("watch individual changes to a list of {kind}. {DEPRECATED}.");
    let one = format!(
        "watch changes to an object of kind {kind}. {DEPRECATED}, filtered to a single item with the \
         'fieldSelector' parameter."
    );
    let mut paths = Vec::new();
    if *namespaced {
        let id = format!("watch{id}{kind}ListForAllNamespaces");
        let operation = watch(resource, id, "watchlist", list.clone());
        paths.push(PathItem {
            path: format!("{base}/{plural}"),
            placeholders: vec![],
            operations: vec![operation],
        });
    }
    let operation = watch(resource, format!("watch{id}{scope}{kind}List"), "watchlist", list);
    paths.push(item(resource, collection.clone(), false, vec![operation]));
    if can("get") {
        let operation = watch(resource, format!("watch{id}{scope}{kind}"), "watch", one);
        paths.push(item(resource, format!("{collection}/{{name}}"), true, vec![operation]));
    }
    paths
}

fn watch(resource: &ServedResource, id: String, action: &'static str, description: String) -> PathOperation {
    PathOperation {
        method: "get",
        id,
        tag: tag(&resource.group, &resource.version),
        description,
        action,
        kind: Some([resource.group.clone(), resource.version.clone(), resource.kind.clone()]),
        parameters: LIST,
        is_pretty: true,
        answer: WATCH_EVENT.into(),
        codes: &["200"],
        ..PathOperation::default()
    }
}

/// The paths of a connection; `collection` is the path of the resource's collection.
pub(super) fn connections(
    resource: &ServedResource,
    subresource: &ServedSubresource,
    collection: &str,
) -> Vec<PathItem> {
    let path = format!("{collection}/{{name}}/{}", subresource.name);
    if subresource.name != "proxy" {
        let methods = ["get", "post"].map(|method| connect(resource, subresource, method, ""));
        return vec![item(resource, path, true, methods.into())];
    }
    const METHODS: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
    let plain = METHODS.map(|method| connect(resource, subresource, method, ""));
    let deeper = METHODS.map(|method| connect(resource, subresource, method, "WithPath"));
    let mut below = item(resource, format!("{path}/{{path}}"), true, deeper.into());
    below.placeholders.push(("path", "path to the resource".into()));
    vec![item(resource, path, true, plain.into()), below]
}

fn connect(
    resource: &ServedResource,
    subresource: &ServedSubresource,
    method: &'static str,
    suffix: &str,
) -> PathOperation {
    let id = group_version_id(&resource.group, &resource.version);
    let scope = if resource.namespaced { "Namespaced" } else { "" };
    let (verb, part) = (camel(method, true), camel(&subresource.name, true));
    PathOperation {
        method,
        id: format!("connect{id}{verb}{scope}{}{part}{suffix}", resource.kind),
        tag: tag(&resource.group, &resource.version),
        description: format!(
            "connect {} requests to {} of {}",
            method.to_ascii_uppercase(),
            subresource.name,
            resource.kind
        ),
        action: "connect",
        kind: Some([&subresource.group, &subresource.version, &subresource.kind].map(Clone::clone)),
        parameters: parameters(&resource.plural, &subresource.name),
        codes: &["200"],
        ..PathOperation::default()
    }
}

fn parameters(resource: &str, subresource: &str) -> &'static [Parameter] {
    match (resource, subresource) {
        (_, "exec") => EXEC,
        (_, "attach") => ATTACH,
        (_, "portforward") => PORT_FORWARD,
        ("services", _) => SERVICE_PROXY,
        ("nodes", _) => NODE_PROXY,
        _ => POD_PROXY,
    }
}

/// A path with what its placeholders mean.
pub(super) fn item(
    resource: &ServedResource,
    path: String,
    named: bool,
    operations: Vec<PathOperation>,
) -> PathItem {
    let name = named.then(|| ("name", format!("name of the {}", resource.kind)));
    let namespace = "object name and auth scope, such as for teams and projects";
    let namespace = resource.namespaced.then(|| ("namespace", namespace.to_owned()));
    PathItem { path, placeholders: name.into_iter().chain(namespace).collect(), operations }
}
