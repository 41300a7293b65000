//! The health of the devices that containers have (`cm/dra`'s `UpdateAllocatedResourcesStatus`, behind
//! `ResourceHealthStatus`): a simulated driver finds them well, unless their pod says otherwise.

use serde_json::{Value, json};

use super::pod_workers::PodWorker;
use super::volume_manager::sources::{Found, PreparedDevice, Source};
use apis::views::pod::Container as Spec;

/// On a pod: what its devices have, as `gpu-0=Unhealthy: too many ECC errors; gpu-1=Unknown`.
const DEVICE_HEALTH: &str = "kubarium.dev/device-health";
/// What a device may be.
const STATES: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];

impl PodWorker {
    /// Says in the statuses of containers how the devices are that they have.
    pub(crate) fn tell_device_health(&self, statuses: &mut Value) {
        let (_, Some(sources)) = self.mounted() else { return };
        let Some(Found::Prepared(devices)) = sources.get(&Source::Devices) else { return };
        let said = self.pod.metadata.annotations.get(DEVICE_HEALTH).map_or("", String::as_str);
        for status in statuses.as_array_mut().into_iter().flatten() {
            let spec = self.pod.spec.containers.iter().find(|spec| status["name"] == spec.name);
            let told = spec.map(|spec| resources(spec, devices, said)).unwrap_or_default();
            if !told.is_empty() {
                status["allocatedResourcesStatus"] = told.into();
            }
        }
    }
}

/// `allocatedResourcesStatus` of a container.
fn resources(spec: &Spec, devices: &[PreparedDevice], said: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for claim in &spec.resources.claims {
        let own = devices.iter().filter(|device| device.claim == claim.name);
        let resources: Vec<Value> = own.map(|device| health(device, said)).collect();
        let name = match claim.request.as_str() {
            "" => format!("claim:{}", claim.name),
            request => format!("claim:{}/{request}", claim.name),
        };
        if !resources.is_empty() {
            all.push(json!({"name": name, "resources": resources}));
        }
    }
    all
}

/// `v1.ResourceHealth`
fn health(device: &PreparedDevice, said: &str) -> Value {
    let [driver, pool, name] = &device.id;
    let mut health = json!({"resourceID": format!("{driver}/{pool}/{name}"), "health": "Healthy"});
    let of_device = said.split(';').filter_map(|one| one.trim().split_once('='));
    let Some((_, words)) = of_device.into_iter().find(|(of, _)| of.trim() == name) else { return health };
    let (state, message) = words.split_once(':').unwrap_or((words, ""));
    let state = state.trim();
    // What is no state is none that anybody can tell of.
    health["health"] = STATES.into_iter().find(|known| *known == state).unwrap_or("Unknown").into();
    if !message.trim().is_empty() {
        health["message"] = message.trim().into();
    }
    health
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_well_unless_it_is_said_otherwise() {
        let device = |claim: &str, name: &str| PreparedDevice {
            claim: claim.into(),
            id: ["gpu.io".into(), "n".into(), name.into()],
        };
        let devices = [device("gpu", "gpu-0"), device("gpu", "gpu-1"), device("net", "nic-0")];
        let claims = json!([{"name": "gpu", "request": "r"}, {"name": "none"}]);
        let spec: Spec = serde_json::from_value(json!({"resources": {"claims": claims}})).unwrap();
        let told = resources(&spec, &devices, "gpu-1=Unhealthy: too hot; nic-0=Unknown");
        let well = json!({"resourceID": "gpu.io/n/gpu-0", "health": "Healthy"});
        let ill = json!({"resourceID": "gpu.io/n/gpu-1", "health": "Unhealthy", "message": "too hot"});
        assert_eq!(told, [json!({"name": "claim:gpu/r", "resources": [well, ill]})]);
        let of = |said: &str| health(&devices[2], said)["health"].clone();
        assert_eq!(
            (of("nic-0=Unknown"), of("nic-0 = well"), of("nonsense")),
            ("Unknown".into(), "Unknown".into(), "Healthy".into())
        );
    }
}
