//! A ResourceUsage or a ClusterResourceUsage as it was read (kwok's `metrics_resource_usage.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;
use serde_json::Value as Json;

use super::expression::{MeasureExpression, MeasureHost, MeasureSubject};
use super::manifest::{ContainerUsage, PodChoice, UsageSpec, UsageValue};
use super::variables;
use crate::error::StageError;
use apimachinery::quantity::Quantity;
use usage::{Against, Curve, CurveFunction};

/// More groups of containers are refused, as are more resources of one.
const MAX_GROUPS: usize = 256;

/// What the containers of pods use.
#[derive(Debug)]
pub(super) struct ReadUsage {
    selector: PodChoice,
    groups: Vec<UsageGroup>,
}

#[derive(Debug)]
struct UsageGroup {
    containers: Vec<String>,
    /// By resource.
    usage: BTreeMap<String, Arc<Curve>>,
}

impl ReadUsage {
    /// # Errors
    /// What is wrong with the spec, and where.
    pub(super) fn read(spec: &Json) -> Result<ReadUsage, StageError> {
        let spec: UsageSpec =
            serde_json::from_value(spec.clone()).map_err(|why| StageError::from(format!(" {why}")))?;
        if spec.usages.len() > MAX_GROUPS {
            return Err(format!("usages: more than {MAX_GROUPS}").into());
        }
        let groups = spec.usages.iter().enumerate();
        let groups =
            groups.map(|(at, group)| UsageGroup::read(group).map_err(|why| why.at(format!("usages[{at}]."))));
        Ok(ReadUsage {
            groups: groups.collect::<Result<_, _>>()?,
            selector: spec.selector.unwrap_or_default(),
        })
    }

    /// Whether it is about a pod.
    pub(super) fn matches(&self, namespace: &str, name: &str) -> bool {
        let PodChoice { match_namespaces, match_names } = &self.selector;
        let has = |names: &[String], name: &str| names.is_empty() || names.iter().any(|other| other == name);
        has(match_namespaces, namespace) && has(match_names, name)
    }

    /// What it says of a container: of those that name it, else the first for all. Nothing where it says
    /// nothing of it; what it does not say of a resource is that none of it is used.
    pub(super) fn of(&self, container: &str, resource: &str) -> Option<Option<Arc<Curve>>> {
        let named = self.groups.iter().find(|group| group.containers.iter().any(|name| name == container));
        let group = named.or_else(|| self.groups.iter().find(|group| group.containers.is_empty()))?;
        Some(group.usage.get(resource).cloned())
    }

    /// Whether it says anything of a resource.
    pub(super) fn mentions(&self, resource: &str) -> bool {
        self.groups.iter().any(|group| group.usage.contains_key(resource))
    }
}

impl UsageGroup {
    fn read(group: &ContainerUsage) -> Result<UsageGroup, StageError> {
        if group.usage.len() > MAX_GROUPS {
            return Err(format!("usage: more than {MAX_GROUPS}").into());
        }
        let read = |(resource, value): (&String, &UsageValue)| {
            let curve = curve(value).map_err(|why| why.at(format!("usage[{resource}].")))?;
            Ok((resource.clone(), Arc::new(curve)))
        };
        let usage = group.usage.iter().map(read).collect::<Result<_, StageError>>()?;
        Ok(UsageGroup { containers: group.containers.clone(), usage })
    }
}

/// The value goes before the expression; neither is nothing.
fn curve(value: &UsageValue) -> Result<Curve, StageError> {
    if let Some(amount) = &value.value {
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        let quantity = Quantity::parse(&text);
        let wrong = || StageError::from(format!("value: {text:?} is no quantity, as 100m or 64Mi"));
        return Ok(Curve::constant(quantity.map_err(|_| wrong())?.as_approximate_f64()));
    }
    let Some(text) = &value.expression else { return Ok(Curve::constant(0.0)) };
    let expression = MeasureExpression::parse(text).map_err(|why| why.at("expression: "))?;
    Ok(Curve::Expression(Box::new(UsageExpression(expression))))
}

/// A number over time, as an expression has it.
#[derive(Debug)]
struct UsageExpression(MeasureExpression);

impl CurveFunction for UsageExpression {
    fn value(&self, seconds: f64, against: &Against<'_>) -> Option<f64> {
        // A curve is looked at hundreds of times: what the expression does not name stays as it is.
        let known = |name: &str| match against.variables.and_then(|of| of.get(name)) {
            Some(json) if self.0.mentions(name) => variables::object(json),
            _ => cel::Value::Null,
        };
        let subject =
            MeasureSubject { node: known("node"), pod: known("pod"), container: known("container") };
        let now = DateTime::from_timestamp_millis(((against.began + seconds) * 1000.0) as i64)?;
        self.0.number(&subject, &MeasureHost::at(now, None)).ok()
    }
}
