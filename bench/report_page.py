"""How large a report's page is, and how soon it is open: `python bench/report_page.py`.

Makes the page of 10,000 partitions over a year of hourly windows with a finding for each partition,
and opens it in headless Chromium several times, light, dark, and as wide as a phone. A page is open
when all its charts are drawn and its tables answer. `--pictures DIR` keeps what it looked like.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.measured import print_result
from tallystick.domain.report.coverage_map import MOST_COLUMNS
from tallystick.report.faces import face_of
from tests.support.report_documents import a_document, a_finding

HOURS_OF_A_YEAR = 8_760
PATIENCE_SECONDS = 30
SCENES = {
    "light": ("light", 1280, 2800),
    "dark": ("dark", 1280, 2800),
    "phone": ("light", 390, 3600),
    "phone-dark": ("dark", 390, 3600),
}


def main() -> None:
    """Make, open, print: one line for each scene."""
    arguments = _arguments()
    document = a_document(
        partitions=arguments.partitions,
        columns=MOST_COLUMNS,
        width=timedelta(hours=HOURS_OF_A_YEAR // MOST_COLUMNS),
        findings=[
            a_finding(each, cause=f"the log start passed these offsets of {each} before.")
            for each in range(arguments.findings)
        ],
    )
    began = time.perf_counter()
    html = face_of(document, "html")
    took = time.perf_counter() - began
    print(
        f"{arguments.partitions} partitions, {arguments.findings} findings,"
        f" {MOST_COLUMNS} x {len(document.coverage.blocks)} cells:"
        f" {len(html.encode()) / 1e6:.2f} MB, written in {took:.2f} s"
    )
    opened: dict[str, float] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        page = Path(scratch) / "report.html"
        page.write_text(html)
        with _browser(arguments.chromium, Path(scratch) / "profile") as browser:
            for name, (scheme, width, height) in SCENES.items():
                browser.look_like(scheme, width, height)
                times = [browser.opened(page.as_uri()) for _ in range(arguments.runs)]
                print(
                    f"{name:<11} open after {statistics.median(wall for wall, _ in times):.2f} s"
                    f" (of {', '.join(f'{wall:.2f}' for wall, _ in times)}),"
                    f" {statistics.median(work for _, work in times):.2f} CPU-s"
                )
                opened[name] = round(statistics.median(wall for wall, _ in times), 3)
                if arguments.pictures:
                    arguments.pictures.mkdir(parents=True, exist_ok=True)
                    (arguments.pictures / f"{name}.png").write_bytes(browser.picture())
            for said in browser.complaints:
                print(f"the browser says: {said}")
    figures = {"partitions": arguments.partitions, "written_seconds": round(took, 3)}
    figures |= {"bytes": len(html.encode()), "open_seconds": opened}
    print_result("report_page", arguments.runs, figures, {})


class Browser:
    """One tab of a headless Chromium, by its debugging protocol."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        # Of the page's thread, so that a busy machine does not count.
        self._ask("Performance.enable", timeDomain="threadTicks")

    def look_like(self, scheme: str, width: int, height: int) -> None:
        """Take this colour scheme and size from now on."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", features=features)
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def opened(self, address: str) -> tuple[float, float]:
        """Seconds until the page was open by its own clock, and of its thread's work."""
        self._ask("Page.navigate", url="about:blank")
        before = self._worked()
        self._ask("Page.navigate", url=address)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            asked = "document.documentElement.dataset.ready"
            found = self._ask("Runtime.evaluate", expression=asked)["result"].get("value")
            if found:
                return float(found) / 1000, self._worked() - before
            time.sleep(0.05)
        raise SystemExit(f"the page was not open after {PATIENCE_SECONDS} s: {self.complaints}")

    def _worked(self) -> float:
        metrics = self._ask("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])

    def _ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
            if message.get("id") == number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        """Errors, and any attempt to load something from elsewhere."""
        method, details = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"])[:500])
        if method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(details["entry"]["text"])
        if method == "Network.requestWillBeSent":
            address = details["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:", "about:")):
                self.complaints.append(f"it asks {address}")


@contextmanager
def _browser(program: str, profile: Path) -> Iterator[Browser]:
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = _port(profile / "DevToolsActivePort")
        with connect(_tab(port), max_size=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _port(file: Path) -> int:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if file.exists() and file.read_text().strip():
            return int(file.read_text().splitlines()[0])
        time.sleep(0.05)
    raise SystemExit("Chromium did not start")


def _tab(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/json") as answer:
        tabs = json.load(answer)
    return next(str(each["webSocketDebuggerUrl"]) for each in tabs if each["type"] == "page")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default="chromium", help="the browser's program")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--findings", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pictures", type=Path, help="a directory for screenshots")
    return parser.parse_args()


if __name__ == "__main__":
    main()
