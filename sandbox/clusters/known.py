"""Which clusters there are."""

from __future__ import annotations

from typing import Final

from sandbox.clusters.cluster import Cluster
from sandbox.clusters.ha import Ha
from sandbox.clusters.kafka_tls import KafkaTls
from sandbox.clusters.kerberos import Kerberos
from sandbox.clusters.ledger_tls import LedgerTls
from sandbox.clusters.standalone import Standalone
from sandbox.clusters.yarn import Yarn

CLUSTERS: Final[tuple[type[Cluster], ...]] = (
    Ha,
    KafkaTls,
    Kerberos,
    LedgerTls,
    Standalone,
    Yarn,
)
CLUSTER_NAMES: Final = tuple(each.name for each in CLUSTERS)
