//! `ClusterHandle`: one thing that can be asked for, described for people and for machines.

use http::Method;
use serde_json::Value;

/// Where all handles are.
pub const ROOT: &str = "/kubarium/v1";

/// One method of one path, and what is said of it.
#[derive(Clone, Debug)]
pub struct ClusterHandle {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) query: Vec<(&'static str, &'static str)>,
    pub(crate) body: Option<Value>,
    pub(crate) answer: Value,
}

impl ClusterHandle {
    /// Reads something. The path is that below [`ROOT`], as `/faults/{name}`.
    pub fn get(path: &'static str, summary: &'static str) -> ClusterHandle {
        ClusterHandle::new(Method::GET, path, summary)
    }

    /// Does something.
    pub fn post(path: &'static str, summary: &'static str) -> ClusterHandle {
        ClusterHandle::new(Method::POST, path, summary)
    }

    /// Takes something away.
    pub fn delete(path: &'static str, summary: &'static str) -> ClusterHandle {
        ClusterHandle::new(Method::DELETE, path, summary)
    }

    fn new(method: Method, path: &'static str, summary: &'static str) -> ClusterHandle {
        let answer = serde_json::json!({"type": "object"});
        ClusterHandle { method, path, summary, query: vec![], body: None, answer }
    }

    /// Takes a parameter in the query.
    pub fn query(mut self, name: &'static str, description: &'static str) -> ClusterHandle {
        self.query.push((name, description));
        self
    }

    /// Takes a body of this schema.
    pub fn body(mut self, schema: Value) -> ClusterHandle {
        self.body = Some(schema);
        self
    }

    /// Answers with what has this schema; else with some object.
    pub fn answers(mut self, schema: Value) -> ClusterHandle {
        self.answer = schema;
        self
    }

    /// The names in braces.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
