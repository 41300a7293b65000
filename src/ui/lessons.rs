//! The course: lessons as data (`manifests/lessons`), for the page and for `kubarium learn`.

use std::sync::LazyLock;

use apimachinery::yaml;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// What it is shown on, where another object of the kind will do as well: commands and what is to be seen
    /// have `{name}`, `{namespace}` and `{container}` in place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<LessonObject>,
    /// From the first to the last.
    pub steps: Vec<LessonStep>,
}

/// What a lesson is shown on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LessonObject {
    /// As `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// The first container of its pods.
    pub container: String,
}

/// A text with a command and what is to be seen of it, or a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LessonStep {
    /// What is told.
    pub text: String,
    /// A line for a shell that has kubectl.
    pub run: String,
    /// Whether that makes the object that the lesson is shown on: of another one its manifest is applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub applies: bool,
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

impl Lesson {
    /// As it is shown on an object; one that is shown on nothing else stays as it is.
    pub fn shown_on(&self, object: &LessonObject) -> Lesson {
        let mut lesson = self.clone();
        if lesson.own.is_some() {
            for step in &mut lesson.steps {
                step.run = object.named_in(&step.run);
                step.see = step.see.iter().map(|see| object.named_in(see)).collect();
            }
        }
        lesson
    }
}

impl LessonObject {
    /// The first of the kind in a manifest; none where there is none that has a name and a container.
    pub fn in_manifest(&self, text: &str) -> Option<LessonObject> {
        let documents = text.split("\n---").filter_map(|part| {
            let part = part.trim_start_matches("---");
            yaml::from_str::<Value>(part).ok()
        });
        documents.filter(|one| one["kind"] == self.kind.as_str()).find_map(|one| {
            let named = |path: &str| Some(one.pointer(path)?.as_str()?.to_owned());
            Some(LessonObject {
                kind: self.kind.clone(),
                name: named("/metadata/name")?,
                namespace: named("/metadata/namespace").unwrap_or_else(|| "default".to_owned()),
                container: named("/spec/template/spec/containers/0/name")?,
            })
        })
    }

    fn named_in(&self, text: &str) -> String {
        let named = text.replace("{namespace}", &self.namespace).replace("{name}", &self.name);
        named.replace("{container}", &self.container)
    }
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
        for Lesson { name, title, about, steps, .. } in lessons() {
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
    fn a_lesson_is_shown_on_somebody_elses_object() {
        let lesson = lessons().iter().find(|one| one.name == "deployment").unwrap();
        let own = lesson.own.as_ref().unwrap();
        let manifest = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: apps/v1\n\
                        kind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    \
                        spec: {containers: [{name: app, image: a}]}\n";
        let given = own.in_manifest(manifest).unwrap();
        assert_eq!([&*given.name, &*given.namespace, &*given.container], ["web", "shop", "app"]);
        assert_eq!(own.in_manifest("kind: Deployment\nmetadata: {name: a}\n"), None);
        assert_eq!(own.in_manifest("kind: Service\nmetadata: {name: a}\n"), None);
        let shown = lesson.shown_on(&given);
        assert!(shown.steps[0].see.contains(&"kube-apiserver: created deployments.apps shop/web".to_owned()));
        assert!(shown.steps.last().unwrap().run.contains("deployment web --namespace shop"));
        let is_left =
            |text: &String| ["{name}", "{namespace}", "{container}"].iter().any(|at| text.contains(at));
        for one in lessons() {
            let shown = one.own.as_ref().map_or_else(|| one.clone(), |own| one.shown_on(own));
            let texts = shown.steps.iter().flat_map(|step| step.see.iter().chain([&step.run]));
            assert_eq!(texts.filter(|text| is_left(text)).count(), 0, "{}", one.name);
            let applying = one.steps.iter().filter(|step| step.applies).count();
            assert_eq!(applying, usize::from(one.own.is_some()), "{}", one.name);
        }
    }

    #[test]
    fn what_is_seen_counts_in_order() {
        let step = LessonStep { see: vec!["created a".into(), "deleted a".into()], ..LessonStep::default() };
        assert_eq!(step.seen(["x: deleted a", "x: created a at 1"]), 1);
        assert_eq!(step.seen(["x: created a at 1", "y: z", "x: deleted a at 2"]), 2);
    }
}
