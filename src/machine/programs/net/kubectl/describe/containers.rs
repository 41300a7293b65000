//! Containers, as `kubectl describe` writes them.

use serde_json::Value;

use super::metadata::{list, number, or_none, plain, text, time};
use super::page::TabbedPage;
use super::resources;

/// Containers with their statuses; those of a template have none, and stand further to the right. `pod` is
/// whose fields variables may name.
pub(super) fn containers(
    page: &mut TabbedPage,
    (label, space): (&str, &str),
    containers: &Value,
    statuses: &Value,
    pod: Option<&Value>,
) {
    let containers = list(containers);
    let none = if containers.is_empty() { " <none>" } else { "" };
    page.line(0, format!("{space}{label}:{none}"));
    for container in containers {
        let status = list(statuses).iter().find(|status| status["name"] == container["name"]);
        basics(page, container, status, space);
        words(page, "Command", &container["command"]);
        words(page, "Args", &container["args"]);
        if let Some(status) = status {
            state(page, "State", &status["state"]);
            if status["lastState"]["terminated"].is_object() {
                state(page, "Last State", &status["lastState"]);
            }
            page.field(2, "Ready", if status["ready"] == true { "True" } else { "False" });
            page.field(2, "Restart Count", number(&status["restartCount"]).to_string());
        }
        resources::of_container(page, &container["resources"], 2);
        let probes =
            [("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")];
        for (title, field) in probes {
            if container[field].is_object() {
                page.field(2, title, probe(&container[field]));
            }
        }
        variables_from(page, &container["envFrom"]);
        variables(page, container, pod);
        mounts(page, container);
    }
}

fn basics(page: &mut TabbedPage, container: &Value, status: Option<&Value>, space: &str) {
    let indent = if space.is_empty() { "" } else { " " };
    page.line(1, format!("{indent}{}:", text(container, "name")));
    if let Some(status) = status {
        page.field(2, "Container ID", text(status, "containerID"));
    }
    page.field(2, "Image", text(container, "image"));
    if let Some(status) = status {
        page.field(2, "Image ID", text(status, "imageID"));
    }
    for (one, several, field) in [("Port", "Ports", "containerPort"), ("Host Port", "Host Ports", "hostPort")]
    {
        let ports = ports(&container["ports"], field);
        let title = if ports.contains(',') { several } else { one };
        page.field(2, title, or_none(&ports));
    }
    seccomp(page, (2, 3), &container["securityContext"]);
}

/// What the profile of a security context is.
pub(super) fn seccomp(page: &mut TabbedPage, (level, inner): (usize, usize), context: &Value) {
    let profile = &context["seccompProfile"];
    if profile.is_object() {
        page.field(level, "SeccompProfile", text(profile, "type"));
        if profile["type"] == "Localhost" {
            page.field(inner, "LocalhostProfile", text(profile, "localhostProfile"));
        }
    }
}

fn ports(ports: &Value, field: &str) -> String {
    let told = list(ports).iter().map(|port| {
        let told = format!("{}/{}", number(&port[field]), text(port, "protocol"));
        match text(port, "name") {
            "" => told,
            name => format!("{told} ({name})"),
        }
    });
    told.collect::<Vec<_>>().join(", ")
}

fn words(page: &mut TabbedPage, title: &str, words: &Value) {
    let words = list(words);
    if words.is_empty() {
        return;
    }
    page.line(2, format!("{title}:"));
    for line in words.iter().filter_map(Value::as_str).flat_map(|word| word.split('\n')) {
        page.line(3, line);
    }
}

fn state(page: &mut TabbedPage, title: &str, state: &Value) {
    let told = |page: &mut TabbedPage, title: &str, value: &Value| {
        if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
            page.field(3, title, value);
        }
    };
    let (running, waiting, ended) = (&state["running"], &state["waiting"], &state["terminated"]);
    if running.is_object() {
        page.field(2, title, "Running");
        page.field(3, "Started", time(&running["startedAt"]));
    } else if ended.is_object() {
        page.field(2, title, "Terminated");
        told(page, "Reason", &ended["reason"]);
        told(page, "Message", &ended["message"]);
        page.field(3, "Exit Code", number(&ended["exitCode"]).to_string());
        if number(&ended["signal"]) > 0 {
            page.field(3, "Signal", number(&ended["signal"]).to_string());
        }
        page.field(3, "Started", time(&ended["startedAt"]));
        page.field(3, "Finished", time(&ended["finishedAt"]));
    } else {
        page.field(2, title, "Waiting");
        told(page, "Reason", &waiting["reason"]);
    }
}

