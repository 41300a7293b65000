//! One metric of an autoscaler: how many replicas it asks for, what is shown of it, and what is said when it
//! cannot be had (`computeReplicasForMetric`).

use serde_json::{Value, json};

use super::metrics_client::{MetricsClient, PodMetrics};
use super::metrics_error::MetricsError;
use super::replica_calculator::{Proposal, ReplicaCalculator};
use apimachinery::labels::{LabelSelector, Selector};
use apimachinery::quantity::{Format, Quantity};
use apis::tree::{at, text};

/// What a metric asks for.
#[derive(Debug, PartialEq)]
pub(super) struct MetricResult {
    pub(super) replicas: i64,
    /// What it is called where it decides.
    pub(super) name: String,
    /// Its place in `currentMetrics`.
    pub(super) status: Value,
}

/// A metric that cannot be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unavailable {
    /// The reason of the condition and of its event.
    pub(super) reason: &'static str,
    /// What the condition and its event say.
    pub(super) message: String,
    /// The number of replicas, as the sum of all metrics says it.
    pub(super) error: String,
}

/// What is scaled, as metrics are weighed for it.
pub(super) struct Computation<'a> {
    pub(super) metrics: MetricsClient<'a>,
    pub(super) calculator: ReplicaCalculator<'a>,
    pub(super) selector: &'a Selector,
    /// `spec.replicas` of the scale.
    pub(super) wanted: i64,
    /// `status.replicas` of the scale.
    pub(super) running: i64,
}

/// Why a metric cannot be had, and how its number of replicas is said to have failed, when that has more.
struct MetricFailure {
    message: String,
    error: String,
}

impl From<String> for MetricFailure {
    fn from(message: String) -> MetricFailure {
        MetricFailure { error: message.clone(), message }
    }
}

impl From<MetricsError> for MetricFailure {
    fn from(why: MetricsError) -> MetricFailure {
        why.to_string().into()
    }
}

impl MetricFailure {
    fn of(message: String, within: &str) -> MetricFailure {
        MetricFailure { error: format!("{within}: {message}"), message }
    }
}

