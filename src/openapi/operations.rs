//! The operations of served resources, before they are written in either version of OpenAPI.
//!
//! Upstream's `endpoints/installer.go` as far as it describes routes: which verbs lie on which path, their
//! ids, parameters, bodies and answers.

use super::names::{camel, group_path, group_version_id, tag};
use super::operation::{Body, PathItem, PathOperation};
use super::parameters::{DELETE, DELETE_COLLECTION, LIST, LOG, PATCH, READ, WRITE};
use super::routes::{connections, is_connection, item, watches};
use super::{ServedResource, ServedSubresource};

/// The definition of an answer that is no object.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
/// The definition of the body of a delete.
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
/// The definition of the body of a patch.
pub(super) const PATCH_BODY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
/// The definition of what discovery answers.
pub(super) const API_RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";

/// Every path of one group and version, in the order of its resources.
pub(super) fn paths(group: &str, version: &str, served: &[ServedResource]) -> Vec<PathItem> {
    let own = |resource: &&ServedResource| resource.group == group && resource.version == version;
    // Definitions publish their resources alone.
    let is_built_in = served.iter().filter(own).any(|resource| resource.schema.is_none());
    let mut paths = if is_built_in { vec![discovery(group, version)] } else { vec![] };
    for resource in served.iter().filter(own) {
        paths.extend(OperationRoutes::of(resource).paths());
    }
    paths
}

fn discovery(group: &str, version: &str) -> PathItem {
    let operation = PathOperation {
        method: "get",
        id: format!("get{}APIResources", group_version_id(group, version)),
        tag: tag(group, version),
        description: "get available resources".into(),
        answer: API_RESOURCE_LIST.into(),
        codes: &["200"],
        ..PathOperation::default()
    };
    PathItem { path: group_path(group, version) + "/", placeholders: Vec::new(), operations: vec![operation] }
}

/// The paths of one resource.
struct OperationRoutes<'a> {
    resource: &'a ServedResource,
    collection: String,
    id: String,
    /// `Namespaced` in the ids of namespaced resources.
    scope: &'static str,
}

impl<'a> OperationRoutes<'a> {
    fn of(resource: &'a ServedResource) -> Self {
        let base = group_path(&resource.group, &resource.version);
        let (collection, scope) = if resource.namespaced {
            (format!("{base}/namespaces/{{namespace}}/{}", resource.plural), "Namespaced")
        } else {
            (format!("{base}/{}", resource.plural), "")
        };
        Self { resource, collection, scope, id: group_version_id(&resource.group, &resource.version) }
    }

    fn paths(&self) -> Vec<PathItem> {
        let mut paths = Vec::new();
        if self.resource.namespaced && self.has("list") {
            let path = format!(
                "{}/{}",
                group_path(&self.resource.group, &self.resource.version),
                self.resource.plural
            );
            let id = format!("list{}{}ForAllNamespaces", self.id, self.resource.kind);
            let operations = vec![PathOperation { id, ..self.list() }];
            paths.push(PathItem { path, placeholders: Vec::new(), operations });
        }
        paths.push(item(self.resource, self.collection.clone(), false, self.collection_operations()));
        let path = format!("{}/{{name}}", self.collection);
        paths.push(item(self.resource, path, true, self.object_operations()));
        for subresource in &self.resource.subresources {
            if is_connection(subresource) {
                paths.extend(connections(self.resource, subresource, &self.collection));
                continue;
            }
            let path = format!("{}/{{name}}/{}", self.collection, subresource.name);
            paths.push(item(self.resource, path, true, self.subresource_operations(subresource)));
        }
        if self.resource.schema.is_some() {
            paths.iter_mut().flat_map(|path| &mut path.operations).for_each(|own| self.customize(own));
        }
        paths.extend(watches(self.resource));
        paths.retain(|path| !path.operations.is_empty());
        paths
    }

