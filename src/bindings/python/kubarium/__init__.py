"""A whole Kubernetes in one process, for tests. See `Cluster`, and the fixtures of `kubarium.pytest_plugin`."""

from .cluster import Cluster, Faults, Fork, KubariumError, Refused, Time, program

__all__ = ["Cluster", "Faults", "Fork", "KubariumError", "Refused", "Time", "program"]