impl Computation<'_> {
    pub(super) async fn of_metric(&self, metric: &Value) -> Result<MetricResult, Unavailable> {
        let (found, reason, what) = match text(metric, "type") {
            "Resource" => {
                let source = &metric["resource"];
                let what = format!("{} resource", text(source, "name"));
                (self.of_resource(source, false).await, "FailedGetResourceMetric", what)
            }
            "ContainerResource" => {
                let source = &metric["containerResource"];
                let what = format!("{} container", text(source, "container"));
                (self.of_resource(source, true).await, "FailedGetContainerResourceMetric", what)
            }
            "External" => {
                let source = &metric["external"];
                let what = format!("{} external", text(source, "metric.name"));
                (self.of_external(source).await, "FailedGetExternalMetric", what)
            }
            "Object" => (self.of_object(&metric["object"]).await, "FailedGetObjectMetric", "object".into()),
            "Pods" => (self.of_pods(&metric["pods"]).await, "FailedGetPodsMetric", "pods".into()),
            other => {
                let error = format!("unknown metric source type {other:?}");
                return Err(Unavailable { reason: "InvalidMetricSourceType", message: error.clone(), error });
            }
        };
        found.map_err(|MetricFailure { message, error }| Unavailable {
            reason,
            message,
            error: format!("failed to get {what} metric value: {error}"),
        })
    }

    /// `computeStatusForResourceMetricGeneric`
    async fn of_resource(&self, source: &Value, of_container: bool) -> Result<MetricResult, MetricFailure> {
        let (resource, target) = (text(source, "name"), &source["target"]);
        let container = text(source, "container");
        let average = quantity(&target["averageValue"]);
        let (by, value) = match (average, target["averageUtilization"].as_i64()) {
            (Some(average), _) => ("usage", average),
            (None, Some(percent)) => ("utilization", percent),
            (None, None) => return Err(NO_RESOURCE_TARGET.to_owned().into()),
        };
        let failed = |why: MetricsError| format!("failed to get {resource} {by}: {why}");
        let measured = self.metrics.resource(resource, container, self.selector).await;
        let measured = measured
            .map_err(|why| failed(format!("unable to get metrics for resource {resource}: {why}").into()))?;
        let proposal = match by {
            "usage" => self.calculator.by_value(self.wanted, value, resource, measured),
            _ => self.calculator.by_utilization(self.wanted, value, (resource, container), measured),
        };
        let proposal = proposal.map_err(failed)?;
        let name = match (by, of_container) {
            ("usage", _) => format!("{resource} resource"),
            (_, false) => format!("{resource} resource utilization (percentage of request)"),
            (_, true) => format!("{resource} container resource utilization (percentage of request)"),
        };
        let mut current = json!({"averageValue": shown(proposal.usage)});
        if let Some(percent) = proposal.utilization {
            current["averageUtilization"] = percent.into();
        }
        let mut status = json!({"name": resource, "current": current});
        if of_container {
            status["container"] = container.into();
            let status = json!({"type": "ContainerResource", "containerResource": status});
            return Ok(MetricResult { replicas: proposal.replicas, name, status });
        }
        let status = json!({"type": "Resource", "resource": status});
        Ok(MetricResult { replicas: proposal.replicas, name, status })
    }

    /// `computeStatusForPodsMetric`
    async fn of_pods(&self, source: &Value) -> Result<MetricResult, MetricFailure> {
        let name = text(source, "metric.name");
        let measured: PodMetrics = self
            .metrics
            .of_pods(name, self.selector, &metric_selector(source)?)
            .await
            .map_err(|why| format!("unable to get metric {name}: {why}"))?;
        let target = quantity(&source["target"]["averageValue"]).unwrap_or(0);
        let proposal = self.calculator.by_value(self.wanted, target, "", measured)?;
        let current = json!({"averageValue": shown(proposal.usage)});
        let status = json!({"type": "Pods", "pods": {"metric": source["metric"], "current": current}});
        Ok(MetricResult { replicas: proposal.replicas, name: format!("pods metric {name}"), status })
    }

    /// `computeStatusForObjectMetric`
    async fn of_object(&self, source: &Value) -> Result<MetricResult, MetricFailure> {
        let (name, object, target) =
            (text(source, "metric.name"), &source["describedObject"], &source["target"]);
        let selector = metric_selector(source)?;
        let measure = || async {
            let usage = self.metrics.of_object(name, object, &selector).await;
            // The error stands where upstream prints it.
            let (kind, own) = (text(object, "kind"), text(object, "name"));
            let place = format!("{kind} on {} {own}", self.metrics.namespace);
            usage.map_err(|why| format!("unable to get metric {name}: {place}/{why}"))
        };
        let total = quantity(&target["value"]).filter(|_| text(target, "type") == "Value");
        let share = quantity(&target["averageValue"]).filter(|_| text(target, "type") == "AverageValue");
        let metric = &source["metric"];
        if let Some(total) = total {
            let Proposal { replicas, usage, .. } =
                self.calculator.by_total(self.wanted, total, measure().await?)?;
            let current = json!({"value": shown(usage)});
            let status = json!({"describedObject": object, "metric": metric, "current": current});
            let status = json!({"type": "Object", "object": status});
            let name = format!("{} metric {name}", text(object, "kind"));
            return Ok(MetricResult { replicas, name, status });
        }
        let share = share.ok_or_else(|| NO_OBJECT_TARGET.to_owned())?;
        let usage = measure().await;
        let usage =
            usage.map_err(|why| MetricFailure::of(why, &format!("failed to get {name} object metric")))?;
        let Proposal { replicas, usage, .. } = self.calculator.by_share(self.running, share, usage);
        let current = json!({"averageValue": shown(usage)});
        let no_object = json!({"kind": "", "name": ""});
        let status = json!({"describedObject": no_object, "metric": metric, "current": current});
        let status = json!({"type": "Object", "object": status});
        Ok(MetricResult { replicas, name: external_name(metric), status })
    }

    /// `computeStatusForExternalMetric`
    async fn of_external(&self, source: &Value) -> Result<MetricResult, MetricFailure> {
        let (name, target, metric) = (text(source, "metric.name"), &source["target"], &source["metric"]);
        let selector = metric_selector(source)?;
        let measure = || async {
            let usage = self.metrics.external(name, &selector).await;
            let (namespace, selector) = (self.metrics.namespace, printed(at(source, "metric.selector")));
            usage.map_err(|why| format!("unable to get external metric {namespace}/{name}/{selector}: {why}"))
        };
        let (proposal, field) = if let Some(share) = quantity(&target["averageValue"]) {
            let usage = measure().await;
            let usage = usage
                .map_err(|why| MetricFailure::of(why, &format!("failed to get {name} external metric")))?;
            (self.calculator.by_share(self.running, share, usage), "averageValue")
        } else if let Some(total) = quantity(&target["value"]) {
            let total = |usage| self.calculator.by_total(self.wanted, total, usage);
            let usage = measure().await.and_then(|usage| total(usage).map_err(|why| why.to_string()));
            let proposal = usage
                .map_err(|why| MetricFailure::of(why, &format!("failed to get external metric {name}")))?;
            (proposal, "value")
        } else {
            return Err(NO_EXTERNAL_TARGET.to_owned().into());
        };
        let current = json!({field: shown(proposal.usage)});
        let status = json!({"type": "External", "external": {"metric": metric, "current": current}});
        Ok(MetricResult { replicas: proposal.replicas, name: external_name(metric), status })
    }
}

const NO_RESOURCE_TARGET: &str = "invalid resource metric source: neither an average utilization target nor an \
     average value (usage) target was set";
const NO_OBJECT_TARGET: &str =
    "invalid object metric source: neither a value target nor an average value target was set";
const NO_EXTERNAL_TARGET: &str =
    "invalid external metric source: neither a value target nor an average value target was set";

fn external_name(metric: &Value) -> String {
    format!("external metric {}({})", text(metric, "name"), printed(&metric["selector"]))
}

/// A selector as Go prints it.
fn printed(selector: &Value) -> String {
    let Ok(selector) = serde_json::from_value::<LabelSelector>(selector.clone()) else { return "nil".into() };
    let labels: String =
        selector.match_labels.iter().map(|(name, value)| format!("{name}: {value},")).collect();
    let expressions = selector.match_expressions.iter();
    let expressions: String = expressions
        .map(|one| {
            let values = one.values.join(" ");
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
                one.key, one.operator
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// The selector of a metric; without one nothing is said.
fn metric_selector(source: &Value) -> Result<Selector, String> {
    match at(source, "metric.selector") {
        Value::Null => Ok(Selector::everything()),
        selector => {
            let selector: LabelSelector =
                serde_json::from_value(selector.clone()).map_err(|why| why.to_string())?;
            Ok(selector.selector()?)
        }
    }
}

/// A quantity in thousandths, when there is one.
fn quantity(value: &Value) -> Option<i64> {
    Quantity::parse(value.as_str()?).ok().map(|quantity| quantity.milli_value())
}

fn shown(milli: i64) -> String {
    Quantity::new_milli(milli, Format::DecimalSi).to_string()
}
