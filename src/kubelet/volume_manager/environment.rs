//! The variables of a container (`makeEnvironmentVariables`, `pkg/kubelet/envvars`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::config_error::ContainerConfigError;
use super::device_variables;
use super::downward;
use super::env_file;
use super::host_files::WrittenFiles;
use super::sources::{Found, Keyed, Source};
use crate::volume_manager::facts::VolumeFacts;
use apis::views::pod::Container;
use apis::views::pod_detail::{ContainerDetail, Reference};
use apis::views::service::Service;
use machine::bounds::{MAX_START_BYTES, MAX_WORD_BYTES};
use machine::file_system::absolute;
use machine::interpreter::expansion::expand;
use machine::surroundings::USUAL_PATH;

/// The variables of a container, by name.
pub(super) type ContainerVariables = BTreeMap<String, String>;

/// All variables of a container.
///
/// # Errors
/// What is missing, as the message of `CreateContainerConfigError`.
pub(super) fn variables(
    facts: &VolumeFacts<'_>,
    container: &Container,
    detail: &ContainerDetail,
    written: &WrittenFiles,
) -> Result<ContainerVariables, ContainerConfigError> {
    let services = services(facts);
    let mut variables = VariablesSoFar::default();
    for source in &detail.env_from {
        let references = [(&source.config_map_ref, false), (&source.secret_ref, true)];
        for (reference, is_secret) in references {
            let Some(reference) = reference else { continue };
            let Some(object) = object(facts, reference, is_secret)? else { continue };
            for (key, value) in object.keys().iter().filter(|(key, _)| !key.contains('=')) {
                variables.put(format!("{}{key}", source.prefix), text(value))?;
            }
        }
    }
    for variable in &detail.env {
        let value = match &variable.value_from {
            None => {
                let known = |name: &str| variables.by_name.get(name).or(services.get(name)).cloned();
                Some(expand(&variable.value, known))
            }
            Some(source) if source["fileKeyRef"].is_object() => {
                from_file(facts, &source["fileKeyRef"], written)?
            }
            Some(source) => from_source(facts, container, source)?,
        };
        if let Some(value) = value {
            variables.put(variable.name.clone(), value)?;
        }
    }
    let mut variables = variables.by_name;
    for (name, value) in services {
        variables.entry(name).or_insert(value);
    }
    // The runtime adds these to what the kubelet says, so that they go before.
    variables.extend(device_variables::of_container(facts, container));
    for (name, value) in [("PATH", USUAL_PATH), ("HOSTNAME", &facts.kernel_hostname()), ("HOME", "/root")] {
        variables.entry(name.into()).or_insert_with(|| value.to_owned());
    }
    Ok(variables)
}

/// Those that are there so far, and how many bytes were made for them.
#[derive(Default)]
struct VariablesSoFar {
    by_name: BTreeMap<String, String>,
    bytes: usize,
}

impl VariablesSoFar {
    /// No process could be started with more than fits.
    fn put(&mut self, name: String, value: String) -> Result<(), String> {
        self.bytes += name.len() + value.len();
        if value.len() > MAX_WORD_BYTES {
            return Err(format!("argument list too long: variable {name} is over {MAX_WORD_BYTES} bytes"));
        }
        if self.bytes > MAX_START_BYTES {
            return Err(format!("argument list too long: variables are over {MAX_START_BYTES} bytes"));
        }
        self.by_name.insert(name, value);
        Ok(())
    }
}

/// `fileKeyRef`: from a file that another container has left in a volume of the pod; nothing when it may be
/// missing and is.
fn from_file(
    facts: &VolumeFacts<'_>,
    source: &Value,
    written: &WrittenFiles,
) -> Result<Option<String>, String> {
    let text = |name: &str| source[name].as_str().unwrap_or_default();
    let (volume, path, key) = (text("volumeName"), text("path"), text("key"));
    let is_there = facts.detail.spec.volumes.iter().any(|it| it.name == volume && it.empty_dir.is_some());
    if !is_there {
        return Err(format!("cannot find the volume {volume:?} referenced by FileKeyRef"));
    }
    let path = absolute("/", path);
    let files = written.files(volume);
    let file = files.get(path.trim_start_matches('/')).and_then(|file| str::from_utf8(&file.content).ok());
    let value = file.ok_or(env_file::MalformedFile).and_then(|text| env_file::value_of(text, key));
    match value.map_err(|_| "couldn't parse env file")? {
        Some(value) if !value.is_empty() => Ok(Some(value)),
        _ if source["optional"] == true => Ok(None),
        _ => {
            let uid = &facts.metadata.uid;
            let folder = format!("/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/{volume}");
            Err(format!("environment variable key {key:?} not found in file \"{folder}{path}\""))
        }
    }
}

