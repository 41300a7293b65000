"""A session of the Python client over TLS: what an operator written in Python does.

Ends with a traceback when anything is not as the real server answers it.
"""

import sys
import time

from kubernetes import client, config, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient


def expect(found, wanted, what):
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def eventually(what, ask):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if ask():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def refused(call, code, reason):
    try:
        call()
    except ApiException as error:
        expect(error.status, code, "status")
        assert f'"reason":"{reason}"' in error.body.replace(" ", ""), error.body
        return
    raise AssertionError(f"{reason} was expected")


def discovery(api):
    expect(client.VersionApi(api).get_code().major, "1", "major version")
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", "rbac.authorization.k8s.io"} <= groups, groups
    names = {resource.name for resource in client.CoreV1Api(api).get_api_resources().resources}
    assert {"pods", "pods/log", "services", "nodes/status"} <= names, names


def config_maps(core):
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"a": "1"})
    created = core.create_namespaced_config_map("default", body)
    refused(lambda: core.create_namespaced_config_map("default", body), 409, "AlreadyExists")
    created.data["a"] = "2"
    replaced = core.replace_namespaced_config_map("settings", "default", created)
    refused(lambda: core.replace_namespaced_config_map("settings", "default", created), 409, "Conflict")
    patched = core.patch_namespaced_config_map("settings", "default", {"data": {"b": "3"}})
    expect(patched.data, {"a": "2", "b": "3"}, "patched data")
    seen = []
    watcher = watch.Watch()
    version = replaced.metadata.resource_version
    stream = watcher.stream(
        core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=30
    )
    core.delete_namespaced_config_map("settings", "default")
    for event in stream:
        if event["object"].metadata.name == "settings":
            seen.append(event["type"])
        if seen == ["MODIFIED", "DELETED"]:
            watcher.stop()
    expect(seen, ["MODIFIED", "DELETED"], "events")
    refused(lambda: core.read_namespaced_config_map("settings", "default"), 404, "NotFound")


def pages(core):
    for number in range(5):
        metadata = client.V1ObjectMeta(name=f"page-{number}", labels={"of": "book"})
        core.create_namespaced_secret("default", client.V1Secret(metadata=metadata, string_data={"k": "v"}))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_secret("default", label_selector="of=book", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    expect(names, [f"page-{number}" for number in range(5)], "pages")
    core.delete_collection_namespaced_secret("default", label_selector="of=book")
    expect(core.list_namespaced_secret("default", label_selector="of=book").items, [], "what is left")


def workload(api, core):
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    container = client.V1Container(name="web", image="nginx:1.27", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template
    )
    body = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    apps.create_namespaced_deployment("default", body)
    ready = lambda: apps.read_namespaced_deployment_status("web", "default").status.ready_replicas
    eventually("two pods", lambda: ready() == 2)
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    eventually("three pods", lambda: ready() == 3)
    pods = core.list_namespaced_pod("default", label_selector="app=web", field_selector="status.phase=Running")
    expect(len(pods.items), 3, "running pods")
    core.read_namespaced_pod_log(pods.items[0].metadata.name, "default")
    metadata = client.V1ObjectMeta(name="web")
    service = client.V1ServiceSpec(selector=labels, ports=[client.V1ServicePort(port=80)])
    core.create_namespaced_service("default", client.V1Service(metadata=metadata, spec=service))
    slices = client.DiscoveryV1Api(api)
    addresses = lambda: sum(
        len(found.endpoints or [])
        for found in slices.list_namespaced_endpoint_slice(
            "default", label_selector="kubernetes.io/service-name=web"
        ).items
    )
    eventually("three endpoints", lambda: addresses() == 3)
    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    left = lambda: core.list_namespaced_pod("default", label_selector="app=web").items
    eventually("the pods to go", lambda: not left())


def dynamic(api):
    resources = DynamicClient(api)
    maps = resources.resources.get(api_version="v1", kind="ConfigMap")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": "v"}}
    applied = resources.server_side_apply(
        maps, body=manifest, name="applied", namespace="default", field_manager="python"
    )
    expect(applied.metadata.managedFields[0].manager, "python", "manager")
    expect(applied.metadata.managedFields[0].operation, "Apply", "operation")


def manifests(api):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    }
    utils.create_from_dict(api, role)
    review = client.V1SubjectAccessReview(
        spec=client.V1SubjectAccessReviewSpec(
            user="jane",
            resource_attributes=client.V1ResourceAttributes(namespace="default", verb="get", resource="pods"),
        )
    )
    authorization = client.AuthorizationV1Api(api)
    expect(authorization.create_subject_access_review(review).status.allowed, False, "before the binding")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    utils.create_from_dict(api, binding)
    allowed = lambda: authorization.create_subject_access_review(review).status.allowed
    eventually("jane to be allowed", allowed)


def main():
    config.load_kube_config(sys.argv[1])
    api = client.ApiClient()
    core = client.CoreV1Api(api)
    discovery(api)
    config_maps(core)
    pages(core)
    workload(api, core)
    dynamic(api)
    manifests(api)
    print("done")


main()
