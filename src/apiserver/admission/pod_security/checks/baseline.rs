//! The checks of the baseline level.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::policy::PolicyVersion;
use super::fields::{
    CheckedPod, Violation, bad_values, named_containers, plural, quoted, setters, violation,
};
use apis::tree::{annotation, at, flag, is_set, items, members, text, texts};

/// No other AppArmor profile than the runtime's or one of the node.
pub(super) fn app_armor_profile(pod: CheckedPod) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let allowed = |profile: &str| {
        profile.is_empty() || profile == "runtime/default" || profile.starts_with("localhost/")
    };
    let is_bad = |value: &str| !matches!(value, "RuntimeDefault" | "Localhost");
    let (by_field, values) = bad_values(&pod, "appArmorProfile.type", is_bad).unzip();
    let mut values: Vec<String> = values.unwrap_or_default().into_iter().map(String::from).collect();
    let annotations: Vec<String> = members(pod.tree, "metadata.annotations")
        .filter(|(name, value)| name.starts_with(PREFIX) && !allowed(value.as_str().unwrap_or_default()))
        .map(|(name, value)| format!("{name}=\"{}\"", value.as_str().unwrap_or_default()))
        .collect();
    let by_annotation =
        (!annotations.is_empty()).then(|| plural(annotations.len(), "annotation", "annotations").to_owned());
    let setters: Vec<String> = by_field.into_iter().chain(by_annotation).collect();
    values.extend(annotations);
    values.sort();
    if setters.is_empty() {
        return None;
    }
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let values = quoted(values.iter().map(String::as_str));
    violation(reason, format!("{} must not set AppArmor profile type to {values}", setters.join(" and ")))
}

/// No capabilities beyond those that container runtimes give anyway.
pub(super) fn capabilities(pod: CheckedPod) -> Option<Violation> {
    const DEFAULTS: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    added_capabilities(pod, &DEFAULTS).and_then(|detail| violation("non-default capabilities", detail))
}

/// Who adds capabilities that are not `allowed`, in words.
pub(super) fn added_capabilities(pod: CheckedPod, allowed: &[&str]) -> Option<String> {
    let added = |container: &Value| -> Vec<String> {
        let all = texts(container, "securityContext.capabilities.add");
        all.into_iter().filter(|name| !allowed.contains(name)).map(String::from).collect()
    };
    let containers = pod.bad_containers(|container| !added(container).is_empty());
    let names: BTreeSet<String> = pod.containers().flat_map(added).collect();
    (!containers.is_empty()).then(|| {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            named_containers(&containers),
            quoted(names.iter().map(String::as_str))
        )
    })
}

/// Not the node's network, processes or IPC.
pub(super) fn host_namespaces(pod: CheckedPod) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let set = fields.iter().filter(|field| flag(pod.tree, &format!("spec.{field}")));
    let set: Vec<String> = set.map(|field| format!("{field}=true")).collect();
    if set.is_empty() { None } else { violation("host namespaces", set.join(", ")) }
}

/// Not the node's files.
pub(super) fn host_path_volumes(pod: CheckedPod) -> Option<Violation> {
    let volumes = items(pod.tree, "spec.volumes").iter().filter(|volume| is_set(volume, "hostPath"));
    let names: Vec<&str> = volumes.map(|volume| text(volume, "name")).collect();
    if names.is_empty() {
        return None;
    }
    violation("hostPath volumes", format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names)))
}

/// Not the node's ports.
pub(super) fn host_ports(pod: CheckedPod) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<i64> {
        let ports = items(container, "ports").iter().filter_map(|port| port["hostPort"].as_i64());
        ports.filter(|port| *port != 0).collect()
    };
    let containers = pod.bad_containers(|container| !ports(container).is_empty());
    // Ordered as texts, as upstream.
    let all: BTreeSet<String> = pod.containers().flat_map(ports).map(|port| port.to_string()).collect();
    if containers.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {}",
        named_containers(&containers),
        plural(containers.len(), "uses", "use"),
        plural(all.len(), "hostPort", "hostPorts"),
        all.into_iter().collect::<Vec<_>>().join(", ")
    );
    violation("hostPort", detail)
}

/// Probes and hooks go to the pod, not elsewhere.
pub(super) fn host_probes_and_lifecycle(pod: CheckedPod) -> Option<Violation> {
    const HANDLERS: [&str; 5] =
        ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"];
    let hosts = |container: &Value| -> Vec<String> {
        let handlers = HANDLERS.iter().map(|path| at(container, path));
        let hosts = handlers.flat_map(|it| [text(it, "httpGet.host"), text(it, "tcpSocket.host")]);
        hosts.filter(|host| !host.is_empty()).map(String::from).collect()
    };
    let containers: BTreeSet<&str> =
        pod.bad_containers(|container| !hosts(container).is_empty()).into_iter().collect();
    let all: BTreeSet<String> = pod.containers().flat_map(hosts).collect();
    if containers.is_empty() {
        return None;
    }
    let containers: Vec<&str> = containers.into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        named_containers(&containers),
        plural(containers.len(), "uses", "use"),
        plural(all.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
        quoted(all.iter().map(String::as_str))
    );
    violation("probe or lifecycle host", detail)
}

