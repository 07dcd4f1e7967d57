"""Where Spark runs, and who can read there what is shipped with an application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """Where Spark runs, as its connection says."""

    master: str
    deploy_mode: str = "client"
    jars: tuple[str, ...] = ()
    """Kafka's connector and what it needs, unless the cluster has it."""
    conf: Mapping[str, str] = field(default_factory=dict)
    spark_submit: str = "spark-submit"
    hadoop_user: str | None = None
    """As whom files are written where HDFS believes what it is told; None: the process's user."""
    kafka_secrets: str | None = None
    """Absolute path of the file with Kafka's secrets that lies on every node; None: there is none,
    so the file is shipped with each application."""

    @property
    def is_local(self) -> bool:
        """True when driver and executors are one process on this machine."""
        return self.master.startswith("local")

    @property
    def needs_placed_secrets(self) -> bool:
        """True when anybody who reaches the driver's port could read secrets that are shipped.

        A driver in client mode serves files to executors without asking who they are, whatever
        `spark.authenticate` says. YARN ships by a private directory of HDFS instead.
        """
        return self.deploy_mode == "client" and not self.is_local and self.master != "yarn"
