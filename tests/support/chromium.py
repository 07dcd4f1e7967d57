"""People who look at Airflow in Chromium, each with a profile of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    FrameLocator,
    Page,
    Request,
    expect,
    sync_playwright,
)

from sandbox.entry.system import ensure_chromium
from tests.support.busy import BUSY_SECONDS

FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Without a window; closed after the block."""
    expect.set_options(timeout=BUSY_SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Person:
    """Somebody at a browser; what it asks of other hosts, and what its console says, is kept."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._ask)
        self.page.on("console", self._say)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @property
    def frame(self) -> FrameLocator:
        """Tallystick's page inside Airflow's."""
        return self.page.frame_locator("iframe")

    def go(self, address: str) -> None:
        """Open an address of this Airflow."""
        self.page.goto(self.url + address)

    def sign_in(self, user: str, password: str) -> None:
        """On the log-in page, where the browser is."""
        self.page.locator("input").first.fill(user)
        self.page.locator("input[type=password]").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/auth/login" not in url)

    def _ask(self, request: Request) -> None:
        is_elsewhere = urlsplit(request.url).scheme in ("http", "https", "ws", "wss")
        if is_elsewhere and not request.url.startswith(self.url):
            self.complaints.append(f"asks {request.url}")

    def _say(self, message: ConsoleMessage) -> None:
        # Airflow's own pages say things of their own, and each of its frames is warned of.
        place = message.location.get("url", "")
        if message.type == "error" and "/tallystick/" in place + message.text:
            self.complaints.append(f"{message.text} ({place})")


@contextmanager
def at(browser: Browser, url: str, **look: object) -> Iterator[Person]:
    """A person with a fresh profile; the browser must have had nothing to complain of."""
    context = browser.new_context(**look)  # type: ignore[arg-type]
    try:
        context.set_default_timeout(BUSY_SECONDS * 1000)
        person = Person(context.new_page(), url)
        yield person
        assert not person.complaints, person.complaints
    finally:
        context.close()
