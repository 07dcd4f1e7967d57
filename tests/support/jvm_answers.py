"""What the Java process of a service tells of itself."""

from __future__ import annotations

import subprocess

import psutil

from sandbox.entry.system import ensure_java
from sandbox.service import Service


def jvm_of(service: Service) -> psutil.Process:
    """Its Java process: what starts it may be Python, or a shell."""
    return next(each for each in map(psutil.Process, service.members()) if each.name() == "java")


def jvm_answer(service: Service, command: str) -> str:
    """What it answers to a command of jcmd; raises CalledProcessError where it refuses."""
    argv = [str(ensure_java() / "bin" / "jcmd"), str(jvm_of(service).pid), command]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
