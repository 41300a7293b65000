//! A question to a running cluster's handles, by its name.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Failure, block_on, choice, traced};

/// Which cluster a subcommand talks to.
#[derive(clap::Args)]
pub struct WhichCluster {
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long = "name", env = "KUBARIUM_NAME", value_name = "NAME")]
    pub cluster: Option<String>,
}

impl WhichCluster {
    /// What the handle at a path below `/kubarium/v1` answers; no body is null.
    pub fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: &Value) -> Result<T, Failure> {
        let (_, context) = choice::reached(self.cluster.as_deref())?;
        let bytes = if body.is_null() { vec![] } else { body.to_string().into_bytes() };
        let path = format!("{}{path}", handles::ROOT);
        let answer = block_on(context.ask(method, &path, bytes))?;
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))
    }

    /// The namespace that is given, else the one that kubectl would look into.
    pub(crate) fn namespace(&self, given: Option<&str>) -> Result<String, Failure> {
        match given {
            Some(given) => Ok(given.to_owned()),
            None => Ok(traced::namespace(&choice::administered(self.cluster.as_deref())?.0)),
        }
    }
}

/// A text as a part of a path or query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
