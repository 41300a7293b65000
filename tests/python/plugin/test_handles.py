"""The fixtures for what is done to a whole cluster."""

import pytest

import kubarium

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name):
    return {"metadata": {"name": name}}


def test_a_fault_is_gone_with_its_test(kubarium_cluster, kubarium_faults):
    kubarium_faults.add(verbs=["create"], resources=["configmaps"], count=1, answer={"code": 503})
    with pytest.raises(kubarium.Refused) as refused:
        kubarium_cluster.request("POST", MAPS, config_map("refused"))
    assert refused.value.code == 503 and len(kubarium_faults.list()) == 1
    kubarium_cluster.request("POST", MAPS, config_map("refused"))
    kubarium_faults.clear()
    assert kubarium_faults.list() == []


def test_a_fault_may_be_gone_before_its_test(kubarium_cluster, kubarium_faults):
    kubarium_faults.add(verbs=["create"], resources=["configmaps"], count=1, answer={"code": 503})
    kubarium_cluster.kubarium("fault", "rm", "--all")
    kubarium_faults.clear()
    elsewhere = kubarium.cluster.Faults(kubarium_cluster).add(verbs=["create"], resources=["secrets"], latency="1ms")
    kubarium_faults.remove(elsewhere)
    assert kubarium_faults.list() == []
    # What follows the test meets it, too.
    kubarium_faults.add(verbs=["create"], resources=["configmaps"], count=1, answer={"code": 503})
    kubarium_cluster.kubarium("fault", "rm", "--all")


def test_time_stands_until_it_is_let_pass(kubarium_time):
    cluster = kubarium_time.cluster
    before = kubarium_time.now()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.request("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
    kubarium_time.until("deploy/web", "Available")
    there = kubarium_time.now()
    kubarium_time.pass_("1h")
    assert before <= there and (kubarium_time.now() - there).total_seconds() == 3600
    ready = cluster.request("GET", "/api/v1/nodes")["items"][0]["status"]["conditions"][-1]
    assert (ready["type"], ready["status"]) == ("Ready", "True"), "nobody has seen time jump"


def test_an_answer_is_waited_for_as_long_as_it_may_take():
    assert kubarium.cluster._patience("1h30m500ms") == 60 + 5400.5
    assert kubarium.cluster._patience("30d") == kubarium.cluster.LONGEST


def test_settled_is_when_nothing_moves(kubarium_cluster):
    pod = {"metadata": {"name": "settles"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    kubarium_cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    kubarium_cluster.settle()
    assert kubarium_cluster.request("GET", "/api/v1/namespaces/default/pods/settles")["status"]["phase"] == "Running"


def test_each_test_has_a_fork_with_the_past_of_the_session(kubarium_cluster, kubarium_fork):
    namespace = kubarium_cluster.request("GET", "/api/v1/namespaces/default")
    assert kubarium_fork.request("GET", "/api/v1/namespaces/default")["metadata"]["uid"] == namespace["metadata"]["uid"]
    kubarium_fork.request("POST", MAPS, config_map("of-the-fork"))
    with pytest.raises(kubarium.Refused) as missing:
        kubarium_cluster.request("GET", f"{MAPS}/of-the-fork")
    assert missing.value.code == 404


def test_a_fork_has_forks_of_its_own(kubarium_cluster):
    with kubarium_cluster.fork() as child, child.fork() as grandchild, child.fork() as other:
        grandchild.request("POST", MAPS, config_map("of-the-grandchild"))
        assert len({fork.kubeconfig for fork in (child, grandchild, other)}) == 3
        with pytest.raises(kubarium.Refused) as missing:
            child.request("GET", f"{MAPS}/of-the-grandchild")
        assert missing.value.code == 404


def test_a_fork_ends_with_its_block(kubarium_cluster):
    with kubarium_cluster.fork("mine") as fork:
        names = lambda: [found["name"] for found in kubarium_cluster.request("GET", "/kubarium/v1/forks")["forks"]]
        assert fork.name == "mine" and "mine" in names()
    assert "mine" not in names()


def test_kubectl_and_kubarium_mean_the_fork(kubarium_cluster, kubarium_fork):
    kubarium_fork.kubectl("create configmap by-kubectl")
    kubarium_fork.kubarium("fault", "add", "of-the-fork", "--answer", "409", "--user", "nobody")
    assert [fault["name"] for fault in kubarium.Faults(kubarium_fork).list()] == ["of-the-fork"]
    assert kubarium.Faults(kubarium_cluster).list() == []
    with pytest.raises(kubarium.KubariumError, match="not found"):
        kubarium_cluster.kubectl("get configmap by-kubectl")


def test_what_has_ended_may_be_ended_again(kubarium_cluster):
    with kubarium_cluster.fork("twice") as fork:
        fork.stop()
    with kubarium_cluster.fork("elsewhere"):
        kubarium_cluster.kubarium("fork", "elsewhere", "--delete")
    with kubarium.Cluster("--apiserver-only") as cluster, cluster.fork():
        cluster.stop()


def test_a_fork_begins_where_there_was_a_cluster(kubarium_cluster):
    with pytest.raises(kubarium.Refused, match="resourceVersion 0 is from before") as refused:
        kubarium_cluster.fork(resource_version=0)
    assert refused.value.code == 400
