//! What the volumes of a pod hold (`pkg/volume/configmap`, `secret`, `downwardapi`, `projected`,
//! `emptydir`).
//!
//! A volume made of API objects is worked out from them whenever somebody looks. What containers write
//! into the other kinds is kept for as long as the pod lives, and on the node (`hostPath`) for longer.

use std::collections::BTreeMap;

use super::config_error::ContainerConfigError;
use super::dns;
use super::downward;
use super::host_files::{CLAIMED, Files, WrittenFiles};
use super::memory_size;
use super::sources::{self, Found, Source};
use super::{cgroup_files, process_status, sub_paths};
use crate::volume_manager::facts::VolumeFacts;
use apis::views::pod::Container;
use apis::views::pod_detail::{BlockMount, ContainerDetail, DownwardSource, KeyedSource, Mount, Volume};
use machine::bounds::MAX_PATH_BYTES;
use machine::file_system::{self, BLOCK_DEVICE, File, MountedVolume, Tree};
use machine::image_files;
use machine::interpreter::expansion::expand;

/// What the kubelet writes of loopback and multicast; the addresses of the latter are wrong upstream, too.
const LOOPBACK_HOSTS: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
     fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
/// Permissions of files, when nobody says.
const DEFAULT_MODE: u32 = 0o644;
/// Of a volume without a file system.
const DEVICE_MODE: u32 = BLOCK_DEVICE | 0o660;
/// What a group may do that a volume was given to.
const FS_GROUP_MODE: u32 = 0o440;

/// Whether every volume can be mounted.
///
/// # Errors
/// The first that cannot, and why: as in the event `FailedMount`.
pub fn check(facts: &VolumeFacts<'_>) -> Result<(), (String, String)> {
    for volume in &facts.detail.spec.volumes {
        let made = of_objects(facts, volume, None).map_or(Ok(()), |files| files.map(drop));
        made.map_err(|why| (volume.name.clone(), why))?;
    }
    Ok(())
}

/// Where a container has its volumes.
///
/// # Errors
/// A `subPath` that cannot be, as the message of `CreateContainerConfigError`.
pub fn mounts(
    facts: &VolumeFacts<'_>,
    detail: &ContainerDetail,
    variables: &BTreeMap<String, String>,
    written: &WrittenFiles,
) -> Result<Vec<MountedVolume>, ContainerConfigError> {
    let mount = |mount: &Mount| -> Result<MountedVolume, ContainerConfigError> {
        let mut missing = vec![];
        let expanded = expand(&mount.sub_path_expr, |name| {
            let value = variables.get(name).cloned();
            if value.as_ref().is_none_or(String::is_empty) {
                missing.push(name.to_owned());
            }
            value
        });
        if !missing.is_empty() {
            return Err(format!("missing value for {}", missing.join(", ")).into());
        }
        let sub_path = if mount.sub_path_expr.is_empty() { mount.sub_path.clone() } else { expanded };
        if sub_path.starts_with('/') {
            return Err(format!("error SubPath `{sub_path}` must not be an absolute path").into());
        }
        if sub_path.len() > MAX_PATH_BYTES {
            return Err(format!("error SubPath of volume {:?}: file name too long", mount.name).into());
        }
        if sub_path.split('/').any(|part| part == "..") {
            return Err(format!("unable to provision SubPath `{sub_path}`: must not contain '..'").into());
        }
        let volume = facts.detail.spec.volumes.iter().find(|volume| volume.name == mount.name);
        let is_made = volume.is_some_and(is_of_objects);
        let is_image = volume.is_some_and(|volume| volume.image.is_some());
        let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        let host_path = volume.and_then(|volume| volume.host_path.as_ref()).map(|source| &source.path);
        let empty_dir = volume.and_then(|volume| volume.empty_dir.as_ref());
        let is_memory = is_made || empty_dir.is_some_and(|source| source.medium == "Memory");
        let size_limit = empty_dir.and_then(|source| source.size_limit.as_deref());
        let place = match (host_path, volume.and_then(|volume| claimed(facts, volume))) {
            (Some(path), _) => file_system::absolute("/", path),
            (None, Some(claimed)) => claimed,
            (None, None) => mount.name.clone(),
        };
        let sub_path = if is_made || is_image {
            sub_path.trim_matches('/').to_owned()
        } else {
            sub_paths::resolved(&sub_path, (&place, written), (&mount.name, &detail.name))?
        };
        Ok(MountedVolume {
            path: mount.mount_path.clone(),
            sub_path,
            volume: place,
            is_read_only: mount.read_only || is_image || claim.is_some_and(|claim| claim.read_only),
            memory_bytes: is_memory.then(|| memory_size::memory_size(facts, size_limit)),
            is_kept: !is_made && !is_image,
            // What is the node's, or of an image, keeps its own.
            group: facts.detail.spec.security_context.fs_group.filter(|_| host_path.is_none() && !is_image),
            is_device: false,
        })
    };
    let mut mounts: Vec<MountedVolume> = detail.volume_mounts.iter().map(mount).collect::<Result<_, _>>()?;
    mounts.extend(detail.volume_devices.iter().filter_map(|device| block_device(facts, device)));
    if detail.security_context.privileged == Some(true) {
        mounts.extend(node_roots(facts, &mounts));
    }
    Ok(mounts)
}

