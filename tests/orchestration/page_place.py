"""Tallystick's app as Airflow mounts it, with a ledger of the test's own, and users who ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from fastapi import FastAPI

from tallystick.ledger.ledger import Ledger
from tests.support.busy import BUSY_SECONDS

MOUNT = "/tallystick"
OWN = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
"""What a browser says of a form of our own page."""
ROLES = {"ada": "admin", "uma": "user", "ugo": "user", "vera": "viewer", "otto": "viewer"}


class PagePlace:
    """The mounted app; `dags_of` says which DAGs a user may read, all where it has no such user."""

    def __init__(
        self,
        opened: Callable[[], Ledger] | str,
        *,
        metrics_token: Callable[[], str | None] = lambda: None,
    ) -> None:
        # Airflow's own imports warn of a library's test client: only tests that bear it may.
        from airflow.api_fastapi.app import cached_app, get_auth_manager

        from tallystick.web.app import tallystick_app

        if isinstance(opened, str):
            dsn = opened
            opened = lambda: Ledger(dsn, timedelta(seconds=BUSY_SECONDS))  # noqa: E731
        airflow = cached_app(apps="core")
        # A reader waits long: these tests ask what is answered; how soon has tests of its own.
        self.manager = get_auth_manager()
        self.app = tallystick_app(opened, metrics_token, lambda: airflow, BUSY_SECONDS)
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

    def form_token(self, user: str, address: str) -> str:
        """What a page that was shown to this user has in its form to the address."""
        from tallystick.web.access import form_token_for

        return form_token_for(self.user(user), address)

    def send_form(
        self,
        user: str,
        address: str,
        sent: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer to the page's form, as a browser sends it from our page unless told else."""
        form = {**sent, "form_token": self.form_token(user, address)}
        return self.client(user, by_cookie=True).post(
            address, data=form, headers=OWN if headers is None else headers
        )

    def token(self, user: str) -> str:
        """What this user's log-in gave."""
        return str(self.manager.generate_jwt(self.user(user)))

    def user(self, user: str) -> Any:
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        return SimpleAuthManagerUser(username=user, role=ROLES[user])

    def restrict(self, monkeypatch: Any, user: str, *dag_ids: str) -> None:
        """The user may read these DAGs only, as an auth manager with rights per DAG has it."""
        really = self.manager.is_authorized_dag

        def is_authorized(*, user: Any, details: Any = None, **rest: Any) -> bool:
            if user.username == name and (details is None or details.id not in dag_ids):
                return False
            return bool(really(user=user, details=details, **rest))

        name = user
        monkeypatch.setattr(self.manager, "is_authorized_dag", is_authorized)