fn probe(probe: &Value) -> String {
    let of = |field: &str| number(&probe[field]);
    let times = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        of("initialDelaySeconds"),
        of("timeoutSeconds"),
        of("periodSeconds"),
        of("successThreshold"),
        of("failureThreshold")
    );
    let (exec, http, tcp, grpc) = (&probe["exec"], &probe["httpGet"], &probe["tcpSocket"], &probe["grpc"]);
    if exec.is_object() {
        let words: Vec<&str> = list(&exec["command"]).iter().filter_map(Value::as_str).collect();
        return format!("exec [{}] {times}", words.join(" "));
    }
    if http.is_object() {
        let scheme = text(http, "scheme").to_ascii_lowercase();
        let (host, port, path) = (text(http, "host"), plain(&http["port"]), text(http, "path"));
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        return format!("http-get {scheme}://{host}:{port}{path} {times}");
    }
    if tcp.is_object() {
        return format!("tcp-socket {}:{} {times}", text(tcp, "host"), plain(&tcp["port"]));
    }
    if grpc.is_object() {
        return format!("grpc <pod>:{} {} {times}", number(&grpc["port"]), text(grpc, "service"));
    }
    format!("unknown {times}")
}

fn variables_from(page: &mut TabbedPage, sources: &Value) {
    let sources = list(sources);
    if sources.is_empty() {
        return;
    }
    page.line(2, "Environment Variables from:");
    for source in sources {
        let (kind, of) = match &source["configMapRef"] {
            Value::Null => ("Secret", &source["secretRef"]),
            of => ("ConfigMap", of),
        };
        let (name, optional) = (text(of, "name"), of["optional"] == true);
        let prefix = match text(source, "prefix") {
            "" => String::new(),
            prefix => format!(" with prefix '{prefix}'"),
        };
        page.line(3, format!("{name}\t{kind}{prefix}\tOptional: {optional}"));
    }
}

fn variables(page: &mut TabbedPage, container: &Value, pod: Option<&Value>) {
    let all = list(&container["env"]);
    page.line(2, if all.is_empty() { "Environment:\t<none>" } else { "Environment:" });
    for variable in all {
        let (name, from) = (text(variable, "name"), &variable["valueFrom"]);
        if from.is_null() {
            let mut lines = text(variable, "value").split('\n');
            page.line(3, format!("{name}:\t{}", lines.next().unwrap_or_default()));
            lines.for_each(|line| page.line(3, format!("\t{line}")));
            continue;
        }
        for (field, kind) in [("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")] {
            let of = &from[field];
            if of.is_object() {
                let (key, owner, optional) = (text(of, "key"), text(of, "name"), of["optional"] == true);
                let told = format!("<set to the key '{key}' {kind} '{owner}'>\tOptional: {optional}");
                page.line(3, format!("{name}:\t{told}"));
            }
        }
        if from["fieldRef"].is_object() {
            let (version, path) =
                (text(&from["fieldRef"], "apiVersion"), text(&from["fieldRef"], "fieldPath"));
            let value = pod.map(|pod| field_of(pod, path)).unwrap_or_default();
            page.line(3, format!("{name}:\t{value} ({version}:{path})"));
        }
        if from["resourceFieldRef"].is_object() {
            let value = resources::of_variable(container, &from["resourceFieldRef"]);
            page.line(3, format!("{name}:\t{value} ({})", text(&from["resourceFieldRef"], "resource")));
        }
    }
}

/// What a path of the downward API leads to, as far as kubectl itself knows that.
fn field_of(pod: &Value, path: &str) -> String {
    let known = ["metadata.name", "metadata.namespace"];
    let field = path.strip_prefix("metadata.").filter(|_| known.contains(&path));
    field.map_or(String::new(), |field| text(&pod["metadata"], field).to_owned())
}

fn mounts(page: &mut TabbedPage, container: &Value) {
    let mut mounts: Vec<&Value> = list(&container["volumeMounts"]).iter().collect();
    mounts.sort_by_key(|mount| text(mount, "mountPath"));
    page.line(2, if mounts.is_empty() { "Mounts:\t<none>" } else { "Mounts:" });
    for mount in &mounts {
        let how = if mount["readOnly"] == true { "ro" } else { "rw" };
        let part = match text(mount, "subPath") {
            "" => String::new(),
            path => format!(",path={path:?}"),
        };
        page.line(3, format!("{} from {} ({how}{part})", text(mount, "mountPath"), text(mount, "name")));
    }
    let mut devices: Vec<&Value> = list(&container["volumeDevices"]).iter().collect();
    devices.sort_by_key(|device| text(device, "devicePath"));
    if !devices.is_empty() {
        page.line(2, if mounts.is_empty() { "Devices:\t<none>" } else { "Devices:" });
    }
    for device in devices {
        page.line(3, format!("{} from {}", text(device, "devicePath"), text(device, "name")));
    }
}
