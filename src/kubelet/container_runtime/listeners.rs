//! Who listens at a port of a pod, as far as that is known.

use machine::image_servers::{self, server};
use machine::servers::ContainerServer;
use machine::surroundings::{OpenPort, Surroundings, program_of};
use machine::web_servers;

use super::{declared, invocation};
use crate::kuberuntime::state::is_sidecar;
use apis::views::pod::{Container, Pod};

/// `kubarium.dev/listens: declared` in a pod's annotations: nobody listens but those whom it declares and
/// those who are known.
const LISTENS: &str = "kubarium.dev/listens";
const DECLARED: &str = "declared";

/// Who takes connections at a port of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Listener {
    /// An image of which nobody knows what it serves: wherever it is probed it is taken to be well, so that
    /// a chart of whatever images becomes ready. This is the one place that says so.
    Assumed,
    Nobody,
    /// Somebody whom another container of the pod may be or not, as it runs.
    Beside,
    Known(Box<ContainerServer>),
    /// Somebody whom the pod declares.
    Declared,
}

/// Who listens at `port` of the pod that `container` is in: all containers of a pod share its address, and
/// those of the host's network that of everybody on the node.
pub(crate) fn listener(pod: &Pod, container: &Container, port: i64) -> Listener {
    if u16::try_from(port).is_ok_and(|port| declared::listens(&pod.metadata.annotations, false, port)) {
        return Listener::Declared;
    }
    let sidecars = pod.spec.init_containers.iter().filter(|init| is_sidecar(init));
    let all = std::iter::once(container).chain(&pod.spec.containers).chain(sidecars);
    let mut is_certain = !pod.spec.host_network;
    for other in all {
        match served(other) {
            // Only who plays it, or reads its files, knows.
            Some(server) if server.is_scripted() || server.is_configured() => return Listener::Beside,
            Some(server) if server.listens(port) => {
                let is_own = other.name == container.name;
                return if is_own { Listener::Known(Box::new(server)) } else { Listener::Beside };
            }
            server => is_certain &= server.is_some(),
        }
    }
    if is_certain || is_all_declared(pod) { Listener::Nobody } else { Listener::Assumed }
}

/// Whether a pod says that it declares all who listen in it.
pub(super) fn is_all_declared(pod: &Pod) -> bool {
    pod.metadata.annotations.get(LISTENS).is_some_and(|listens| listens == DECLARED)
}

/// What a container serves; nothing when that is not known.
pub(super) fn served(container: &Container) -> Option<ContainerServer> {
    let mounts: Vec<&str> = container.volume_mounts.iter().map(|mount| mount.mount_path.as_str()).collect();
    let variables = container.env.iter().map(|variable| (variable.name.as_str(), variable.value.as_str()));
    server(&invocation::of(container), &mounts, &variables.collect::<Vec<_>>())
}

/// What a container serves whose files configure that, among what it found.
pub(super) fn configured(container: &Container, around: &Surroundings) -> Option<ContainerServer> {
    image_servers::configured(&invocation::of(container), around)
}

/// Whether a container serves files of its volumes, or what is known of it only when it runs says what.
pub(super) fn serves_volumes(container: &Container) -> bool {
    let mounts: Vec<&str> = container.volume_mounts.iter().map(|mount| mount.mount_path.as_str()).collect();
    web_servers::serves_volumes(&invocation::of(container), &mounts)
        || served(container).is_some_and(|server| server.is_configured() || server.shows_files())
}

