//! A Metric as it was read (kwok's `pkg/kwok/metrics/metrics.go`), and the objects that it is about.

use serde_json::Value as Json;

use super::expression::MeasureExpression;
use super::manifest::{MetricBucket, MetricConfig, MetricSpec};
use crate::error::StageError;

/// Where all paths begin.
const ROOT: &str = "/metrics";
/// What stands for a node's name in a path.
const NODE_NAME: &str = "{nodeName}";
/// More families of one Metric are refused, as are more labels or buckets of one family.
const MAX_FAMILIES: usize = 1024;

/// What a kubelet knows of its node, for a Metric.
pub struct MeasuredNode {
    /// The Node, whole.
    pub node: Json,
    /// Its Pods, whole, by namespace and name.
    pub pods: Vec<Json>,
}

/// A Metric as it was read.
#[derive(Debug)]
pub(super) struct ReadMetric {
    name: String,
    /// What is before the name of the node in its path and what behind; without a name all is before.
    path: (String, Option<String>),
    pub(super) families: Vec<MetricFamily>,
}

/// One of its families.
#[derive(Debug)]
pub(super) struct MetricFamily {
    pub(super) name: String,
    pub(super) help: String,
    pub(super) dimension: MetricDimension,
    pub(super) labels: Vec<(String, MeasureExpression)>,
    pub(super) samples: FamilySamples,
}

/// What there is a sample for each of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricDimension {
    Node,
    Pod,
    Container,
}

/// What the samples are.
#[derive(Debug)]
pub(super) enum FamilySamples {
    /// `counter` or `gauge`
    One(&'static str, MeasureExpression),
    /// By upper bounds, in order.
    Histogram(Vec<ReadBucket>),
}

/// A bucket of a histogram.
#[derive(Debug)]
pub(super) struct ReadBucket {
    pub(super) le: f64,
    pub(super) count: MeasureExpression,
    pub(super) is_hidden: bool,
}

impl ReadMetric {
    /// # Errors
    /// What is wrong with the spec, and where.
    pub(super) fn read(name: &str, spec: &Json) -> Result<ReadMetric, StageError> {
        let spec: MetricSpec =
            serde_json::from_value(spec.clone()).map_err(|why| StageError::from(format!(" {why}")))?;
        let is_below = spec.path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
        if !is_below {
            return Err(format!("path: {:?} must begin with {ROOT}/", spec.path).into());
        }
        let path = match spec.path.split_once(NODE_NAME) {
            Some((before, behind)) => (before.to_owned(), Some(behind.to_owned())),
            None => (spec.path.clone(), None),
        };
        few("metrics", spec.metrics.len())?;
        let family = |(at, config): (usize, &MetricConfig)| {
            MetricFamily::read(config).map_err(|why| why.at(format!("metrics[{at}].")))
        };
        let families = spec.metrics.iter().enumerate().map(family).collect::<Result<_, _>>()?;
        Ok(ReadMetric { name: name.to_owned(), path, families })
    }

    /// Whether it answers at a path for a node: without a variable, for the node that bears its name.
    pub(super) fn answers(&self, node: &str, path: &str) -> bool {
        let (before, behind) = &self.path;
        match behind {
            Some(behind) => {
                let named =
                    path.strip_prefix(before.as_str()).and_then(|rest| rest.strip_suffix(behind.as_str()));
                named == Some(node)
            }
            None => path == before && self.name == node,
        }
    }
}

impl MetricFamily {
    fn read(config: &MetricConfig) -> Result<MetricFamily, StageError> {
        let dimension = match config.dimension.as_str() {
            "" | "node" => MetricDimension::Node,
            "pod" => MetricDimension::Pod,
            "container" => MetricDimension::Container,
            other => return Err(format!("dimension: {other:?} must be node, pod or container").into()),
        };
        if !is_name(&config.name) {
            return Err(format!("name: {:?} is no name of a metric", config.name).into());
        }
        few("labels", config.labels.len())?;
        let mut labels = Vec::new();
        for label in &config.labels {
            let place = format!("labels[{}].", label.name);
            if !is_name(&label.name) || label.name.contains(':') {
                return Err(StageError::from("name: is no name of a label").at(place));
            }
            let value =
                MeasureExpression::parse(&label.value).map_err(|why| why.at(format!("{place}value: ")))?;
            labels.push((label.name.clone(), value));
        }
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        let (name, help) = (config.name.clone(), config.help.clone());
        Ok(MetricFamily { name, help, dimension, labels, samples: samples(config)? })
    }
}

fn samples(config: &MetricConfig) -> Result<FamilySamples, StageError> {
    let value = || MeasureExpression::parse(&config.value).map_err(|why| why.at("value: "));
    match config.kind.as_str() {
        "counter" => Ok(FamilySamples::One("counter", value()?)),
        "gauge" => Ok(FamilySamples::One("gauge", value()?)),
        "histogram" => {
            few("buckets", config.buckets.len())?;
            let mut buckets = config.buckets.iter().map(bucket).collect::<Result<Vec<_>, _>>()?;
            buckets.sort_by(|a, b| a.le.total_cmp(&b.le));
            Ok(FamilySamples::Histogram(buckets))
        }
        other => Err(format!("kind: {other:?} must be counter, gauge or histogram").into()),
    }
}

fn bucket(bucket: &MetricBucket) -> Result<ReadBucket, StageError> {
    let count = MeasureExpression::parse(&bucket.value);
    let count = count.map_err(|why| why.at(format!("buckets[{}].value: ", bucket.le)))?;
    Ok(ReadBucket { le: bucket.le, count, is_hidden: bucket.hidden })
}

fn few(field: &str, count: usize) -> Result<(), StageError> {
    if count > MAX_FAMILIES { Err(format!("{field}: more than {MAX_FAMILIES}").into()) } else { Ok(()) }
}

/// `model.IsValidLegacyMetricName`
fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}
