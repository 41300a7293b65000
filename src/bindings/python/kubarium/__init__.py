"""A whole Kubernetes in one process, for tests. See `Cluster`, and the fixtures of `kubarium.pytest_plugin`."""

from .cluster import Cluster, KubariumError, Refused, program

__all__ = ["Cluster", "KubariumError", "Refused", "program"]
