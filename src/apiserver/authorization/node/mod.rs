//! The Node authorizer (`plugin/pkg/auth/authorizer/node`): a kubelet may read what the pods of its node
//! need, and write what is its own.
//!
//! Nodes are not bound to any role. What makes no difference between nodes is in static rules, the rest is a
//! question of [`relations`]: is there a way from this object to that node. Which fields of its own objects a
//! kubelet may change is for the admission plugin NodeRestriction.

mod relations;

use std::sync::OnceLock;

use crate::authorizer::{Authorizer, AuthorizerReply, Decision, UserRules};
use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::fields::FieldSelector;
use apimachinery::user::UserInfo;
use apis::rbac::bootstrap_policy::node_rules;
use apis::rbac::policy_rule::PolicyRule;
use apis::scheme::Scheme;
use relations::{Relations, Vertex};

/// As in `--authorization-mode`.
const MODE: &str = "Node";
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// Decides for kubelets, and has nothing to say of anybody else.
pub(super) struct NodeAuthorizer {
    relations: Relations,
    /// Read when the first kubelet asks.
    rules: OnceLock<Vec<PolicyRule>>,
}

/// What the words of one kind's rules come to.
enum NodeVerdict {
    Allow,
    Refuse(String),
    /// If there is a way from that object to the node.
    IfRelated(Vertex),
}

impl NodeAuthorizer {
    /// Reads pods, claims and volumes through the registry, when it is asked about them.
    pub(super) fn new(registry: &Registry, scheme: &Scheme) -> NodeAuthorizer {
        NodeAuthorizer { relations: Relations::new(registry, scheme), rules: OnceLock::new() }
    }

    fn judge(&self, node: &str, info: &RequestInfo) -> NodeVerdict {
        if !info.is_resource_request {
            return self.by_static_rules(info);
        }
        match (info.group.as_str(), info.resource.as_str()) {
            ("", "secrets") => read_namespaced(Vertex::Secret, info),
            ("", "configmaps") => read_namespaced(Vertex::ConfigMap, info),
            ("", "persistentvolumeclaims") if info.subresource == "status" => update_status(info),
            ("", "persistentvolumeclaims") => get(Vertex::Claim, info),
            ("", "persistentvolumes") => get(Vertex::Volume, info),
            ("resource.k8s.io", "resourceclaims") => get(Vertex::ResourceClaim, info),
            ("storage.k8s.io", "volumeattachments") => get(Vertex::Attachment, info),
            ("", "serviceaccounts") => service_account(info),
            ("coordination.k8s.io", "leases") => lease(node, info),
            ("storage.k8s.io", "csinodes") => csi_node(node, info),
            ("resource.k8s.io", "resourceslices") => resource_slice(node, info),
            ("", "nodes") => own_node(node, info),
            ("", "pods") => own_pod(node, info),
            _ => self.by_static_rules(info),
        }
    }

    fn by_static_rules(&self, info: &RequestInfo) -> NodeVerdict {
        let rules = self.rules.get_or_init(node_rules);
        if rules.iter().any(|rule| super::rbac::allows(rule, info)) { NodeVerdict::Allow } else { refuse("") }
    }

    async fn if_related(&self, node: &str, vertex: Vertex, info: &RequestInfo) -> Decision {
        if self.relations.lead_to(node, vertex, &info.namespace, &info.name).await {
            Decision::allowed_by(MODE)
        } else {
            let why = format!("no relationship found between node '{node}' and this object");
            Decision::NoOpinion(why)
        }
    }
}

impl Authorizer for NodeAuthorizer {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        let node = match user.node_identity() {
            None => return AuthorizerReply::Now(Decision::SILENT),
            Some("") => {
                let why = format!("unknown node for user {:?}", user.name);
                return AuthorizerReply::Now(Decision::NoOpinion(why));
            }
            Some(node) => node,
        };
        match self.judge(node, info) {
            NodeVerdict::Allow => AuthorizerReply::Now(Decision::allowed_by(MODE)),
            NodeVerdict::Refuse(why) => AuthorizerReply::Now(Decision::NoOpinion(why)),
            NodeVerdict::IfRelated(_) if info.name.is_empty() => {
                AuthorizerReply::Now(Decision::NoOpinion("No Object name found".into()))
            }
            NodeVerdict::IfRelated(vertex) => {
                AuthorizerReply::Later(Box::pin(self.if_related(node, vertex, info)))
            }
        }
    }

    fn rules_for(&self, user: &UserInfo, _namespace: &str) -> UserRules {
        if user.node_identity().is_none() {
            return UserRules::default();
        }
        let why = "node authorizer does not support user rule resolution".to_owned();
        UserRules { incomplete: true, errors: vec![why], ..UserRules::default() }
    }
}

