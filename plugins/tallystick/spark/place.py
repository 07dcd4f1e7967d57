"""The place where Spark runs decides who can read what is shipped with an application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tallystick.settings.spark_connection import SparkConnection

_KEYTAB: Final = "principal.keytab"
_PRIVATE: Final = ("AIRFLOW_", "_AIRFLOW_", "LEDGER_DSN")


@dataclass(frozen=True, slots=True)
class SparkPlace(SparkConnection):
    """Spark runs here, as its connection says."""

    hadoop_user: str | None = None
    """As whom files are written where HDFS believes what it is told; None: the process's user."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The variables of Spark's programs here: what they need, and what they may inherit.

        Connections and Airflow's settings hold passwords. Spark needs none of them, and shows its
        environment to who may ask.
        """
        found = {name: each for name, each in inherited.items() if not name.startswith(_PRIVATE)}
        if self.is_local:
            found["SPARK_LOCAL_IP"] = "127.0.0.1"  # or the driver's ports are open to the network
        if self.hadoop_user:
            found["HADOOP_USER_NAME"] = self.hadoop_user
        if self.hadoop_conf:
            found["HADOOP_CONF_DIR"] = self.hadoop_conf
            found.pop("YARN_CONF_DIR", None)  # or files of another cluster mix in
        return found

    def with_keytab_in(self, directory: Path) -> SparkPlace:
        """The same place, with the keys that it holds in a file of this private directory."""
        if self.keys is None:
            return self
        file = directory / _KEYTAB
        file.touch(mode=0o600)
        file.write_bytes(self.keys.get_secret_value())
        return replace(self, keytab=str(file), keys=None)

    def login(self) -> list[str]:
        """Options by which Spark's programs log in to Kerberos; none where they need not."""
        if self.principal and self.keytab:
            return ["--principal", self.principal, "--keytab", self.keytab]
        return []

    @property
    def is_local(self) -> bool:
        """True when driver and executors are one process on this machine."""
        return self.master.startswith("local")

    @property
    def is_on_kubernetes(self) -> bool:
        """True where a pod may run the driver."""
        return self.master.startswith("k8s")

    @property
    def is_yarn_cluster(self) -> bool:
        """True when a container of YARN runs the driver, which nobody here can end by a signal."""
        return self.master == "yarn" and self.deploy_mode == "cluster"

    def log_command(self, application_id: str) -> str | None:
        """Returns what prints a driver's log; None where the driver has written it into our own."""
        if self.deploy_mode == "client":
            return None
        if self.is_yarn_cluster:
            return f"yarn logs -applicationId {application_id}"
        return f"kubectl logs -l spark-app-selector={application_id},spark-role=driver"

    @property
    def ships_files(self) -> bool:
        """True: spark-submit sends files with each application."""
        return True

    @property
    def needs_placed_secrets(self) -> bool:
        """True when anybody who reaches the driver's port could read secrets that are shipped.

        A driver in client mode serves files to executors without asking who they are, whatever
        `spark.authenticate` says. YARN ships by a private directory of HDFS instead.
        """
        return self.deploy_mode == "client" and not self.is_local and self.master != "yarn"
