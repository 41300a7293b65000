//! Asks the three APIs of metrics (`podautoscaler/metrics.restMetricsClient`), whoever serves them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::metrics_error::MetricsError;
use apimachinery::duration;
use apimachinery::gvk::GroupVersion;
use apimachinery::labels::Selector;
use apimachinery::quantity::Quantity;
use apimachinery::status::Status;
use apimachinery::time::{self, Time};
use apis::scheme::Scheme;
use apis::tree::{items, text};
use client_go::client::Client;

/// Over how long a metric is thought to be measured that does not say it (`metricServerDefaultMetricWindow`).
const DEFAULT_WINDOW: TimeDelta = TimeDelta::minutes(1);
const RESOURCE_METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const CUSTOM_METRICS: &str = "/apis/custom.metrics.k8s.io";
const EXTERNAL_METRICS: &str = "/apis/external.metrics.k8s.io/v1beta1";
/// What stands for something else in a path or a query; `_`, as names of metrics have it, does not, and some
/// servers take it as it was asked for.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// What a server says of a path that it does not have.
const NOT_SERVED: &str = "the server could not find the requested resource";
/// The versions of custom metrics that this client speaks.
const CUSTOM_VERSIONS: &[&str] = &["v1beta2", "v1beta1"];

const NOT_ONE: &str = "the custom metrics API server returned 0 results when we asked for exactly one";

/// What was measured of a pod, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PodMetric {
    pub(super) timestamp: Time,
    pub(super) window: TimeDelta,
    pub(super) value: i64,
}

/// By the names of the pods.
pub(super) type PodMetrics = BTreeMap<String, PodMetric>;

/// Asks for metrics in a namespace.
pub(super) struct MetricsClient<'a> {
    pub(super) client: &'a Client,
    pub(super) scheme: &'a Scheme,
    pub(super) namespace: &'a str,
}

