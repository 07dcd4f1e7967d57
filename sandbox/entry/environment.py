"""The virtual environment: made when missing, renewed when requirements.txt or Python changed.

A stamp inside it holds the versions it was made from; it is written last, so a killed set-up is
repeated. Whatever is installed has one of the hashes that stand beside its pin, uv itself too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

from sandbox.entry.console import SetupFailed, only_one, run, say, tail_of
from sandbox.entry.layout import (
    KERBEROS_REQUIREMENTS,
    REQUIREMENTS,
    SETUP_LOCK,
    SETUP_LOG,
    VENV,
)
from sandbox.entry.system import ensure_kerberos, install_venv_module

PYTHON = VENV / "bin" / "python"
STAMP = VENV / "tallystick-stamp.txt"


def ensure_environment() -> Path:
    """The Python of an environment that holds exactly what requirements.txt pins."""
    wanted = _stamp()
    if not _is_current(wanted):
        with only_one(SETUP_LOCK, meanwhile="waiting for another tallystick that sets up here"):
            if not _is_current(wanted):
                _make(wanted)
    return PYTHON


def ensure_kerberos_library() -> None:
    """Return when this environment can speak Kerberos: it is compiled the first time, in a minute.

    Not part of requirements.txt, for it needs Kerberos' headers and a compiler.
    """
    ensure_kerberos()
    with only_one(SETUP_LOCK, meanwhile="waiting for another tallystick that sets up here"):
        if importlib.util.find_spec("requests_gssapi") is not None:
            return
        say("compiling Python's Kerberos library (about a minute)")
        argv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--require-hashes"]
        argv += ["--python", sys.executable, "-r", str(KERBEROS_REQUIREMENTS)]
        if not run(argv, log=SETUP_LOG, env=registry_environment()):
            raise SetupFailed(
                f"Python's Kerberos library could not be compiled:\n{tail_of(SETUP_LOG)}"
            )
        importlib.invalidate_caches()


def _stamp() -> str:
    # Without hashes: they judge what comes in, and say nothing of what is there.
    lines = REQUIREMENTS.read_text().splitlines()
    pins = [line.removesuffix(" \\") for line in lines if not line.lstrip().startswith(("#", "--"))]
    return "\n".join([f"python=={sys.version.split()[0]}", *pins])


def _is_current(wanted: str) -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted


def _make(wanted: str) -> None:
    if VENV.exists() and not _may_be_kept(wanted):
        say("removing the old virtual environment")
        shutil.rmtree(VENV)
    STAMP.unlink(missing_ok=True)
    env = registry_environment()
    uv = shutil.which("uv")
    if not PYTHON.exists():
        say(f"making the virtual environment {VENV}")
        _create(uv, env)
    say("installing the pinned Python packages (about half a minute with a fast network)")
    if not _install_by_uv(uv, env):
        say("uv did not serve here; installing by pip, which takes longer")
        _install_by_pip(env)
    STAMP.write_text(wanted)


def _may_be_kept(wanted: str) -> bool:
    """True if the environment can be changed in place.

    Not with another Python, and not when a Spark pin moved: pyspark and pyspark-client unpack into
    one directory, so that removing either breaks the other.
    """
    if not (STAMP.exists() and PYTHON.exists()):
        return False

    def fixed(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("python==", "pyspark"))]

    return fixed(STAMP.read_text()) == fixed(wanted)


def registry_environment() -> dict[str, str]:
    """Our environment, with what pip was told about certificates and index told to uv as well."""
    env = dict(os.environ)
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        env.pop(name, None)
    # uv brings its own certificates unless told otherwise; the flag's name changed between its
    # versions.
    env.setdefault("UV_SYSTEM_CERTS", "true")
    env.setdefault("UV_NATIVE_TLS", "true")
    for ours, theirs in (
        ("SSL_CERT_FILE", "PIP_CERT"),
        ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ("UV_INDEX", "PIP_EXTRA_INDEX_URL"),
    ):
        if ours not in env and env.get(theirs):
            env[ours] = env[theirs]
    return env


def _create(uv: str | None, env: dict[str, str]) -> None:
    if uv is not None and run(
        [uv, "venv", "-q", "--python", sys.executable, str(VENV)], log=SETUP_LOG, env=env
    ):
        return
    if importlib.util.find_spec("ensurepip") is None:
        install_venv_module(f"{sys.version_info.major}.{sys.version_info.minor}")
    if not run([sys.executable, "-m", "venv", "--clear", str(VENV)], log=SETUP_LOG, env=env):
        raise SetupFailed(f"no virtual environment could be made in {VENV}:\n{tail_of(SETUP_LOG)}")


def _install_by_uv(uv: str | None, env: dict[str, str]) -> bool:
    if uv is None:
        only_uv = VENV / "uv.txt"
        only_uv.write_text(_pin_of_uv(REQUIREMENTS.read_text()))
        if not run(_pip(only_uv), log=SETUP_LOG, env=env):
            return False
        uv = str(VENV / "bin" / "uv")
    argv = [uv, "pip", "install", "-q", "--python", str(PYTHON), "--compile-bytecode"]
    return run([*argv, "--require-hashes", "-r", str(REQUIREMENTS)], log=SETUP_LOG, env=env)


def _pin_of_uv(requirements: str) -> str:
    """The lines of uv's pin and its hashes: what pip is given to fetch uv alone."""
    return "".join(re.findall(r"^uv==.*(?:\n +--hash=.*)*", requirements, re.MULTILINE))


def _pip(requirements: Path) -> list[str]:
    return [
        str(PYTHON), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements),
    ]  # fmt: skip


def _install_by_pip(env: dict[str, str]) -> None:
    if not run([str(PYTHON), "-m", "pip", "--version"], log=SETUP_LOG, env=env):
        run([str(PYTHON), "-m", "ensurepip"], log=SETUP_LOG, env=env)
    if not run(_pip(REQUIREMENTS), log=SETUP_LOG, env=env):
        raise SetupFailed(
            f"the Python packages could not be installed; the last words:\n{tail_of(SETUP_LOG)}\n"
            f"Next: check the network or pip's settings, then repeat the command. Log: {SETUP_LOG}"
        )
    # Without bytecode Airflow's commands take four times as long.
    run(
        [str(PYTHON), "-m", "compileall", "-q", "-j", "0", str(VENV / "lib")],
        log=SETUP_LOG,
        env=env,
    )
