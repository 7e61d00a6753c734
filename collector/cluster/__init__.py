"""The replicas that share the traces, and what a change of them means for traces under way."""

from collector.cluster.cluster_config import ClusterConfig
from collector.cluster.peer_watch import PeerWatch

__all__ = ["ClusterConfig", "PeerWatch"]
