//! One operation on a path, as both versions of OpenAPI publish it.

use super::parameters::{PRETTY, Parameter};

/// What objects and discovery are read and written in; custom ones in the first two.
const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// One path and its operations.
#[derive(Debug)]
pub(super) struct PathItem {
    pub(super) path: String,
    /// What its placeholders mean.
    pub(super) placeholders: Vec<(&'static str, String)>,
    pub(super) operations: Vec<PathOperation>,
}

/// One operation of a path.
#[derive(Debug, Default)]
pub(super) struct PathOperation {
    /// The HTTP method, lower case.
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    /// `x-kubernetes-action`; empty for discovery.
    pub(super) action: &'static str,
    /// Group, version and kind; None for discovery.
    pub(super) kind: Option<[String; 3]>,
    pub(super) parameters: &'static [Parameter],
    /// It takes `pretty`, too.
    pub(super) is_pretty: bool,
    pub(super) body: Option<Body>,
    /// The definition of the answer; empty for plain text.
    pub(super) answer: String,
    /// Of a path beside those of groups that answers in one form only.
    pub(super) media_type: &'static str,
    /// The codes that it may come with, besides 401.
    pub(super) codes: &'static [&'static str],
    /// Of a custom resource: what a definition publishes is described a little differently.
    pub(super) is_custom: bool,
}

impl PathItem {
    /// The parameters that every operation of the path takes, which are said once for all of them.
    pub(super) fn common(&self) -> Vec<&'static Parameter> {
        let Some((first, others)) = self.operations.split_first() else { return vec![] };
        let takes = |operation: &PathOperation, name: &str| operation.all().any(|own| own.name == name);
        first.all().filter(|own| others.iter().all(|other| takes(other, own.name))).collect()
    }

    /// The others, of one operation.
    pub(super) fn own(&self, operation: &PathOperation) -> Vec<&'static Parameter> {
        let common = self.common();
        operation.all().filter(|own| common.iter().all(|other| own.name != other.name)).collect()
    }
}

impl PathOperation {
    fn all(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().chain(self.is_pretty.then_some(&PRETTY))
    }

    /// The media types of its answers.
    pub(super) fn produces(&self) -> Vec<&'static str> {
        match self.action {
            _ if self.is_custom => MEDIA_TYPES[..2].to_vec(),
            "connect" => vec!["*/*"],
            "get" if self.answer.is_empty() => ["text/plain"].into_iter().chain(MEDIA_TYPES).collect(),
            "list" | "watch" | "watchlist" => MEDIA_TYPES.into_iter().chain(STREAMS).collect(),
            "" if !self.media_type.is_empty() => vec![self.media_type],
            _ => MEDIA_TYPES.to_vec(),
        }
    }

    /// The media types of what it is sent.
    pub(super) fn consumes(&self) -> Vec<&'static str> {
        match (&self.body, self.action) {
            (Some(Body::Patch { strategic }), _) => patch_media_types(*strategic),
            _ if self.is_custom => MEDIA_TYPES[..2].to_vec(),
            (_, "") if !self.media_type.is_empty() => vec![self.media_type],
            (_, "") => MEDIA_TYPES.to_vec(),
            _ => vec!["*/*"],
        }
    }
}

/// The media types of patches, as a PATCH takes them.
fn patch_media_types(strategic: bool) -> Vec<&'static str> {
    let mut types = vec!["application/json-patch+json", "application/merge-patch+json"];
    if strategic {
        types.push("application/strategic-merge-patch+json");
    }
    types.push("application/apply-patch+yaml");
    types
}

/// What an operation is sent.
#[derive(Debug)]
pub(super) enum Body {
    /// An object of this definition.
    Object(String),
    /// The options of a delete, which may be left out.
    DeleteOptions,
    /// A patch; a strategic merge patch only of a built-in kind.
    Patch { strategic: bool },
}