/// No privileged containers.
pub(super) fn privileged(pod: CheckedPod) -> Option<Violation> {
    let containers = pod.bad_containers(|container| flag(container, "securityContext.privileged"));
    if containers.is_empty() {
        return None;
    }
    let detail = format!("{} must not set securityContext.privileged=true", named_containers(&containers));
    violation("privileged", detail)
}

/// `/proc` is masked.
pub(super) fn proc_mount(pod: CheckedPod) -> Option<Violation> {
    if pod.has_user_namespace() && pod.version >= PolicyVersion::Minor(35) {
        return None;
    }
    let mount = |container: &Value| text(container, "securityContext.procMount").to_owned();
    let is_bad = |mount: &str| !matches!(mount, "" | "Default");
    let containers = pod.bad_containers(|container| is_bad(&mount(container)));
    let mounts: BTreeSet<String> = pod.containers().map(mount).filter(|mount| is_bad(mount)).collect();
    if containers.is_empty() {
        return None;
    }
    let mounts = quoted(mounts.iter().map(String::as_str));
    let who = named_containers(&containers);
    violation("procMount", format!("{who} must not set securityContext.procMount to {mounts}"))
}

/// Only the SELinux types that are meant for containers.
pub(super) fn selinux_options(pod: CheckedPod) -> Option<Violation> {
    let is_bad_type = |kind: &str| match kind {
        "" | "container_t" | "container_init_t" | "container_kvm_t" => false,
        "container_engine_t" => pod.version < PolicyVersion::Minor(31),
        _ => true,
    };
    let options = |tree: &Value| at(tree, "securityContext.seLinuxOptions").clone();
    let is_bad = |tree: &Value| {
        let options = options(tree);
        is_bad_type(text(&options, "type"))
            || ["user", "role"].iter().any(|field| !text(&options, field).is_empty())
    };
    let spec = &pod.tree["spec"];
    let setters = setters(is_bad(spec), &pod.bad_containers(is_bad))?;
    let all: Vec<Value> = pod.containers().chain([spec]).map(options).collect();
    let types: BTreeSet<&str> =
        all.iter().map(|options| text(options, "type")).filter(|kind| is_bad_type(kind)).collect();
    let mut what = Vec::new();
    if !types.is_empty() {
        what.push(format!("{} {}", plural(types.len(), "type", "types"), quoted(types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(options, field).is_empty()) {
            what.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    violation("seLinuxOptions", detail)
}

/// No other seccomp profile than the runtime's or one of the node.
pub(super) fn seccomp_profile(pod: CheckedPod) -> Option<Violation> {
    if pod.version < PolicyVersion::Minor(19) {
        return seccomp_annotations(pod);
    }
    let is_bad = |value: &str| !matches!(value, "RuntimeDefault" | "Localhost");
    let (setters, values) = bad_values(&pod, "seccompProfile.type", is_bad)?;
    let values = quoted(values);
    violation(
        "seccompProfile",
        format!("{setters} must not set securityContext.seccompProfile.type to {values}"),
    )
}

/// As it was said before there were fields for it.
fn seccomp_annotations(pod: CheckedPod) -> Option<Violation> {
    let names = pod.containers().map(|container| {
        format!("container.seccomp.security.alpha.kubernetes.io/{}", text(container, "name"))
    });
    let allowed = |profile: &str| {
        matches!(profile, "" | "runtime/default" | "docker/default") || profile.starts_with("localhost/")
    };
    let all = names.chain(["seccomp.security.alpha.kubernetes.io/pod".to_owned()]);
    let bad: BTreeSet<String> = all
        .map(|name| (annotation(pod.tree, &name).to_owned(), name))
        .filter(|(profile, _)| !allowed(profile))
        .map(|(profile, name)| format!("{name}=\"{profile}\""))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let noun = plural(bad.len(), "annotation", "annotations");
    let bad = bad.into_iter().collect::<Vec<_>>().join(", ");
    violation("seccompProfile", format!("forbidden {noun} {bad}"))
}

/// Only those kernel parameters that a pod has to itself; with the release that knows them as safe.
pub(super) fn sysctls(pod: CheckedPod) -> Option<Violation> {
    const SAFE: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let is_safe = |name: &str| {
        SAFE.iter().any(|(safe, since)| *safe == name && PolicyVersion::Minor(*since) <= pod.version)
    };
    let names = items(pod.tree, "spec.securityContext.sysctls").iter().map(|sysctl| text(sysctl, "name"));
    let bad: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    if bad.is_empty() { None } else { violation("forbidden sysctls", bad.join(", ")) }
}

/// Not a process of a Windows node.
pub(super) fn windows_host_process(pod: CheckedPod) -> Option<Violation> {
    let is_bad = |tree: &Value| flag(tree, "securityContext.windowsOptions.hostProcess");
    let setters = setters(is_bad(&pod.tree["spec"]), &pod.bad_containers(is_bad))?;
    violation(
        "hostProcess",
        format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
