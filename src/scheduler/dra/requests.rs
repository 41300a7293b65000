//! What claims ask for.

use std::sync::Arc;

use serde_json::Value;

use apimachinery::object::Object;
use apis::resource::device_taints::tolerates;
use apis::tree::{at, flag, is_set, items, text};

/// A request, or one of the alternatives of a request.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRequest {
    /// As results name it: `request`, or `request/alternative`.
    pub name: String,
    /// The request alone.
    pub base: String,
    /// How many devices; none for all that there are.
    pub count: Option<usize>,
    /// Whether it may share devices with whoever has them.
    pub is_admin: bool,
    /// As it stands.
    pub tree: Value,
    /// The expressions of its class.
    pub class_selectors: Vec<String>,
    /// Its own.
    pub selectors: Vec<String>,
    /// The class.
    pub class: Arc<Object>,
}

/// What cannot be allocated on any node, and why.
#[derive(Debug)]
pub(crate) struct AllocationError(pub String);

/// The requests of a claim, each with its alternatives in the order of preference.
pub(crate) fn of_claim(
    claim: &Value,
    class: &dyn Fn(&str) -> Option<Arc<Object>>,
) -> Result<Vec<Vec<DeviceRequest>>, AllocationError> {
    let mut requests = Vec::new();
    for request in items(claim, "spec.devices.requests") {
        let name = text(request, "name");
        let alternatives = items(request, "firstAvailable");
        if alternatives.is_empty() {
            requests.push(vec![read(at(request, "exactly"), name, None, class)?]);
            continue;
        }
        let all = alternatives.iter().map(|one| read(one, name, Some(text(one, "name")), class));
        requests.push(all.collect::<Result<_, _>>()?);
    }
    Ok(requests)
}

fn read(
    tree: &Value,
    base: &str,
    alternative: Option<&str>,
    class: &dyn Fn(&str) -> Option<Arc<Object>>,
) -> Result<DeviceRequest, AllocationError> {
    let name = alternative.map_or_else(|| base.to_owned(), |alternative| format!("{base}/{alternative}"));
    let class_name = text(tree, "deviceClassName");
    let found = class(class_name).ok_or_else(|| {
        AllocationError(format!("request {name}: device class {class_name} does not exist"))
    })?;
    let class_tree = found.to_value();
    let of = |tree: &Value, path: &str| -> Vec<String> {
        items(tree, path).iter().map(|it| text(it, "cel.expression").to_owned()).collect()
    };
    let count = at(tree, "count").as_u64().unwrap_or(1) as usize;
    Ok(DeviceRequest {
        name,
        base: base.to_owned(),
        count: (text(tree, "allocationMode") != "All").then_some(count),
        is_admin: flag(tree, "adminAccess"),
        tree: tree.clone(),
        class_selectors: of(&class_tree, "spec.selectors"),
        selectors: of(tree, "selectors"),
        class: found,
    })
}

impl DeviceRequest {
    /// As the claim names it, or the alternative.
    pub(crate) fn own_name(&self) -> &str {
        self.name.rsplit_once('/').map_or(&self.name, |(_, alternative)| alternative)
    }

    /// Whether a device's taints keep it from being allocated for this.
    pub(crate) fn is_kept_away(&self, device: &Value) -> bool {
        let repels = |taint: &&Value| matches!(text(taint, "effect"), "NoSchedule" | "NoExecute");
        let tolerations = items(&self.tree, "tolerations");
        let tolerated = |taint: &Value| tolerations.iter().any(|toleration| tolerates(toleration, taint));
        items(device, "taints").iter().filter(repels).any(|taint| !tolerated(taint))
    }

    /// What it asks of a device's capacity, by name.
    pub(crate) fn capacity(&self, name: &str) -> Option<&str> {
        let requests = at(&self.tree, "capacity.requests");
        requests.get(name).and_then(Value::as_str)
    }
}

/// Whether a claim has devices.
pub(crate) fn is_allocated(claim: &Value) -> bool {
    is_set(claim, "status.allocation")
}
