//! The health of the devices that containers have (`UpdateAllocatedResourcesStatus` of `cm/dra` and
//! `cm/devicemanager`, behind `ResourceHealthStatus`): simulated drivers and plugins find them well, unless
//! their pod says otherwise.

use serde_json::{Value, json};

use super::device_plugins::{DevicePlugins, GivenDevices};
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
        let sources = self.mounted().1;
        let prepared = match sources.as_deref().and_then(|sources| sources.get(&Source::Devices)) {
            Some(Found::Prepared(devices)) => &devices[..],
            _ => &[],
        };
        let plugged = self.plugin_devices.as_deref().unwrap_or_default();
        if prepared.is_empty() && plugged.is_empty() {
            return;
        }
        let said = self.pod.metadata.annotations.get(DEVICE_HEALTH).map_or("", String::as_str);
        for status in statuses.as_array_mut().into_iter().flatten() {
            let spec = self.pod.spec.containers.iter().find(|spec| status["name"] == spec.name);
            let mut told = plugins(plugged.iter().filter(|given| status["name"] == given.container), said);
            told.extend(spec.map(|spec| resources(spec, prepared, said)).unwrap_or_default());
            if !told.is_empty() {
                status["allocatedResourcesStatus"] = told.into();
            }
        }
    }
}

impl PodWorker {
    /// Takes the devices that it asks for; one that has ended has none.
    pub(crate) fn take_devices(&mut self, plugins: &DevicePlugins) {
        if self.pod.is_terminal() {
            return;
        }
        let given = plugins.give(&self.object, &self.pod);
        self.plugin_devices = (!given.is_empty()).then(|| given.into());
    }

    /// Gives them back; its status goes on telling which they were.
    pub(crate) fn give_devices_back(&self, plugins: &DevicePlugins) {
        if self.plugin_devices.is_some() {
            plugins.free(&self.object.metadata.uid);
        }
    }
}

/// Of a container, what plugins have given it.
fn plugins<'a>(given: impl Iterator<Item = &'a GivenDevices>, said: &str) -> Vec<Value> {
    let of_plugin = |id: &String| {
        let mut health = health(id, id, said);
        // A plugin has no words for it.
        health.as_object_mut().map(|health| health.remove("message"));
        health
    };
    let told = |given: &GivenDevices| json!({"name": given.resource, "resources": given.ids.iter().map(of_plugin).collect::<Vec<_>>()});
    given.map(told).collect()
}

/// Of a container, what drivers have prepared for its claims.
fn resources(spec: &Spec, devices: &[PreparedDevice], said: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for claim in &spec.resources.claims {
        let is_own = |device: &&PreparedDevice| device.claim == claim.name && device.is_of(&claim.request);
        let own = devices.iter().filter(is_own);
        let of_driver = |device: &PreparedDevice| health(&device.id.join("/"), &device.id[2], said);
        let resources: Vec<Value> = own.map(of_driver).collect();
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
fn health(id: &str, name: &str, said: &str) -> Value {
    let mut health = json!({"resourceID": id, "health": "Healthy"});
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
            request: "r".into(),
            id: ["gpu.io".into(), "n".into(), name.into()],
            variables: vec![],
        };
        let other = PreparedDevice { request: "other".into(), ..device("gpu", "gpu-2") };
        let devices = [device("gpu", "gpu-0"), device("gpu", "gpu-1"), device("net", "nic-0"), other];
        let claims = json!([{"name": "gpu", "request": "r"}, {"name": "none"}]);
        let spec: Spec = serde_json::from_value(json!({"resources": {"claims": claims}})).unwrap();
        let told = resources(&spec, &devices, "gpu-1=Unhealthy: too hot; nic-0=Unknown");
        let well = json!({"resourceID": "gpu.io/n/gpu-0", "health": "Healthy"});
        let ill = json!({"resourceID": "gpu.io/n/gpu-1", "health": "Unhealthy", "message": "too hot"});
        assert_eq!(told, [json!({"name": "claim:gpu/r", "resources": [well, ill]})]);
        let of = |said: &str| health("gpu.io/n/nic-0", "nic-0", said)["health"].clone();
        assert_eq!(
            (of("nic-0=Unknown"), of("nic-0 = well"), of("nonsense")),
            ("Unknown".into(), "Unknown".into(), "Healthy".into())
        );
    }

    #[test]
    fn plugins_say_how_each_device_is_without_words() {
        let given = GivenDevices {
            container: "c".into(),
            resource: "a.io/gpu".into(),
            ids: vec!["gpu-0".into(), "gpu-1".into()],
        };
        let told = plugins([&given].into_iter(), "gpu-1=Unhealthy: too hot");
        let well = json!({"resourceID": "gpu-0", "health": "Healthy"});
        let ill = json!({"resourceID": "gpu-1", "health": "Unhealthy"});
        assert_eq!(told, [json!({"name": "a.io/gpu", "resources": [well, ill]})]);
    }
}
