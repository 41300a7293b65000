//! The objects that a server makes of itself: priority and fairness, the default range of services
//! (upstream's post-start hooks). They are made when somebody first asks for their kind, so that start-up
//! does not pay for what nobody looks at; nobody can tell the difference but by their age.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::store::Part;
use super::{Change, Registry};
use crate::apimachinery::status::Status;
use crate::apimachinery::time::rfc3339;
use crate::apis::kind::Kind;
use crate::apiserver::request::RequestContext;

/// Of which kinds the objects have been made. Bound: one entry for each built-in kind.
#[derive(Default)]
pub(super) struct Bootstrapped(Mutex<BTreeMap<Arc<str>, Arc<OnceCell<()>>>>);

/// By which the server's own writes can be told.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

impl Registry {
    /// Makes the objects of a kind that every server has, once; those that are there stay as they are.
    ///
    /// # Errors
    /// The store's.
    pub async fn bootstrap(&self, kind: &Arc<Kind>) -> Result<(), Status> {
        let Some(text) = kind.bootstrap else { return Ok(()) };
        let cell = {
            let mut cells = self.0.bootstrapped.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            cells.entry(kind.plural.clone()).or_default().clone()
        };
        cell.get_or_try_init(|| self.create_all(kind, text)).await.copied()
    }

    /// Makes those again that somebody took away.
    ///
    /// # Errors
    /// The store's.
    pub async fn restore(&self, kind: &Arc<Kind>) -> Result<(), Status> {
        match kind.bootstrap {
            Some(text) => self.create_all(kind, text).await,
            None => Ok(()),
        }
    }

    async fn create_all(&self, kind: &Arc<Kind>, text: &str) -> Result<(), Status> {
        let objects: Vec<Value> = serde_yaml::from_str(text).map_err(Status::internal)?;
        for mut object in objects {
            if kind.group_version.group.starts_with("flowcontrol") {
                object["metadata"]["annotations"] = json!({AUTO_UPDATE: "true"});
            }
            match self.create_own(kind, object).await {
                Err(status) if status.is_already_exists() => {}
                result => result?,
            }
        }
        Ok(())
    }

    async fn create_own(&self, kind: &Arc<Kind>, object: Value) -> Result<(), Status> {
        let ctx = RequestContext::default();
        let created = self.create(&ctx, kind, "", object.clone(), &()).await?;
        let mut status = object["status"].clone();
        if status.is_null() {
            return Ok(());
        }
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = rfc3339(self.0.clock.now()).into();
        }
        let change = move |current: Option<&Value>| -> Result<Value, Status> {
            let mut new = current.cloned().unwrap_or_default();
            new["status"] = status.clone();
            Ok(new)
        };
        let change: &dyn Change = &change;
        let name = &created.metadata.name;
        self.update(&ctx, kind, "", name, Part::Status, change, &(), false).await.map(drop)
    }
}
