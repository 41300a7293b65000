//! Asks a handle of a running cluster (`/kubarium/v1/...`), as its kubeconfig says.

use clap::Args;
use http::Method;
use serde_json::Value;

use super::connection::Context;
use super::{Failure, choice};

/// Which cluster is meant.
#[derive(Args)]
pub struct Which {
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
}

impl Which {
    /// What the handle answers; the path is that below `/kubarium/v1`.
    pub fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
        let record = choice::running(self.name.as_deref())?;
        let context = Context::load(&record.kubeconfig, &record.name)?;
        let body = if body.is_null() { vec![] } else { body.to_string().into_bytes() };
        let answer = super::block_on(context.ask(method, &format!("{}{path}", handles::ROOT), body))?;
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))
    }
}
