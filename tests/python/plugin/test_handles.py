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
