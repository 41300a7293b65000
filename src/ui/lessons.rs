//! The course: lessons as data (`manifests/lessons`), for the page and for `kubarium learn`.

use std::sync::LazyLock;

use apimachinery::yaml;
use serde::{Deserialize, Serialize};

/// One lesson.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// Its file, without the ending.
    #[serde(default)]
    pub name: String,
    /// As in a list.
    pub title: String,
    /// What it is about, in a line.
    pub about: String,
    /// From the first to the last.
    pub steps: Vec<LessonStep>,
}

/// A text with a command and what is to be seen of it, or a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LessonStep {
    /// What is told.
    pub text: String,
    /// A line for a shell that has kubectl.
    pub run: String,
    /// Parts of `component: words` of steps of the causal record, in the order in which they come.
    pub see: Vec<String>,
    /// What is asked.
    pub question: String,
    /// What may be answered.
    pub answers: Vec<String>,
    /// The answer that is right.
    pub right: String,
    /// Why that is so.
    pub because: String,
}

macro_rules! lessons {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../manifests/lessons/", $name, ".yaml")))),*];
    };
}

lessons! {
    "deployment",
    "kubectl",
    "request",
    "credentials",
    "rbac",
    "admission",
    "webhooks",
    "initializers",
    "storage",
    "watch",
    "informers",
    "scheduling",
    "kubelet",
    "versions",
    "apply",
    "optimistic-concurrency",
    "garbage-collection",
    "rolling-update",
    "pending",
    "probes",
    "node-failure",
    "finalizers",
    "controller",
}

static LESSONS: LazyLock<Vec<Lesson>> = LazyLock::new(|| {
    let parsed = FILES.iter().map(|(name, text)| {
        let lesson: Lesson = yaml::from_str(text).expect("a lesson of ours is YAML of this form");
        Lesson { name: (*name).to_owned(), ..lesson }
    });
    parsed.collect()
});

/// All lessons, in the order in which they are best taken.
pub fn lessons() -> &'static [Lesson] {
    &LESSONS
}

/// All lessons as the page reads them.
pub(crate) fn as_json() -> String {
    serde_json::to_string(lessons()).unwrap_or_default()
}

impl LessonStep {
    /// How many of what is to be seen has been seen, in order, among these lines of `component: words`.
    pub fn seen<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> usize {
        let mut seen = 0;
        for line in lines {
            if self.see.get(seen).is_some_and(|wanted| line.contains(wanted.as_str())) {
                seen += 1;
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lesson_of_the_folder_is_taken_and_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/lessons");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), FILES.len());
        for Lesson { name, title, about, steps } in lessons() {
            assert!(!title.is_empty() && !about.is_empty() && steps.len() > 2, "{name}");
            for step in steps {
                let is_question = !step.question.is_empty();
                assert_ne!(is_question, !step.text.is_empty(), "{name}: {step:?}");
                assert_eq!(is_question, step.answers.contains(&step.right), "{name}: {step:?}");
                assert_eq!(is_question, !step.because.is_empty(), "{name}: {step:?}");
            }
        }
    }

    #[test]
    fn what_is_seen_counts_in_order() {
        let step = LessonStep { see: vec!["created a".into(), "deleted a".into()], ..LessonStep::default() };
        assert_eq!(step.seen(["x: deleted a", "x: created a at 1"]), 1);
        assert_eq!(step.seen(["x: created a at 1", "y: z", "x: deleted a at 2"]), 2);
    }
}