/// The node's own files, where a container sees the node's first process.
fn node_roots(facts: &VolumeFacts<'_>, mounts: &[MountedVolume]) -> Vec<MountedVolume> {
    let is_of_processes = |mount: &&MountedVolume| mount.volume == "/proc" && mount.sub_path.is_empty();
    let mounted = mounts.iter().filter(is_of_processes).map(|mount| mount.path.as_str());
    let own = facts.detail.spec.host_pid.then_some("/proc");
    let root =
        |processes: &str| MountedVolume::kept(format!("{}/1/root", processes.trim_end_matches('/')), "/");
    mounted.chain(own).map(root).collect()
}

/// A volume without a file system: all of it is one file of the container.
fn block_device(facts: &VolumeFacts<'_>, device: &BlockMount) -> Option<MountedVolume> {
    let volume = facts.detail.spec.volumes.iter().find(|volume| volume.name == device.name)?;
    let claim = volume.persistent_volume_claim.as_ref();
    Some(MountedVolume {
        is_read_only: claim.is_some_and(|claim| claim.read_only),
        is_device: true,
        ..MountedVolume::kept(file_system::absolute("/", &device.device_path), claimed(facts, volume)?)
    })
}

/// The files of all volumes of a container, where it has them, and those that every container has.
pub fn view(
    facts: &VolumeFacts<'_>,
    own: &Container,
    mounts: &[MountedVolume],
    written: &WrittenFiles,
) -> Tree {
    let of_image = image_files::files(&own.image).into_iter();
    let mut tree: Tree = of_image.map(|(path, file)| (format!("/{path}"), file)).collect();
    tree.extend(cgroup_files::files(facts, own));
    tree.extend(process_status::files(facts, own).into_iter().flatten());
    tree.insert("/etc/hosts".into(), File::new(hosts(facts, written).into_bytes(), DEFAULT_MODE));
    tree.insert(
        "/etc/hostname".into(),
        File::new(format!("{}\n", facts.kernel_hostname()).into_bytes(), DEFAULT_MODE),
    );
    tree.insert("/etc/resolv.conf".into(), File::new(dns::resolv_conf(facts).into_bytes(), DEFAULT_MODE));
    for mount in mounts {
        let volume = facts.detail.spec.volumes.iter().find(|volume| volume.name == mount.volume);
        let image = volume.and_then(|volume| volume.image.as_ref());
        let made = volume.and_then(|volume| of_objects(facts, volume, Some(own)));
        let files = match (image, made) {
            (Some(image), _) => image_files::files(&image.reference),
            (None, Some(files)) => files.unwrap_or_default(),
            (None, None) if mount.volume.starts_with('/') => {
                let mut files = written.files(&mount.volume);
                files.extend(cgroup_files::in_host_path(facts, &mount.volume));
                files
            }
            (None, None) => written.files(&mount.volume),
        };
        if mount.is_device {
            let device = files.get("").cloned().unwrap_or_else(|| File::new(vec![], DEVICE_MODE));
            tree.insert(mount.path.clone(), File { mode: BLOCK_DEVICE | device.mode, ..device });
            continue;
        }
        let folder = mount.path.trim_end_matches('/');
        // Of a device that is mounted its file system is shown.
        for (path, file) in
            files.into_iter().filter(|(path, file)| !(path.is_empty() && file.is_block_device()))
        {
            let inner = match path.strip_prefix(mount.sub_path.as_str()) {
                Some("") if !mount.sub_path.is_empty() => "",
                Some(inner) if mount.sub_path.is_empty() => inner,
                Some(inner) if inner.starts_with('/') => &inner[1..],
                _ => continue,
            };
            let path = if inner.is_empty() { folder.to_owned() } else { format!("{folder}/{inner}") };
            tree.insert(path, file);
        }
    }
    tree
}

/// Where the files of a volume are that is claimed; nothing before it is known which one it is.
fn claimed(facts: &VolumeFacts<'_>, volume: &Volume) -> Option<String> {
    let source = sources::claim(volume, &facts.metadata.name)?;
    let claimed = facts.sources.get(&source).and_then(Found::volume)?;
    Some(if claimed.folder.is_empty() {
        format!("{CLAIMED}{}", claimed.name)
    } else {
        claimed.folder.clone()
    })
}

