"""What all services on request share: they start, stop and tell clients of themselves as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from sandbox.service import Home, Service


class Cluster(ABC):
    """Services of one sandbox that are there only if they were asked for, under one name."""

    name: ClassVar[str]
    """What ``--with`` takes; each service's name begins with it."""
    title: ClassVar[str]
    """What people are told of it, such as "Kafka with TLS"."""

    def __init__(self, home: Home) -> None:
        self.home = home

    @property
    @abstractmethod
    def services(self) -> Sequence[Service]:
        """Its services, in the order in which they are told of."""

    @abstractmethod
    def connections(self) -> Mapping[str, str]:
        """``AIRFLOW_CONN_*`` variables, each a JSON document; values contain passwords.

        The ports are chosen by then; the services may not run yet.
        """

    @property
    def port_names(self) -> list[str]:
        """The names of all its ports."""
        return [name for service in self.services for name in service.port_names]

    @property
    def is_running(self) -> bool:
        """True while all its services run."""
        return all(service.is_running for service in self.services)

    def start(self) -> None:
        """Start what does not run, all at once, and return when each is really ready.

        Raises SandboxError. A cluster whose services need an order has a start of its own.
        """
        for service in self.services:
            service.start(wait=False)
        for service in self.services:
            service.wait()