/// Where servers of a pod listen, as who looks in sees it: those that are known, and those that it declares.
/// Where scripts listen is seen by playing them.
pub(super) fn open_ports(pod: &Pod) -> Vec<OpenPort> {
    let of_container = |container: &Container| {
        let ports = served(container).map(|server| server.ports()).unwrap_or_default();
        let program = program_of(&container.image).to_owned();
        ports.into_iter().map(move |(port, is_udp)| (port, is_udp, program.clone())).collect::<Vec<_>>()
    };
    let known = pod.spec.containers.iter().flat_map(of_container);
    let known = known.filter_map(|(port, is_udp, program)| {
        Some(OpenPort { port: u16::try_from(port).ok()?, is_udp, program })
    });
    let declared = declared::ports(&pod.metadata.annotations);
    let first = pod.spec.containers.first().map_or("", |container| program_of(&container.image));
    let declared =
        declared.into_iter().map(|(port, is_udp)| OpenPort { port, is_udp, program: first.to_owned() });
    let mut open: Vec<OpenPort> = known.chain(declared).collect();
    open.sort_by_key(|open| (open.is_udp, open.port));
    open.dedup_by_key(|open| (open.is_udp, open.port));
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::servers::Page;
    use serde_json::{Value, json};

    fn at(container: Value, port: i64) -> Listener {
        let spec = json!({"spec": {"containers": [container]}});
        let pod: Pod = serde_json::from_value(spec).unwrap();
        listener(&pod, &pod.spec.containers[0], port)
    }

    fn page(container: Value, port: i64, path: &str) -> Option<Page> {
        match at(container, port) {
            Listener::Known(server) => server.get(port, path).map(|pages| pages[0].1.clone()),
            _ => None,
        }
    }

    #[test]
    fn known_servers_have_their_pages() {
        let agnhost = |words: &[&str]| json!({"name": "a", "image": "e2e/agnhost:2", "args": words});
        let image = |image: &str| json!({"name": "a", "image": image});
        let (found, missing) = (Some(Page::Status(200)), Some(Page::Status(404)));
        let moved = Some(Page::Moved(302, "http://0.0.0.0/".into()));
        for (container, port, path, wanted) in [
            (agnhost(&["test-webserver"]), 80, "/", &found),
            (agnhost(&["test-webserver"]), 80, "/healthz", &missing),
            (agnhost(&["test-webserver", "--port", "8000"]), 8000, "/etc/hosts?x=y", &found),
            (agnhost(&["netexec", "--http-port=83"]), 83, "/healthz", &found),
            (agnhost(&["netexec"]), 8080, "/echo?msg=a&code=503", &Some(Page::Status(503))),
            (agnhost(&["netexec", "--http-override=/echo?code=404"]), 8080, "/", &missing),
            (agnhost(&["liveness"]), 8080, "/redirect?loc=http%3A%2F%2F0.0.0.0%2F", &moved),
            (agnhost(&["liveness"]), 8080, "/", &missing),
            (agnhost(&["serve-hostname"]), 9376, "/any", &found),
            (agnhost(&["guestbook"]), 80, "/any", &None),
            (agnhost(&["nettest"]), 8080, "/status", &None),
            (image("nginx:1.25"), 80, "/", &found),
            (image("nginx:1.25"), 80, "/healthz", &missing),
            (image("registry.k8s.io/e2e-test-images/httpd:2.4.38-4"), 80, "/index.html", &found),
            (image("example.com/team/nginx"), 80, "/", &None),
        ] {
            assert_eq!(page(container.clone(), port, path), *wanted, "{container} {port} {path}");
        }
    }

    #[test]
    fn nobody_listens_where_all_are_known() {
        let nginx = |extra: Value| {
            let mut container = json!({"name": "a", "image": "nginx"});
            json_patch::merge(&mut container, &extra);
            container
        };
        let mount = |path: &str| nginx(json!({"volumeMounts": [{"name": "v", "mountPath": path}]}));
        let script = json!({"name": "a", "image": "busybox", "command": ["sleep", "9"]});
        for (container, listener) in [
            (nginx(json!({})), Listener::Nobody),
            (mount("/data"), Listener::Nobody),
            (mount("/etc/nginx/conf.d"), Listener::Beside),
            (nginx(json!({"command": ["my-server"]})), Listener::Assumed),
            (json!({"name": "a", "image": "mine"}), Listener::Assumed),
            (script, Listener::Nobody),
        ] {
            assert_eq!(at(container.clone(), 8080), listener, "{container}");
        }
        let two = json!({"spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "mine"}]}});
        let pod: Pod = serde_json::from_value(two).unwrap();
        assert_eq!(listener(&pod, &pod.spec.containers[0], 9113), Listener::Assumed);
        assert_eq!(listener(&pod, &pod.spec.containers[1], 80), Listener::Beside);
        let metadata = json!({"annotations": {LISTENS: DECLARED}});
        let containers = json!([{"name": "a", "image": "nginx"}, {"name": "b", "image": "mine"}]);
        let declared = json!({"metadata": metadata, "spec": {"containers": containers}});
        let declared: Pod = serde_json::from_value(declared).unwrap();
        assert_eq!(listener(&declared, &declared.spec.containers[0], 9113), Listener::Nobody);
    }
}
