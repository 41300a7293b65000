//! `custom.metrics.k8s.io`: what annotations of objects say, `metrics.kubarium.dev/NAME: NUMBER`
//! (`custom-metrics-apiserver`). The number is any curve of [`usage`] since the object was created.

use std::sync::Arc;

use serde_json::{Value, json};

use super::MetricsServer;
use super::answer::{json_answer, list, resource_list};
use super::request::MetricsRequest;
use apimachinery::object::Object;
use apimachinery::quantity::{Format, Quantity};
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apimachinery::wire::ApiResponse;
use apis::core::namespace::NAMESPACES;
use apis::kind::Kind;
use usage::{Against, Curve, CurveError};

const GROUP: &str = "custom.metrics.k8s.io";
/// What stands before the name of a metric.
const ANNOTATION: &str = "metrics.kubarium.dev/";

/// Of which objects which metric is asked for.
struct AskedMetric<'a> {
    namespace: &'a str,
    kind: Arc<Kind>,
    /// `*` for those that a selector chooses.
    name: &'a str,
    metric: &'a str,
}

impl MetricsServer {
    pub(super) async fn custom_metrics(&self, request: &MetricsRequest) -> Result<ApiResponse, Status> {
        let version = request.version();
        if !matches!(version, "v1beta1" | "v1beta2") {
            return Err(Status::path_not_found());
        }
        let group_version = format!("{GROUP}/{version}");
        let path = request.path();
        if path.is_empty() {
            return Ok(json_answer(&resource_list(&group_version, json!([]))));
        }
        request.must_read(path.last().copied().unwrap_or_default())?;
        let asked = self.asked(&path)?;
        let objects = self.objects(request, &asked).await?;
        let now = self.clock.now();
        let mut items = Vec::new();
        for object in &objects {
            if let Some(value) = annotated(&asked, object, now)? {
                items.push(item(version, &asked, object, value, now));
            }
        }
        if items.is_empty() && asked.name != "*" {
            let AskedMetric { metric, kind, name, .. } = asked;
            let resource = kind.group_resource();
            let why = format!("the server could not find the metric {metric} for {resource} {name}");
            return Err(Status::failure(404, "NotFound", why));
        }
        Ok(json_answer(&list("MetricValueList", &group_version, items)))
    }

    fn asked<'a>(&self, path: &[&'a str]) -> Result<AskedMetric<'a>, Status> {
        let (namespace, resource, name, metric) = match *path {
            // Of the Namespace itself.
            ["namespaces", namespace, "metrics", metric] => ("", "namespaces", namespace, metric),
            ["namespaces", namespace, resource, name, metric] => (namespace, resource, name, metric),
            [resource, name, metric] => ("", resource, name, metric),
            _ => return Err(Status::path_not_found()),
        };
        if resource == "namespaces" {
            return Ok(AskedMetric { namespace, kind: Arc::clone(&NAMESPACES), name, metric });
        }
        let is_it = |kind: &Arc<Kind>| kind.group_resource().to_string() == resource;
        let kind = self.scheme.all().into_iter().find(is_it);
        let kind = kind.ok_or_else(Status::path_not_found)?;
        Ok(AskedMetric { namespace, kind, name, metric })
    }

    async fn objects(
        &self,
        request: &MetricsRequest,
        asked: &AskedMetric<'_>,
    ) -> Result<Vec<Arc<Object>>, Status> {
        if asked.name != "*" {
            return Ok(vec![self.client.get(&asked.kind, asked.namespace, asked.name).await?]);
        }
        let options = request.list_options()?;
        let list = self.client.list(&asked.kind, asked.namespace, &options).await?;
        Ok(list.items.iter().cloned().collect())
    }
}

/// What an object says of a metric; 400 when nobody can read it.
fn annotated(asked: &AskedMetric<'_>, object: &Object, now: Time) -> Result<Option<i64>, Status> {
    let tree = object.to_value();
    let annotation = format!("{ANNOTATION}{}", asked.metric);
    let Some(text) = tree["metadata"]["annotations"][&annotation].as_str() else { return Ok(None) };
    let what = format!("{} {}", asked.kind.group_resource(), object.metadata.name);
    milli_at(text, object, now).map(Some).map_err(|why| {
        Status::bad_request(format!("the annotation {annotation} of {what} cannot be read: {why}"))
    })
}

/// The number of a curve that began with an object, in thousandths.
pub(super) fn milli_at(text: &str, object: &Object, now: Time) -> Result<i64, CurveError> {
    let curve = Curve::parse(text)?;
    let began = object.metadata.creation_timestamp.unwrap_or(now);
    let seconds = (now - began).as_seconds_f64();
    let against = Against { began: began.timestamp() as f64, ..Against::default() };
    Ok((curve.value(seconds, &against) * 1000.0).round() as i64)
}

pub(super) fn shown(milli: i64) -> String {
    Quantity::new_milli(milli, Format::DecimalSi).to_string()
}

fn item(version: &str, asked: &AskedMetric<'_>, object: &Object, value: i64, now: Time) -> Value {
    let mut described = json!({"kind": &*asked.kind.kind, "name": object.metadata.name, "apiVersion": asked.kind.api_version()});
    if !object.metadata.namespace.is_empty() {
        described["namespace"] = object.metadata.namespace.as_str().into();
    }
    let mut item = json!({"describedObject": described, "timestamp": rfc3339(now), "value": shown(value)});
    match version {
        "v1beta1" => item["metricName"] = asked.metric.into(),
        _ => item["metric"] = json!({"name": asked.metric}),
    }
    item
}
