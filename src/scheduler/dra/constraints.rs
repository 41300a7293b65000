//! What the devices of a claim must have in common, or must not (`constraint`).

use serde_json::Value;

use super::pools::NodeDevice;
use apis::tree::{items, text, texts};

/// A constraint of a claim.
pub(crate) struct DeviceConstraint {
    requests: Vec<String>,
    attribute: String,
    is_match: bool,
}

impl DeviceConstraint {
    /// Those of a claim.
    pub(crate) fn of_claim(claim: &Value) -> Vec<DeviceConstraint> {
        let read = |constraint: &Value| {
            let distinct = text(constraint, "distinctAttribute");
            let matched = text(constraint, "matchAttribute");
            let is_match = distinct.is_empty();
            DeviceConstraint {
                requests: texts(constraint, "requests").into_iter().map(str::to_owned).collect(),
                attribute: if is_match { matched } else { distinct }.to_owned(),
                is_match,
            }
        };
        items(claim, "spec.devices.constraints").iter().map(read).collect()
    }

    fn is_about(&self, request: &str) -> bool {
        let base = request.split_once('/').map_or(request, |(base, _)| base);
        self.requests.is_empty() || self.requests.iter().any(|name| name == request || name == base)
    }

    /// Whether a device goes with those that were picked before: each with the name of its request.
    pub(crate) fn allows<'a>(
        &self,
        request: &str,
        device: &NodeDevice,
        mut picked: impl Iterator<Item = (&'a str, &'a NodeDevice)>,
    ) -> bool {
        if !self.is_about(request) {
            return true;
        }
        let Some(own) = attribute(device, &self.attribute) else { return false };
        picked.all(|(of, other)| {
            !self.is_about(of) || (attribute(other, &self.attribute) == Some(own)) == self.is_match
        })
    }
}

/// An attribute by its full name; those of the driver's own domain may stand without it.
fn attribute<'a>(device: &'a NodeDevice, name: &str) -> Option<&'a Value> {
    let attributes = device.tree.get("attributes")?;
    let own = || attributes.get(name.strip_prefix(device.id.0.as_str())?.strip_prefix('/')?);
    attributes.get(name).or_else(own)
}