impl MetricsClient<'_> {
    /// `GetResourceMetric`; `container` is empty for the whole pod.
    pub(super) async fn resource(
        &self,
        resource: &str,
        container: &str,
        selector: &Selector,
    ) -> Result<PodMetrics, MetricsError> {
        let namespace = self.namespace;
        let path = format!("{RESOURCE_METRICS}/namespaces/{namespace}/pods{}", label_selector(selector));
        let list = self.ask(&path, "get pods.metrics.k8s.io").await;
        let list = list.map_err(|why| format!("unable to fetch metrics from resource metrics API: {why}"))?;
        let found = items(&list, "items");
        if found.is_empty() {
            return Err("no metrics returned from resource metrics API".into());
        }
        let of_pod = |pod: &Value| {
            let value = usage(items(pod, "containers"), resource, container)?;
            let window = duration::parse(text(pod, "window"));
            let window = window.and_then(|window| TimeDelta::from_std(window).ok()).unwrap_or(DEFAULT_WINDOW);
            let timestamp = time::parse(text(pod, "timestamp"))?;
            Some((text(pod, "metadata.name").to_owned(), PodMetric { timestamp, window, value }))
        };
        Ok(found.iter().filter_map(of_pod).collect())
    }

    /// `GetRawMetric`: of the pods that `selector` chooses.
    pub(super) async fn of_pods(
        &self,
        metric: &str,
        selector: &Selector,
        metric_selector: &Selector,
    ) -> Result<PodMetrics, MetricsError> {
        let path = format!("namespaces/{}/pods/*/{}", self.namespace, escaped(metric));
        let query = custom_query(&[("labelSelector", selector), ("metricLabelSelector", metric_selector)]);
        let list = self.custom(&format!("{path}{query}")).await?;
        let of_pod = |item: &Value| {
            let window = item["windowSeconds"].as_i64().or(item["window"].as_i64());
            let window = window.and_then(TimeDelta::try_seconds).unwrap_or(DEFAULT_WINDOW);
            let timestamp = time::parse(text(item, "timestamp"))?;
            let value = milli(&item["value"])?;
            Some((text(item, "describedObject.name").to_owned(), PodMetric { timestamp, window, value }))
        };
        let found = items(&list, "items");
        if found.is_empty() {
            return Err("no metrics returned from custom metrics API".into());
        }
        Ok(found.iter().filter_map(of_pod).collect())
    }

    /// `GetObjectMetric`: of one object.
    pub(super) async fn of_object(
        &self,
        metric: &str,
        object: &Value,
        metric_selector: &Selector,
    ) -> Result<i64, MetricsError> {
        let query = custom_query(&[("metricLabelSelector", metric_selector)]);
        let place = self.place(object).map_err(failed_custom)?;
        let list = self.custom(&format!("{place}/{}{query}", escaped(metric))).await?;
        let value = items(&list, "items").first().and_then(|item| milli(&item["value"]));
        value.ok_or_else(|| failed_custom(NOT_ONE.into()).into())
    }

    /// `GetExternalMetric`: all values of a metric, together.
    pub(super) async fn external(&self, metric: &str, selector: &Selector) -> Result<i64, MetricsError> {
        let namespace = self.namespace;
        let path = format!(
            "{EXTERNAL_METRICS}/namespaces/{namespace}/{}{}",
            escaped(metric),
            label_selector(selector)
        );
        let list = self.ask(&path, &format!("get {metric}.external.metrics.k8s.io")).await;
        let list = list.map_err(|why| format!("unable to fetch metrics from external metrics API: {why}"))?;
        let found = items(&list, "items");
        if found.is_empty() {
            return Err("no metrics returned from external metrics API".into());
        }
        let values = found.iter().filter_map(|item| milli(&item["value"]));
        Ok(values.fold(0, i64::saturating_add))
    }

    /// Where the custom metrics of an object are.
    fn place(&self, object: &Value) -> Result<String, String> {
        let (kind, name) = (text(object, "kind"), escaped(text(object, "name")));
        let version = GroupVersion::parse(text(object, "apiVersion")).unwrap_or(GroupVersion::new("", ""));
        if kind == "Namespace" && version.group.is_empty() {
            return Ok(format!("namespaces/{name}/metrics"));
        }
        let known = self.scheme.kind(&version, kind);
        let known = known.ok_or_else(|| {
            let group = &version.group;
            format!("unable to map kind {kind}.{group} to resource: no matches for kind {kind:?} in group {group:?}")
        })?;
        let resource = known.group_resource();
        let namespaced =
            if known.namespaced { format!("namespaces/{}/", self.namespace) } else { String::new() };
        Ok(format!("{namespaced}{resource}/{name}"))
    }

    async fn custom(&self, path: &str) -> Result<Value, String> {
        let group = match self.client.get_path(CUSTOM_METRICS).await {
            Ok(group) => group,
            Err(status) if status.is_not_found() => {
                return Err(failed_custom("no custom metrics API (custom.metrics.k8s.io) registered".into()));
            }
            Err(status) => return Err(failed_custom(status.to_string())),
        };
        let preferred = text(&group, "preferredVersion.version");
        let version = CUSTOM_VERSIONS.iter().find(|own| **own == preferred).unwrap_or(&CUSTOM_VERSIONS[1]);
        let asked = "get *.custom.metrics.k8s.io";
        self.ask(&format!("{CUSTOM_METRICS}/{version}/{path}"), asked).await.map_err(failed_custom)
    }

    /// What a server answers, or what it says against it in the words of client-go.
    async fn ask(&self, path: &str, request: &str) -> Result<Value, String> {
        let said = |status: Status| {
            if status.message == NOT_SERVED { format!("{NOT_SERVED} ({request})") } else { status.message }
        };
        self.client.get_path(path).await.map_err(said)
    }
}

fn failed_custom(why: String) -> String {
    format!("unable to fetch metrics from custom metrics API: {why}")
}

/// `getContainerMetrics` and `getPodMetrics`: a pod of which anything is missing says nothing.
fn usage(containers: &[Value], resource: &str, container: &str) -> Option<i64> {
    let of = |one: &Value| milli(&one["usage"][resource]);
    if !container.is_empty() {
        return of(containers.iter().find(|one| text(one, "name") == container)?);
    }
    let all: Option<Vec<i64>> = containers.iter().map(of).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.into_iter().fold(0, i64::saturating_add))
}

/// A quantity in thousandths.
fn milli(quantity: &Value) -> Option<i64> {
    let parsed = match quantity {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => return None,
    };
    parsed.ok().map(|quantity| quantity.milli_value())
}

fn label_selector(selector: &Selector) -> String {
    custom_query(&[("labelSelector", selector)])
}

/// Without what selects everything.
fn custom_query(selectors: &[(&str, &Selector)]) -> String {
    let said = selectors.iter().map(|(name, selector)| (name, selector.to_string()));
    let said = said.filter(|(_, text)| !text.is_empty());
    let said: Vec<String> = said.map(|(name, text)| format!("{name}={}", escaped(&text))).collect();
    if said.is_empty() { String::new() } else { format!("?{}", said.join("&")) }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