fn is_of_objects(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

/// The files of a volume that is made of API objects; nothing for other volumes. The amounts of a
/// container are those of `own` where no other is named.
fn of_objects(
    facts: &VolumeFacts<'_>,
    volume: &Volume,
    own: Option<&Container>,
) -> Option<Result<Files, String>> {
    let mut files = Files::new();
    let mode = |mode: Option<u32>| mode.unwrap_or(DEFAULT_MODE);
    let made = if let Some(source) = &volume.config_map {
        keyed(facts, source, false, mode(source.default_mode), &mut files)
    } else if let Some(source) = &volume.secret {
        keyed(facts, source, true, mode(source.default_mode), &mut files)
    } else if let Some(source) = &volume.downward_api {
        downward_files(facts, source, own, mode(source.default_mode), &mut files);
        Ok(())
    } else {
        let projected = volume.projected.as_ref()?;
        let mode = mode(projected.default_mode);
        projected.sources.iter().try_for_each(|source| {
            source.config_map.iter().try_for_each(|it| keyed(facts, it, false, mode, &mut files))?;
            source.secret.iter().try_for_each(|it| keyed(facts, it, true, mode, &mut files))?;
            source.downward_api.iter().for_each(|it| downward_files(facts, it, own, mode, &mut files));
            if let Some(token) = &source.service_account_token
                && let Some(Found::Token(bound)) = facts.sources.get(&sources::token(token))
            {
                files.insert(token.path.clone(), File::new(bound.text.clone().into_bytes(), mode));
            }
            Ok(())
        })
    };
    if facts.detail.spec.security_context.fs_group.is_some() {
        files.values_mut().for_each(|file| file.mode |= FS_GROUP_MODE);
    }
    Some(made.map(|()| files))
}

fn keyed(
    facts: &VolumeFacts<'_>,
    source: &KeyedSource,
    is_secret: bool,
    mode: u32,
    files: &mut Files,
) -> Result<(), String> {
    let is_optional = source.optional == Some(true);
    let name = source.name.clone();
    let key = if is_secret { Source::Secret(name) } else { Source::ConfigMap(name) };
    let object = match facts.sources.get(&key) {
        Some(Found::Object(object)) => object,
        Some(Found::Missing(why)) if !is_optional => return Err(why.clone()),
        _ => return Ok(()),
    };
    let keys = object.keys();
    if source.items.is_empty() {
        files.extend(keys.iter().map(|(key, value)| (key.clone(), File::of(value, mode))));
        return Ok(());
    }
    for item in &source.items {
        match keys.get(&item.key) {
            Some(value) => {
                files.insert(item.path.clone(), File::of(value, item.mode.unwrap_or(mode)));
            }
            None if is_optional => {}
            None if is_secret => return Err(format!("references non-existent secret key: {}", item.key)),
            None => return Err(format!("configmap references non-existent config key: {}", item.key)),
        }
    }
    Ok(())
}

fn downward_files(
    facts: &VolumeFacts<'_>,
    source: &DownwardSource,
    own: Option<&Container>,
    mode: u32,
    files: &mut Files,
) {
    for item in &source.items {
        let field = item.source.get("fieldRef").and_then(|field| field["fieldPath"].as_str());
        let text =
            match (field, item.source.get("resourceFieldRef"), own.or(facts.pod.spec.containers.first())) {
                (Some(path), _, _) => downward::field(facts, path),
                (None, Some(resource), Some(own)) => downward::resource(facts, own, resource),
                _ => None,
            };
        if let Some(text) = text {
            files.insert(item.path.clone(), File::new(text.into_bytes(), item.mode.unwrap_or(mode)));
        }
    }
}

/// `/etc/hosts` as the kubelet writes it (`pkg/kubelet/kubelet_pods.go`): in the network of its node a pod
/// has that of the node.
fn hosts(facts: &VolumeFacts<'_>, written: &WrittenFiles) -> String {
    let mut text = if facts.pod.spec.host_network {
        let of_node = written.files("/etc/hosts").remove("");
        let of_node = of_node.map_or_else(|| LOOPBACK_HOSTS.to_owned(), |file| file.text());
        format!("# Kubernetes-managed hosts file (host network).\n{of_node}")
    } else {
        own_hosts(facts)
    };
    if !facts.detail.spec.host_aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in &facts.detail.spec.host_aliases {
        text.push_str(&format!("{}\t{}\n", alias.ip, alias.hostnames.join("\t")));
    }
    text
}

/// Of a pod that has a network of its own.
fn own_hosts(facts: &VolumeFacts<'_>) -> String {
    let spec = &facts.pod.spec;
    let (name, namespace) = (facts.hostname(), &facts.metadata.namespace);
    let names = match spec.subdomain.as_str() {
        domain if !domain.is_empty() && spec.hostname_override.is_none() => {
            format!("{name}.{domain}.{namespace}.svc.cluster.local\t{name}")
        }
        _ => name.to_owned(),
    };
    let mut text = format!("# Kubernetes-managed hosts file.\n{LOOPBACK_HOSTS}");
    facts.pod_ips.ips().for_each(|ip| text.push_str(&format!("{ip}\t{names}\n")));
    text
}
