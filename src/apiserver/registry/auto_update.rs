//! Objects that every server has are kept as they are to be, where that is not left to the administrator
//! (`registry/flowcontrol/ensurer`): what is gone is made again, what was changed is changed back, what
//! servers do not have any more goes.

use std::sync::Arc;

use serde_json::Value;

use super::Registry;
use super::store::Part;
use crate::request::RequestContext;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::kind::Kind;

/// Says whether the server keeps an object's spec.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

impl Registry {
    /// Looks after all of them; the mandatory ones are never left to anybody.
    ///
    /// # Errors
    /// The store's.
    pub async fn ensure(&self, kind: &Arc<Kind>, mandatory: &[&str]) -> Result<(), Status> {
        let Some(set) = kind.bootstrap else { return Ok(()) };
        self.restore(kind).await?;
        let mut objects = (set.objects)();
        objects.retain(|object| Arc::ptr_eq(object.kind, kind));
        for object in &mut objects {
            let is_mandatory = mandatory.contains(&object.name());
            self.prepare_own(kind, set.manager, &mut object.object);
            self.keep(kind, set.manager, &object.object, is_mandatory).await?;
        }
        for found in self.list(kind, "", &ListOptions::default()).await?.items.iter() {
            let name = &found.metadata.name;
            let is_ours = objects.iter().any(|object| object.name() == name);
            if !is_ours && is_auto_updated(&found.to_value()) == Some(true) {
                let options = DeleteOptions::default();
                let deleted = self.delete(&self.from_the_start(), kind, "", name, &options, &()).await;
                deleted.map(drop).or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })?;
            }
        }
        Ok(())
    }

    async fn keep(
        &self,
        kind: &Arc<Kind>,
        manager: &str,
        wanted: &Value,
        is_mandatory: bool,
    ) -> Result<(), Status> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let Ok(current) = self.get(kind, "", name, None).await else { return Ok(()) };
        let current = current.to_value();
        let said = is_auto_updated(&current);
        let is_kept = is_mandatory || said.unwrap_or(current["metadata"]["generation"] == 1);
        let spec = spec_of(wanted, &current);
        if said == Some(is_kept) && (!is_kept || spec == current["spec"]) {
            return Ok(());
        }
        let change = |current: Option<&Value>| -> Result<Value, Status> {
            let before = current.cloned().unwrap_or_default();
            let mut new = before.clone();
            new["metadata"]["annotations"][AUTO_UPDATE] = is_kept.to_string().into();
            if is_kept {
                new["spec"] = spec.clone();
            }
            self.own(kind, manager, Some(&before), &mut new);
            Ok(new)
        };
        let ctx = RequestContext::default();
        self.update(&ctx, kind, "", name, Part::Main, &change, &(), false).await.map(drop)
    }
}

/// What its annotation says (`strconv.ParseBool`).
fn is_auto_updated(object: &Value) -> Option<bool> {
    match object["metadata"]["annotations"][AUTO_UPDATE].as_str()? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// What it is to be; the seats of who is exempt are the administrator's.
fn spec_of(wanted: &Value, current: &Value) -> Value {
    let mut spec = wanted["spec"].clone();
    let seats = ["nominalConcurrencyShares", "lendablePercent"];
    if let Some(exempt) = spec.get_mut("exempt").and_then(Value::as_object_mut) {
        for field in seats {
            let kept = current["spec"]["exempt"][field].clone();
            exempt.extend((!kept.is_null()).then(|| (field.to_owned(), kept)));
        }
    }
    spec
}