fn refuse(why: impl Into<String>) -> NodeVerdict {
    NodeVerdict::Refuse(why.into())
}

fn update_status(info: &RequestInfo) -> NodeVerdict {
    match info.verb.as_str() {
        "update" | "patch" => NodeVerdict::IfRelated(Vertex::Claim),
        _ => refuse("can only get/update/patch this type"),
    }
}

fn get(vertex: Vertex, info: &RequestInfo) -> NodeVerdict {
    match (info.verb.as_str(), info.subresource.as_str()) {
        ("get", "") => NodeVerdict::IfRelated(vertex),
        ("get", _) => refuse("cannot get subresource"),
        _ => refuse("can only get individual resources of this type"),
    }
}

fn read_namespaced(vertex: Vertex, info: &RequestInfo) -> NodeVerdict {
    if !matches!(info.verb.as_str(), "get" | "list" | "watch") {
        return refuse("can only read resources of this type");
    }
    if !info.subresource.is_empty() {
        return refuse("cannot read subresource");
    }
    if info.namespace.is_empty() {
        return refuse("can only read namespaced object of this type");
    }
    NodeVerdict::IfRelated(vertex)
}

/// Its account for a pod that pulls images in its name, and tokens for pods; NodeRestriction looks which.
fn service_account(info: &RequestInfo) -> NodeVerdict {
    if info.verb == "get" && info.subresource.is_empty() {
        return NodeVerdict::IfRelated(Vertex::ServiceAccount);
    }
    if info.verb != "create" || info.name.is_empty() {
        return refuse("can only create tokens for individual service accounts");
    }
    if info.subresource != "token" {
        return refuse("can only create token subresource of serviceaccount");
    }
    NodeVerdict::IfRelated(Vertex::ServiceAccount)
}

fn lease(node: &str, info: &RequestInfo) -> NodeVerdict {
    if !matches!(info.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        return refuse("can only get, create, update, patch, or delete a node lease");
    }
    if info.namespace != LEASE_NAMESPACE {
        return refuse(format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace"));
    }
    // The name of a new object is in its body, which NodeRestriction sees.
    if info.verb != "create" && info.name != node {
        return refuse("can only access node lease with the same name as the requesting node");
    }
    NodeVerdict::Allow
}

fn csi_node(node: &str, info: &RequestInfo) -> NodeVerdict {
    if !matches!(info.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        return refuse("can only get, create, update, patch, or delete a CSINode");
    }
    if !info.subresource.is_empty() {
        return refuse("cannot authorize CSINode subresources");
    }
    if info.verb != "create" && info.name != node {
        return refuse("can only access CSINode with the same name as the requesting node");
    }
    NodeVerdict::Allow
}

fn resource_slice(node: &str, info: &RequestInfo) -> NodeVerdict {
    if !info.subresource.is_empty() {
        return refuse("cannot authorize ResourceSlice subresources");
    }
    match info.verb.as_str() {
        "create" => NodeVerdict::Allow,
        "get" | "update" | "patch" | "delete" => NodeVerdict::IfRelated(Vertex::ResourceSlice),
        "list" | "watch" | "deletecollection" if selects(info, "spec.nodeName", node) => NodeVerdict::Allow,
        "list" | "watch" | "deletecollection" => {
            refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
        }
        _ => refuse(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, \
             patch, delete, deletecollection",
        ),
    }
}

fn own_node(node: &str, info: &RequestInfo) -> NodeVerdict {
    match (info.subresource.as_str(), info.verb.as_str()) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => NodeVerdict::Allow,
        // By its name alone: a kubelet asks for its Node before there is one.
        ("", "get" | "list" | "watch") => match info.name.as_str() {
            name if name == node => NodeVerdict::Allow,
            "" => refuse(format!("node '{node}' cannot read all nodes, only its own Node object")),
            name => refuse(format!("node '{node}' cannot read '{name}', only its own Node object")),
        },
        _ => refuse(""),
    }
}

fn own_pod(node: &str, info: &RequestInfo) -> NodeVerdict {
    match (info.subresource.as_str(), info.verb.as_str()) {
        ("", "get") => NodeVerdict::IfRelated(Vertex::Pod),
        ("", "list" | "watch") if selects(info, "spec.nodeName", node) => NodeVerdict::Allow,
        ("", "list" | "watch") if !info.name.is_empty() => NodeVerdict::IfRelated(Vertex::Pod),
        ("", "list" | "watch") => refuse("can only list/watch pods with spec.nodeName field selector"),
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
            NodeVerdict::Allow
        }
        _ => refuse(""),
    }
}

/// Whether the field selector leaves only objects whose `field` is `value`.
fn selects(info: &RequestInfo, field: &str, value: &str) -> bool {
    let selector = FieldSelector::parse(&info.field_selector).unwrap_or_default();
    selector.required_value(field) == Some(value)
}
