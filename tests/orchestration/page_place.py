"""Tallystick's app as Airflow mounts it, with a ledger of the test's own, and users who ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from tallystick.ledger.postgres import PostgresLedger
from tallystick.ports.ledger import Ledger
from tallystick.web.desk import PATIENCE

MOUNT = "/tallystick"


class PagePlace:
    """The mounted app; `dags_of` says which DAGs a user may read, all where it has no such user."""

    def __init__(self, opened: Callable[[], Ledger] | str) -> None:
        # Airflow's own imports warn of a library's test client: only tests that bear it may.
        from airflow.api_fastapi.app import init_auth_manager

        from tallystick.web.app import tallystick_app

        if isinstance(opened, str):
            dsn = opened
            opened = lambda: PostgresLedger(dsn, PATIENCE)  # noqa: E731
        self.manager = init_auth_manager()
        self.app = tallystick_app(opened)
        self._host = FastAPI()
        self._host.mount(MOUNT, self.app)

    def client(self, user: str | None = None, *, by_cookie: bool = False) -> Any:
        """A browser or a program of this user; of nobody, without a name."""
        from fastapi.testclient import TestClient  # warns of the library that it is made of

        client = TestClient(
            self._host, base_url=f"http://testserver{MOUNT}", follow_redirects=False
        )
        if user:
            if by_cookie:
                client.cookies.set("_token", self.token(user))
            else:
                client.headers["Authorization"] = f"Bearer {self.token(user)}"
        return client

    def token(self, user: str) -> str:
        """What this user's log-in gave."""
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        role = {"ada": "admin", "vera": "viewer", "otto": "viewer"}[user]
        known = SimpleAuthManagerUser(username=user, role=role)
        return str(self.manager.generate_jwt(known))

    def restrict(self, monkeypatch: Any, user: str, *dag_ids: str) -> None:
        """The user may read these DAGs only, as an auth manager with rights per DAG has it."""
        really = self.manager.is_authorized_dag

        def is_authorized(*, user: Any, details: Any = None, **rest: Any) -> bool:
            if user.username == name and (details is None or details.id not in dag_ids):
                return False
            return bool(really(user=user, details=details, **rest))

        name = user
        monkeypatch.setattr(self.manager, "is_authorized_dag", is_authorized)
