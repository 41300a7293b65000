"""Fixtures: a cluster for the session, and each test its own fork, time and faults."""

import shlex
import sys

import pytest

from .cluster import Cluster, Faults, Time


def pytest_addoption(parser):
    group = parser.getgroup("kubarium", "a Kubernetes cluster in one process")
    group.addoption("--kubarium-flag", action="append", default=[], help="a flag of kubarium up; may be repeated")
    parser.addini("kubarium_flags", "flags of kubarium up", default="")


def _flags(config):
    return [*shlex.split(config.getini("kubarium_flags")), *config.getoption("--kubarium-flag")]


@pytest.fixture(scope="session")
def kubarium_cluster(request):
    """One cluster for all tests of the session."""
    with Cluster(*_flags(request.config)) as cluster:
        yield cluster


@pytest.fixture
def kubarium_kubeconfig(kubarium_cluster, monkeypatch):
    """The path of its kubeconfig; `KUBECONFIG` says it, too."""
    monkeypatch.setenv("KUBECONFIG", kubarium_cluster.kubeconfig)
    # Some clients have looked at the variable when they were imported.
    for client in ("kubernetes", "kubernetes_asyncio"):
        loaded = sys.modules.get(f"{client}.config.kube_config")
        if loaded is not None:
            monkeypatch.setattr(loaded, "KUBE_CONFIG_DEFAULT_LOCATION", kubarium_cluster.kubeconfig)
    return kubarium_cluster.kubeconfig


@pytest.fixture
def kubarium_fork(kubarium_cluster):
    """A cluster of the test's own, with the past of `kubarium_cluster`."""
    with kubarium_cluster.fork() as fork:
        yield fork


@pytest.fixture
def kubarium_time(request):
    """A cluster of the test's own whose time stands still; `kubarium_time.cluster` is the cluster."""
    with Cluster(*_flags(request.config), "--clock", "stepped") as cluster:
        yield Time(cluster)


@pytest.fixture
def kubarium_faults(kubarium_cluster):
    """What goes wrong in `kubarium_cluster`, until the end of the test."""
    faults = Faults(kubarium_cluster)
    yield faults
    faults.clear()
