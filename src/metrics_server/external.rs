//! `external.metrics.k8s.io`: what is measured of nothing in the cluster. A ConfigMap with a label
//! `kubarium.dev/external-metric: NAME` is one value of that metric in its namespace: `data.value` is any
//! curve of [`usage`], its other labels are those of the value.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::MetricsServer;
use super::answer::{json_answer, list, resource_list};
use super::custom::{milli_at, shown};
use super::request::MetricsRequest;
use apimachinery::labels::{Operator, Requirement};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apimachinery::wire::ApiResponse;
use apis::core::config_map::CONFIG_MAPS;

const API_VERSION: &str = "external.metrics.k8s.io/v1beta1";
/// Names the metric.
const LABEL: &str = "kubarium.dev/external-metric";

impl MetricsServer {
    pub(super) async fn external_metrics(&self, request: &MetricsRequest) -> Result<ApiResponse, Status> {
        if request.version() != "v1beta1" {
            return Err(Status::path_not_found());
        }
        match request.path()[..] {
            [] => Ok(json_answer(&resource_list(API_VERSION, json!([])))),
            ["namespaces", namespace, metric] => self.external_metric(request, namespace, metric).await,
            _ => Err(Status::path_not_found()),
        }
    }

    async fn external_metric(
        &self,
        request: &MetricsRequest,
        namespace: &str,
        metric: &str,
    ) -> Result<ApiResponse, Status> {
        request.must_read(metric)?;
        let mut options = request.list_options()?;
        let named = Requirement::new(LABEL, Operator::In, vec![metric.to_owned()]);
        // What cannot be the value of a label names no metric.
        let Ok(named) = named else { return Ok(json_answer(&list(LIST, API_VERSION, vec![]))) };
        options.predicate.labels.requirements.push(named);
        options.predicate.labels.requirements.sort();
        let now = self.clock.now();
        let found = self.client.list(&CONFIG_MAPS, namespace, &options).await?;
        let items: Result<Vec<Value>, Status> =
            found.items.iter().map(|object| item(metric, object, now)).collect();
        Ok(json_answer(&list(LIST, API_VERSION, items?)))
    }
}

const LIST: &str = "ExternalMetricValueList";

fn item(metric: &str, object: &Object, now: Time) -> Result<Value, Status> {
    let tree = object.to_value();
    let text = tree["data"]["value"].as_str().unwrap_or_default();
    let value = milli_at(text, object, now).map_err(|why| {
        let name = &object.metadata.name;
        Status::bad_request(format!("data.value of configmaps {name} cannot be read: {why}"))
    })?;
    let labels: BTreeMap<&String, &String> =
        object.metadata.labels.iter().filter(|(name, _)| *name != LABEL).collect();
    Ok(
        json!({"metricName": metric, "metricLabels": labels, "timestamp": rfc3339(now), "value": shown(value)}),
    )
}