    /// Where the operations of custom resources are published otherwise than those of built-in ones
    /// (`controller/openapi/builder`).
    fn customize(&self, operation: &mut PathOperation) {
        let ServedResource { group, version, kind, .. } = self.resource;
        operation.is_custom = true;
        // Whatever the subresource takes.
        operation.kind = Some([group.clone(), version.clone(), kind.clone()]);
        match operation.action {
            "list" => operation.description = format!("list objects of kind {kind}"),
            "get" => operation.parameters = READ,
            "patch" => operation.codes = &["200"],
            "deletecollection" => (operation.parameters, operation.body) = (LIST, None),
            _ => {}
        }
    }

    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.iter().any(|own| own == verb)
    }

    fn collection_operations(&self) -> Vec<PathOperation> {
        let kind = &self.resource.kind;
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(self.list());
        }
        if self.has("create") {
            let what = format!("create {} {kind}", article(kind));
            operations.push(self.create("", what, &self.resource.definition));
        }
        if self.has("deletecollection") {
            operations.push(PathOperation {
                id: format!("delete{}Collection{}{kind}", self.id, self.scope),
                action: "deletecollection",
                parameters: DELETE_COLLECTION,
                body: Some(Body::DeleteOptions),
                answer: STATUS.into(),
                ..self.operation("delete", format!("delete collection of {kind}"))
            });
        }
        operations
    }

    fn object_operations(&self) -> Vec<PathOperation> {
        let kind = &self.resource.kind;
        let mut operations = self.read_and_write("", &self.resource.verbs, &self.resource.definition);
        if self.has("delete") {
            operations.push(PathOperation {
                id: format!("delete{}{}{kind}", self.id, self.scope),
                action: "delete",
                parameters: DELETE,
                body: Some(Body::DeleteOptions),
                answer: STATUS.into(),
                codes: &["200", "202"],
                ..self.operation("delete", format!("delete {} {kind}", article(kind)))
            });
        }
        operations
    }

    fn subresource_operations(&self, subresource: &ServedSubresource) -> Vec<PathOperation> {
        let ServedSubresource { name, definition, verbs, .. } = subresource;
        let mut operations = self.read_and_write(name, verbs, definition);
        if verbs.iter().any(|verb| verb == "create") {
            let what = format!("create {name} of {} {}", article(&self.resource.kind), self.resource.kind);
            operations.push(self.create(name, what, definition));
        }
        for operation in &mut operations {
            operation.kind =
                Some([&subresource.group, &subresource.version, &subresource.kind].map(Clone::clone));
            if name == "log" {
                operation.parameters = LOG;
            }
        }
        operations
    }

    /// Get, update and patch of an object or a subresource of it.
    fn read_and_write(&self, subresource: &str, verbs: &[String], definition: &str) -> Vec<PathOperation> {
        let id = |verb: &str| {
            format!("{verb}{}{}{}{}", self.id, self.scope, self.resource.kind, camel(subresource, true))
        };
        let of = if subresource.is_empty() { String::new() } else { format!("{subresource} of ") };
        let what = |verb: &str| format!("{verb} {of}the specified {}", self.resource.kind);
        let mut operations = Vec::new();
        for verb in verbs {
            let operation = match verb.as_str() {
                "get" => {
                    PathOperation { id: id("read"), action: "get", ..self.operation("get", what("read")) }
                }
                "update" => PathOperation {
                    id: id("replace"),
                    action: "put",
                    parameters: WRITE,
                    body: Some(Body::Object(definition.to_owned())),
                    codes: &["200", "201"],
                    ..self.operation("put", what("replace"))
                },
                "patch" => PathOperation {
                    id: id("patch"),
                    action: "patch",
                    parameters: PATCH,
                    body: Some(Body::Patch { strategic: self.resource.schema.is_none() }),
                    codes: &["200", "201"],
                    ..self.operation("patch", what("partially update"))
                },
                _ => continue,
            };
            operations.push(PathOperation { answer: definition.to_owned(), ..operation });
        }
        operations
    }

    fn create(&self, subresource: &str, description: String, definition: &str) -> PathOperation {
        let kind = &self.resource.kind;
        PathOperation {
            id: format!("create{}{}{kind}{}", self.id, self.scope, camel(subresource, true)),
            action: "post",
            parameters: WRITE,
            body: (!definition.is_empty()).then(|| Body::Object(definition.to_owned())),
            answer: definition.to_owned(),
            codes: &["200", "201", "202"],
            ..self.operation("post", description)
        }
    }

    fn list(&self) -> PathOperation {
        let kind = &self.resource.kind;
        PathOperation {
            id: format!("list{}{}{kind}", self.id, self.scope),
            action: "list",
            parameters: LIST,
            answer: self.resource.list_definition.clone().unwrap_or_default(),
            ..self.operation("get", format!("list or watch objects of kind {kind}"))
        }
    }

    fn operation(&self, method: &'static str, description: String) -> PathOperation {
        let ServedResource { group, version, kind, .. } = self.resource;
        PathOperation {
            method,
            tag: tag(group, version),
            description,
            kind: Some([group.clone(), version.clone(), kind.clone()]),
            codes: &["200"],
            is_pretty: true,
            ..PathOperation::default()
        }
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}