/// `valueFrom`: nothing when it is optional and missing.
fn from_source(
    facts: &VolumeFacts<'_>,
    container: &Container,
    source: &Value,
) -> Result<Option<String>, String> {
    if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
        return Ok(downward::field(facts, path));
    }
    if source["resourceFieldRef"].is_object() {
        return Ok(downward::resource(facts, container, &source["resourceFieldRef"]));
    }
    for (kind, shown, is_secret) in
        [("configMapKeyRef", "ConfigMap", false), ("secretKeyRef", "Secret", true)]
    {
        let selector = &source[kind];
        let (Some(name), Some(key)) = (selector["name"].as_str(), selector["key"].as_str()) else { continue };
        let reference = Reference { name: name.into(), optional: selector["optional"].as_bool() };
        let Some(object) = object(facts, &reference, is_secret)? else { return Ok(None) };
        return match object.keys().get(key) {
            Some(value) => Ok(Some(text(value))),
            None if reference.optional == Some(true) => Ok(None),
            None => {
                let namespace = &facts.metadata.namespace;
                Err(format!("couldn't find key {key} in {shown} {namespace}/{name}"))
            }
        };
    }
    Ok(None)
}

fn object<'a>(
    facts: &VolumeFacts<'a>,
    reference: &Reference,
    is_secret: bool,
) -> Result<Option<&'a Keyed>, String> {
    let name = reference.name.clone();
    let source = if is_secret { Source::Secret(name) } else { Source::ConfigMap(name) };
    match facts.sources.get(&source) {
        Some(Found::Object(object)) => Ok(Some(object)),
        Some(Found::Missing(why)) if reference.optional != Some(true) => Err(why.clone()),
        _ => Ok(None),
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// The services that the pod was told of when it started: those of its namespace, and the apiserver's.
fn services(facts: &VolumeFacts<'_>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let Some(Found::Services(services)) = facts.sources.get(&Source::Services) else { return variables };
    let links = facts.detail.spec.enable_service_links != Some(false);
    for object in services {
        let metadata = &object.metadata;
        let is_master = metadata.namespace == "default" && metadata.name == "kubernetes";
        let is_own = metadata.namespace == facts.metadata.namespace;
        if is_master || (links && is_own) {
            of_service(&metadata.name, &object.view::<Service>(), &mut variables);
        }
    }
    variables
}

/// `{NAME}_SERVICE_HOST` and its kin, those of Docker's links among them.
fn of_service(name: &str, service: &Service, variables: &mut BTreeMap<String, String>) {
    let (address, ports) = (&service.spec.cluster_ip, &service.spec.ports);
    let Some(first) = ports.first().filter(|_| !matches!(address.as_str(), "" | "None")) else { return };
    let upper = |text: &str| text.to_uppercase().replace('-', "_");
    let prefix = upper(name);
    let mut put = |suffix: &str, value: String| drop(variables.insert(format!("{prefix}_{suffix}"), value));
    put("SERVICE_HOST", address.clone());
    put("SERVICE_PORT", first.port.to_string());
    for port in ports.iter().filter(|port| !port.name.is_empty()) {
        put(&format!("SERVICE_PORT_{}", upper(&port.name)), port.port.to_string());
    }
    for (at, port) in ports.iter().enumerate() {
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        let lower = protocol.to_lowercase();
        let url = format!("{lower}://{address}:{}", port.port);
        if at == 0 {
            put("PORT", url.clone());
        }
        let link = format!("PORT_{}_{protocol}", port.port);
        put(&link, url);
        put(&format!("{link}_PROTO"), lower);
        put(&format!("{link}_PORT"), port.port.to_string());
        put(&format!("{link}_ADDR"), address.clone());
    }
}
