"""Base images for an engine of ours: pulled, or imitated where no registry can be reached.

A stand-in has what docker-compose.yml and the Dockerfile need of an image, from Debian's packages:
`sandbox/compose/stand_ins`. Trust and indexes are those of this machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.entry.console import SetupFailed, run, say, tail_of
from sandbox.entry.layout import ROOT, SETUP_LOG

STAGES = ROOT / "sandbox" / "compose" / "stand_ins"
SUITE = "bookworm"  # its Python is the images'
AUTHORITIES = Path("/usr/local/share/ca-certificates")
BARE = f"debian:{SUITE}-slim"
PULL_SECONDS = "120"


def make_stand_ins(
    folder: Path, environment: Mapping[str, str], images: Mapping[str, str], *, mirror: str
) -> None:
    """See that each image is there: its name, and the stage that imitates it; raises SetupFailed.

    ``folder`` is the engine's; what was made is kept in it.
    """
    missing = {
        name: stage
        for name, stage in images.items()
        if not _docker(environment, "image", "inspect", name)
    }
    if not missing or all(_pulled(environment, name) for name in missing):
        return
    say(
        f"no registry of images can be reached: {', '.join(missing)} are imitated by Debian's "
        f"packages, so this run says nothing of the real ones. What was tried: {SETUP_LOG}"
    )
    if not _docker(environment, "image", "inspect", BARE):
        root = folder / "bare"
        shutil.rmtree(root, ignore_errors=True)
        _require(["debootstrap", "--variant=minbase", SUITE, str(root), mirror], environment)
        packed = f"tar -C {root} -c . | docker import - {BARE}"
        _require(["sh", "-c", packed], environment)
        shutil.rmtree(root)
    context = _context(folder / "stand_ins")
    for name, stage in missing.items():
        argv = ["docker", "build", "-q", "--network", "host", "--target", stage, "-t", name]
        _require([*argv, str(context)], environment)


def _pulled(environment: Mapping[str, str], name: str) -> bool:
    return run(
        ["timeout", PULL_SECONDS, "docker", "pull", "-q", name], log=SETUP_LOG, env=environment
    )


def _context(folder: Path) -> Path:
    """The stages, with what this machine trusts and where it is told to fetch from."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(STAGES, folder)
    here = folder / "here"
    (here / "authorities").mkdir(parents=True)
    for each in AUTHORITIES.glob("**/*.crt"):
        shutil.copy(each, here / "authorities")
    index, more = (os.environ.get(f"PIP_{each}INDEX_URL", "") for each in ("", "EXTRA_"))
    pip = [f"index-url = {index}"] * bool(index) + [f"extra-index-url = {more}"] * bool(more)
    (here / "pip.conf").write_text("\n".join(["[global]", *pip, ""]))
    uv = [f'index-url = "{index}"'] * bool(index) + [f"extra-index-url = {more.split()}"]
    (here / "uv.toml").write_text("\n".join([*uv, ""]))
    maven = Path.home() / ".m2" / "settings.xml"
    (here / "settings.xml").write_text(maven.read_text() if maven.exists() else "<settings/>\n")
    return folder


def _docker(environment: Mapping[str, str], *arguments: str) -> bool:
    return run(["docker", *arguments], log=SETUP_LOG, env=environment)


def _require(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    if not run(argv, log=SETUP_LOG, env=environment):
        raise SetupFailed(
            f"a stand-in of a base image could not be made ({' '.join(argv)}):\n"
            f"{tail_of(SETUP_LOG)}\nNext: check the network, and repeat. Log: {SETUP_LOG}"
        )
