"""The fixtures, and the clients of Python with them, as the plugin's users write their tests."""

import asyncio
import os
import socket
import subprocess
import sys
import time

import pytest

import kubarium

NAMES = "/api/v1/namespaces/default/configmaps"


def eventually(what, ask):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = ask()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


def test_the_cluster_answers_requests_and_refuses_in_the_servers_words(kubarium_cluster):
    made = kubarium_cluster.request("POST", NAMES, config_map("plain"))
    assert made["metadata"]["uid"]
    with pytest.raises(kubarium.Refused, match='configmaps "plain" already exists') as refused:
        kubarium_cluster.request("POST", NAMES, config_map("plain"))
    assert (refused.value.code, refused.value.status["reason"]) == (409, "AlreadyExists")
    assert kubarium_cluster.request("GET", "/readyz") == "ok"


def test_kubectl_and_kubarium_mean_this_cluster(kubarium_cluster):
    assert kubarium_cluster.kubectl("get nodes -o name").split() == ["node/node-1", "node/node-2"]
    assert "test" in kubarium_cluster.kubarium("get", "clusters")
    with pytest.raises(kubarium.KubariumError, match='"nobody" not found'):
        kubarium_cluster.kubectl("get", "pod", "nobody")


def test_the_session_has_one_cluster_and_the_variable_is_the_tests(kubarium_cluster, kubarium_kubeconfig):
    assert os.environ["KUBECONFIG"] == kubarium_kubeconfig == kubarium_cluster.kubeconfig


def test_a_cluster_ends_with_its_block_and_leaves_no_file():
    with kubarium.Cluster("--apiserver-only") as cluster:
        folder = os.path.dirname(cluster.kubeconfig)
        process = cluster._process
        assert cluster.request("GET", "/version")["major"] == "1"
    assert process.returncode == 0 and not os.path.exists(folder)


def test_a_cluster_ends_when_its_test_is_killed():
    lines = "import kubarium, os; c = kubarium.Cluster('--apiserver-only'); print(c.server, flush=True); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -9
    host, port = killed.stdout.strip().removeprefix("https://").split(":")

    def is_gone():
        with socket.socket() as asking:
            return asking.connect_ex((host, int(port))) != 0

    eventually("the cluster to end", is_gone)


def test_a_cluster_that_nobody_stops_leaves_no_file():
    lines = """
import kubarium, os
cluster = kubarium.Cluster("--apiserver-only")
if os.fork() == 0:
    raise SystemExit  # A child only seems to have it.
os.wait()
assert cluster.request("GET", "/readyz") == "ok"
print(os.path.dirname(cluster.kubeconfig))
"""
    folder = subprocess.run([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert folder and not os.path.exists(folder)


def test_a_flag_that_is_wrong_is_told():
    with pytest.raises(kubarium.KubariumError, match="--seed many: must be a whole number"):
        kubarium.Cluster("--seed=many")


def test_kubernetes(kubarium_kubeconfig):
    from kubernetes import client, config

    config.load_kube_config(kubarium_kubeconfig)
    api = client.CoreV1Api()
    api.create_namespaced_config_map("default", config_map("kubernetes"))
    assert api.read_namespaced_config_map("kubernetes", "default").data == {"a": "b"}


def test_kubernetes_asyncio(kubarium_kubeconfig):
    from kubernetes_asyncio import client, config, watch

    async def session():
        await config.load_kube_config(kubarium_kubeconfig)
        async with client.ApiClient() as api_client:
            api = client.CoreV1Api(api_client)
            await api.create_namespaced_config_map("default", config_map("asyncio"))
            async with watch.Watch().stream(
                api.list_namespaced_config_map, "default", field_selector="metadata.name=asyncio"
            ) as events:
                async for event in events:
                    return event["type"], event["object"].data

    assert asyncio.run(session()) == ("ADDED", {"a": "b"})


def test_lightkube(kubarium_kubeconfig):
    from lightkube import Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    api = Client(KubeConfig.from_file(kubarium_kubeconfig))
    api.create(ConfigMap(metadata=ObjectMeta(name="lightkube", namespace="default"), data={"a": "b"}))
    assert api.get(ConfigMap, "lightkube", namespace="default").data == {"a": "b"}
    assert api.apply(
        ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="lightkube", namespace="default"), data={"c": "d"}),
        field_manager="test", force=True,
    ).data == {"a": "b", "c": "d"}


def test_kr8s(kubarium_kubeconfig):
    import kr8s
    from kr8s.objects import Pod

    api = kr8s.api(kubeconfig=kubarium_kubeconfig)
    pod = Pod({"metadata": {"name": "kr8s", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}, api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=60)
    assert "kr8s" in [found.name for found in api.get("pods", namespace="default")]


def test_kopf(kubarium_cluster, kubarium_kubeconfig):
    from kopf.testing import KopfRunner

    operator = os.path.join(os.path.dirname(__file__), "operator_of_maps.py")
    with KopfRunner(["run", "--standalone", "--namespace", "default", operator]) as runner:
        kubarium_cluster.request("POST", NAMES, config_map("kopf", labels={"wanted": "yes"}))
        seen = lambda: kubarium_cluster.request("GET", f"{NAMES}/kopf")["metadata"].get("annotations", {}).get("seen")
        assert eventually("the operator to write", seen) == "b"
    assert runner.exit_code == 0, runner.output
