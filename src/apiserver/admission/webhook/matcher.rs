//! Which webhook or policy is asked about a request (`plugin/webhook/generic`, `plugin/policy/matching`):
//! rules and their equivalents, the namespace's labels, the object's labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::rules::{Rule, RuleAttributes};
use crate::admission::{Attributes, Operation};
use crate::registry::Registry;
use apimachinery::labels::{BadSelector, LabelSelector, Selector};
use apimachinery::status::Status;
use apis::admissionregistration::GROUP;
use apis::core::namespace::NAMESPACES;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::tree;

/// What a webhook or a policy says of the requests that it is about.
pub(crate) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Rules that name a kind in another version are about this one too.
    is_equivalent: bool,
    namespaces: Result<Selector, BadSelector>,
    objects: Result<Selector, BadSelector>,
}

/// The form in which the object is wanted.
pub(crate) struct Matched {
    /// The kind, in the version that the rule names.
    pub kind: Arc<Kind>,
}

/// Finds out about requests.
pub(crate) struct Matcher {
    registry: Registry,
    scheme: Arc<Scheme>,
}

impl Criteria {
    /// Of a webhook.
    pub(crate) fn of_webhook(webhook: &Value) -> Criteria {
        Criteria::new(webhook, "rules")
    }

    /// Of a policy's `matchConstraints`, or a binding's `matchResources`.
    pub(crate) fn of_resources(resources: &Value) -> Criteria {
        Criteria::new(resources, "resourceRules")
    }

    fn new(tree: &Value, rules: &str) -> Criteria {
        let selector = |name: &str| {
            let selector = tree::at(tree, name);
            if selector.is_null() {
                Ok(Selector::default())
            } else {
                LabelSelector::deserialize(selector).map_err(|error| error.to_string())?.selector()
            }
        };
        Criteria {
            rules: Rule::list(tree::at(tree, rules)),
            excluded: Rule::list(tree::at(tree, "excludeResourceRules")),
            is_equivalent: tree::text(tree, "matchPolicy") != "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }
}

impl Matcher {
    /// Namespaces are read through the registry.
    pub(crate) fn new(registry: &Registry, scheme: &Arc<Scheme>) -> Matcher {
        Matcher { registry: registry.clone(), scheme: scheme.clone() }
    }

    /// Whether the criteria are about a request, and in which version. `any_resource`: a binding without
    /// rules is about all of its policy's.
    ///
    /// # Errors
    /// A selector that is none; 404 for a namespace that is not there.
    pub(crate) async fn matches(
        &self,
        criteria: &Criteria,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        any_resource: bool,
    ) -> Result<Option<Matched>, Status> {
        if self.rule(&criteria.excluded, criteria.is_equivalent, attributes, object).is_some() {
            return Ok(None);
        }
        let kind = if any_resource && criteria.rules.is_empty() {
            Some(attributes.kind.clone())
        } else {
            self.rule(&criteria.rules, criteria.is_equivalent, attributes, object)
        };
        let Some(kind) = kind else { return Ok(None) };
        let fault = |error: &BadSelector| Status::internal(error);
        let (namespaces, objects) =
            (criteria.namespaces.as_ref().map_err(fault)?, criteria.objects.as_ref().map_err(fault)?);
        let selected = (objects.is_everything()
            || [object, old].into_iter().any(|tree| selects(objects, tree)))
            && self.is_in_namespace(namespaces, attributes, object).await?;
        Ok(selected.then_some(Matched { kind }))
    }

    /// The namespace that the request is in; none for what lives in no namespace.
    ///
    /// # Errors
    /// 404 for one that is not there.
    pub(crate) async fn namespace(&self, attributes: &Attributes<'_>) -> Result<Option<Value>, Status> {
        match attributes.namespace {
            "" => Ok(None),
            name => self.namespace_named(name).await.map(Some),
        }
    }

    async fn namespace_named(&self, name: &str) -> Result<Value, Status> {
        let mut found = self.registry.get(&NAMESPACES, "", name, Some("0")).await;
        if found.as_ref().is_err_and(Status::is_not_found) {
            found = self.registry.get(&NAMESPACES, "", name, None).await;
        }
        Ok(found?.to_value())
    }

    /// The kind, in the version of the first rule that is about the request.
    fn rule(
        &self,
        rules: &[Rule],
        is_equivalent: bool,
        attributes: &Attributes,
        object: Option<&Value>,
    ) -> Option<Arc<Kind>> {
        if rules.is_empty() {
            return None;
        }
        let name = match attributes.name {
            "" => object.map_or("", |object| tree::text(object, "metadata.name")),
            name => name,
        };
        let Attributes { operation, subresource, .. } = *attributes;
        let is_about =
            |rule: &Rule, kind: &Kind| rule.matches(&RuleAttributes { operation, kind, subresource, name });
        if rules.iter().any(|rule| is_about(rule, attributes.kind)) {
            return Some(attributes.kind.clone());
        }
        if !is_equivalent {
            return None;
        }
        let place = attributes.kind.storage_prefix();
        let has_part = |kind: &Kind| {
            subresource.is_empty() || kind.subresources.iter().any(|own| own.name() == subresource)
        };
        let is_other = |kind: &Arc<Kind>| {
            !Arc::ptr_eq(kind, attributes.kind) && kind.storage_prefix() == place && has_part(kind)
        };
        let others: Vec<Arc<Kind>> = self.scheme.all().into_iter().filter(is_other).collect();
        // The first rule counts, not the first version.
        rules.iter().find_map(|rule| others.iter().find(|kind| is_about(rule, kind))).cloned()
    }

    /// Objects outside of namespaces are selected by every selector; a namespace by its own labels.
    async fn is_in_namespace(
        &self,
        selector: &Selector,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, Status> {
        if selector.is_everything() {
            return Ok(true);
        }
        let is_namespace =
            &*attributes.kind.plural == "namespaces" && attributes.kind.group_version.group.is_empty();
        let namespace = match (is_namespace, attributes.operation) {
            (true, Operation::Create | Operation::Update) if attributes.subresource.is_empty() => {
                return Ok(object.is_some_and(|object| selector.matches(&labels(object))));
            }
            (true, _) => attributes.name,
            (false, _) => attributes.namespace,
        };
        if namespace.is_empty() {
            return Ok(true);
        }
        let namespace = self.namespace_named(namespace).await?;
        Ok(selector.matches(&labels(&namespace)))
    }
}

/// Requests that no webhook and no policy is asked about, or nobody could get rid of a bad one
/// (`IsExemptAdmissionConfigurationResource`); and reviews, which are no objects.
pub(crate) fn is_exempt(attributes: &Attributes) -> bool {
    &*attributes.kind.group_version.group == GROUP
}

fn selects(selector: &Selector, tree: Option<&Value>) -> bool {
    tree.is_some_and(|tree| tree.is_object() && selector.matches(&labels(tree)))
}

fn labels(tree: &Value) -> BTreeMap<String, String> {
    tree::string_map(tree, "metadata.labels")
}
