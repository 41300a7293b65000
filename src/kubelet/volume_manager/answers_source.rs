//! The ConfigMap that says of a pod what its annotations do not, as one of the pod's sources.

use std::collections::BTreeMap;

use super::sources::{Found, Source, Sources};
use crate::container_runtime::declared;
use apis::views::pod_answers::{ANSWERS_FROM, AnswersFrom};

/// A ConfigMap whose keys are said beside a pod's own annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswersSource {
    pub(crate) source: Source,
    pub(crate) is_optional: bool,
}

impl AnswersSource {
    /// The one that annotations name.
    pub(crate) fn of(annotations: &BTreeMap<String, String>) -> Option<AnswersSource> {
        let AnswersFrom { name, is_optional } = AnswersFrom::of(annotations)?;
        Some(AnswersSource { source: Source::ConfigMap(name.to_owned()), is_optional })
    }
}

/// What people are told who wait for it.
pub(crate) fn missing(why: &str) -> String {
    format!("annotation {ANSWERS_FROM} names a ConfigMap that is not had: {why}")
}

/// What is wrong with the ConfigMap that annotations name, each in a sentence.
pub(crate) fn problems(annotations: &BTreeMap<String, String>, sources: &Sources) -> Vec<String> {
    let Some(AnswersFrom { name, is_optional }) = AnswersFrom::of(annotations) else { return vec![] };
    match sources.get(&Source::ConfigMap(name.to_owned())) {
        Some(Found::Object(map)) => declared::unknown_keys(name, map.keys()),
        Some(Found::Missing(why)) if !is_optional => vec![missing(why)],
        _ => vec![],
    }
}
