//! Metrics in Prometheus' text format (`prometheus/common/expfmt`), as kwok's server answers them.

use std::fmt::Write;
use std::sync::Arc;

use super::expression::{MeasureHost, MeasureSubject};
use super::metric::{FamilySamples, MeasuredNode, MetricDimension, MetricFamily, ReadBucket, ReadMetric};
use super::variables;
use crate::error::StageError;
use cel::Value;
use component_base::metrics::escaped_label;
use golang::go_text::printed_float;

/// All families of a Metric for a node, by name. One that an expression of fails is left out, and why is
/// logged.
pub(super) fn text(metric: &ReadMetric, node: &MeasuredNode, host: &Arc<MeasureHost>) -> String {
    let subjects = MeasureSubjects::of(node);
    let mut families: Vec<&MetricFamily> = metric.families.iter().collect();
    families.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = String::new();
    let mut last = "";
    for family in families {
        match samples(family, subjects.of_dimension(family.dimension), host) {
            Ok(samples) if samples.is_empty() => {}
            Ok(samples) => {
                // Two of one name are one family with the samples of both.
                if last != family.name {
                    heading(&mut out, family);
                    last = &family.name;
                }
                out.extend(samples);
            }
            Err(why) => tracing::warn!(metric = family.name, %why, "a family of a Metric is left out"),
        }
    }
    out
}

/// What there may be a sample for.
struct MeasureSubjects {
    node: [MeasureSubject; 1],
    pods: Vec<MeasureSubject>,
    containers: Vec<MeasureSubject>,
}

impl MeasureSubjects {
    fn of(measured: &MeasuredNode) -> MeasureSubjects {
        let node = variables::object(&measured.node);
        let mut pods = Vec::new();
        let mut containers = Vec::new();
        for pod in &measured.pods {
            let of_pod = MeasureSubject {
                node: node.clone(),
                pod: variables::object(pod),
                ..MeasureSubject::default()
            };
            for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                containers.push(MeasureSubject { container: variables::object(container), ..of_pod.clone() });
            }
            pods.push(of_pod);
        }
        MeasureSubjects { node: [MeasureSubject { node, ..MeasureSubject::default() }], pods, containers }
    }

    fn of_dimension(&self, dimension: MetricDimension) -> &[MeasureSubject] {
        match dimension {
            MetricDimension::Node => &self.node,
            MetricDimension::Pod => &self.pods,
            MetricDimension::Container => &self.containers,
        }
    }
}

fn heading(out: &mut String, family: &MetricFamily) {
    let kind = match family.samples {
        FamilySamples::One(kind, _) => kind,
        FamilySamples::Histogram(_) => "histogram",
    };
    let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing into a text cannot fail.
    let _ = writeln!(out, "# HELP {} {help}\n# TYPE {} {kind}", family.name, family.name);
}

/// The lines of each subject, by labels; of several with the same labels the last counts.
fn samples(
    family: &MetricFamily,
    subjects: &[MeasureSubject],
    host: &Arc<MeasureHost>,
) -> Result<Vec<String>, StageError> {
    let mut samples = std::collections::BTreeMap::new();
    for subject in subjects {
        let mut labels = Vec::new();
        for (name, value) in &family.labels {
            let value = match value.value(subject, host)? {
                Value::String(text) => text,
                other => return Err(format!("labels[{name}]: a {} is no string", other.type_name()).into()),
            };
            labels.push(format!("{name}=\"{}\"", escaped_label(&value)));
        }
        let labels = labels.join(",");
        let lines = match &family.samples {
            FamilySamples::One(_, value) => {
                let value = printed_float(value.number(subject, host)?);
                format!("{}{} {value}\n", family.name, braced(&labels))
            }
            FamilySamples::Histogram(buckets) => histogram(&family.name, &labels, buckets, subject, host)?,
        };
        samples.insert(labels, lines);
    }
    Ok(samples.into_values().collect())
}

/// A bucket that is hidden counts in the next one that is not.
fn histogram(
    name: &str,
    labels: &str,
    buckets: &[ReadBucket],
    subject: &MeasureSubject,
    host: &Arc<MeasureHost>,
) -> Result<String, StageError> {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut out = String::new();
    let mut count: u64 = 0;
    let mut sum = 0.0;
    for bucket in buckets {
        let observed = bucket.count.number(subject, host)?.max(0.0) as u64;
        count = count.saturating_add(observed);
        sum += bucket.le * observed as f64;
        if !bucket.is_hidden {
            let bound = printed_float(bucket.le);
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
        }
    }
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
    let labels = braced(labels);
    let _ = writeln!(out, "{name}_sum{labels} {}\n{name}_count{labels} {count}", printed_float(sum));
    Ok(out)
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}
