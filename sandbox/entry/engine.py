"""A container engine for docker-compose.yml: the one that answers, else one from Debian's packages.

The second is unpacked below the state directory, and not installed: it is started for a test, with
images and volumes of its own, and ended by its process number. Nothing of the machine's own is
changed but its packet filter, which is put back.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.entry.base_images import make_stand_ins
from sandbox.entry.console import SetupFailed, run, say, tail_of
from sandbox.entry.layout import SETUP_LOG, state_dir
from sandbox.entry.system import ensure_engine_helpers

# Of this suite, for it has Compose 2; its programs run on the suite before, too.
SUITE = "trixie"
PACKAGES = ("docker.io", "docker-cli", "docker-compose", "docker-buildx", "containerd", "tini")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
READY_SECONDS = 60.0
ANSWER_SECONDS = 20.0
FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")
ANY_NUMBER = 65_536
# The packet filter's tables that the daemon writes to, and the chains that each has of its own.
CHAINS: Mapping[str, Sequence[str]] = {
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
}


@dataclass(frozen=True, slots=True)
class Engine:
    """Where an engine's programs and its daemon are."""

    folder: Path | None
    """Of one that is unpacked and ours; None for the machine's own."""

    @property
    def environment(self) -> dict[str, str]:
        """What `docker` and `docker compose` run in."""
        if self.folder is None:
            return dict(os.environ)
        programs = [str(self.folder / "root/usr" / each) for each in ("bin", "sbin")]
        return {
            **os.environ,
            "PATH": os.pathsep.join([*programs, os.environ.get("PATH", os.defpath), "/usr/sbin"]),
            "DOCKER_HOST": f"unix://{self.folder}/run/docker.sock",
            "DOCKER_CONFIG": str(self.folder / "client"),
        }

    def answers(self, *arguments: str) -> bool:
        """True if `docker` with these arguments succeeds soon."""
        try:
            done = subprocess.run(
                ["docker", *arguments],
                env=self.environment,
                capture_output=True,
                check=False,
                timeout=ANSWER_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def ensure_engine() -> Engine:
    """The engine of this machine if it answers, else one that is unpacked; raises SetupFailed."""
    own = Engine(None)
    if own.answers("info") and own.answers("compose", "version"):
        return own
    if os.geteuid() != 0 or shutil.which("apt-get") is None or not KEYRING.exists():
        raise SetupFailed(
            "no container engine with Compose 2 answers here, and one is unpacked for root on "
            "Debian only. Next: start Docker, see that `docker compose version` and `docker info` "
            "succeed, and repeat."
        )
    ensure_engine_helpers()
    engine = Engine(state_dir() / "engine")
    if not (state_dir() / "engine" / "root").exists():
        _unpack(state_dir() / "engine")
    return engine


@contextlib.contextmanager
def running(engine: Engine, images: Mapping[str, str]) -> Iterator[None]:
    """The engine with these images in the block: one that is ours is started, and ended behind it.

    ``images``: the name of each base image, and the stage that is its stand-in. They are pulled
    where they are used; in an engine that is ours, where they can't be, stand-ins are made.
    """
    if engine.folder is None:
        yield
        return
    with _packet_filter_kept(engine.folder / "packet-filter.json"):
        daemon = _start(engine, engine.folder)
        try:
            make_stand_ins(engine.folder, engine.environment, images, mirror=_mirror())
            yield
        finally:
            daemon.terminate()
            daemon.wait()
            run(["ip", "link", "delete", "docker0"], log=SETUP_LOG)


def _start(engine: Engine, folder: Path) -> subprocess.Popen[bytes]:
    settings = {
        "data-root": str(folder / "data"),
        "exec-root": str(folder / "run" / "docker"),
        "pidfile": str(folder / "run" / "dockerd.pid"),
        "hosts": [engine.environment["DOCKER_HOST"]],
        "exec-opts": ["native.cgroupdriver=cgroupfs"],  # no systemd is asked
        "ip6tables": False,
        # A container's own limits may be above what this process may give.
        "default-ulimits": {
            name: {"Name": name, "Soft": limit, "Hard": limit}
            for name, limit in (
                ("nofile", _limit(resource.RLIMIT_NOFILE)),
                ("nproc", _limit(resource.RLIMIT_NPROC)),
            )
        },
    }
    (folder / "run").mkdir(exist_ok=True)
    (folder / "daemon.json").write_text(json.dumps(settings))
    log = folder / "dockerd.log"
    say(f"starting a container engine; its log: {log}")
    # It ends with this process, however that ends.
    argv = ["setpriv", "--pdeathsig", "TERM", "dockerd", "--config-file", f"{folder}/daemon.json"]
    with log.open("ab") as out:
        daemon = subprocess.Popen(argv, env=engine.environment, stdout=out, stderr=out)
    deadline = time.monotonic() + READY_SECONDS
    while not engine.answers("info"):
        if daemon.poll() is not None or time.monotonic() > deadline:
            daemon.terminate()
            daemon.wait()
            raise SetupFailed(
                f"the container engine does not start here; its log {log} ends with:\n"
                f"{tail_of(log)}\nNext: repeat on a machine whose root may make namespaces and "
                "change the packet filter, or where Docker runs."
            )
        time.sleep(0.5)
    return daemon


def _limit(kind: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return ANY_NUMBER if hard == resource.RLIM_INFINITY else min(hard, ANY_NUMBER)


@contextlib.contextmanager
def _packet_filter_kept(record: Path) -> Iterator[None]:
    """The packet filter is afterwards as it was; a table that was not there is empty.

    ``record``: what it was, until it is so again. Of a run that was killed it is there still.
    """
    if not record.exists():
        record.write_text(json.dumps({"rules": _rules(), "forwards": FORWARDS.read_text()}))
    before = json.loads(record.read_text())
    try:
        yield
    finally:
        subprocess.run(["iptables-restore"], input=before["rules"], text=True, check=True)
        FORWARDS.write_text(before["forwards"])
        record.unlink()


def _rules() -> str:
    """The packet filter's rules, as `iptables-restore` reads them."""
    found = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    for table, chains in CHAINS.items():
        if f"*{table}\n" not in found:
            kept = "".join(f":{chain} ACCEPT [0:0]\n" for chain in chains)
            found += f"*{table}\n{kept}COMMIT\n"
    return found


def _unpack(folder: Path) -> None:
    """Fetch the packages by an apt with a state of its own, and unpack them beside their place."""
    say(f"unpacking a container engine ({', '.join(PACKAGES)} of Debian {SUITE}) in {folder}")
    apt, fresh = folder / "apt", folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    for each in (apt / "lists/partial", apt / "archives/partial", fresh, folder / "client"):
        each.mkdir(parents=True, exist_ok=True)
    source = apt / "sources.list"
    source.write_text(f"deb [signed-by={KEYRING}] {_mirror()} {SUITE} main\n")
    places = {
        "Dir::Etc::sourcelist": source,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt,
    }
    argv = ["apt-get", "-q", *(f"-o{name}={place}" for name, place in places.items())]
    _require([*argv, "update"], "fetch Debian's list of packages")
    fetched = ["sh", "-c", 'cd "$0" && "$@"', str(apt), *argv, "download", *PACKAGES]
    _require(fetched, "fetch the engine's packages")
    for package in apt.glob("*.deb"):
        _require(["dpkg", "-x", str(package), str(fresh)], f"unpack {package.name}")
    plugins = folder / "client" / "cli-plugins"
    plugins.unlink(missing_ok=True)
    plugins.symlink_to(folder / "root/usr/libexec/docker/cli-plugins")
    fresh.rename(folder / "root")


def _require(argv: Sequence[str], what: str) -> None:
    if not run(argv, log=SETUP_LOG):
        raise SetupFailed(
            f"could not {what}:\n{tail_of(SETUP_LOG)}\nNext: check the network and apt's sources, "
            "or start a Docker of your own, and repeat."
        )


def _mirror() -> str:
    """Where this machine fetches Debian's packages from."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()
    fits = [each for each in told if each.rstrip("/").endswith("debian")]
    return fits[0] if fits else "http://deb.debian.org/debian"
