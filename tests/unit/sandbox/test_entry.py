"""What ``./tallystick`` prepares, what it refuses, and what it hands on."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from sandbox.entry import console, dispatch, engine, environment, jar_list, jars, layout, system
from sandbox.entry.console import SetupFailed

ENTRY = layout.ROOT / "tallystick"


def test_without_a_fitting_python_it_says_what_to_install() -> None:
    env = {"PATH": os.environ["PATH"], "TALLYSTICK_PYTHON": "/bin/false"}
    done = subprocess.run([ENTRY, "plan"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no Python 3.11, 3.12 or 3.13 found" in done.stderr
    assert "TALLYSTICK_PYTHON=" in done.stderr


def test_a_python_that_was_named_may_lie_in_any_folder(tmp_path: Path) -> None:
    python = tmp_path / "my pythons" / "python3.11"
    python.parent.mkdir()
    program(python, f'echo "$2" >> "{tmp_path}/started"')
    env = {"PATH": os.environ["PATH"], "TALLYSTICK_PYTHON": str(python)}
    subprocess.run([ENTRY, "plan"], env=env, check=True)
    started = (tmp_path / "started").read_text().splitlines()
    assert started[-1] == str(layout.ROOT / "sandbox" / "entry" / "start.py")


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What `./tallystick test` runs, which does not run; nothing is fetched."""
    runs: list[list[str]] = []
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: Path("python"))
    for name in ("ensure_java", "ensure_chromium", "ensure_jars"):
        monkeypatch.setattr(dispatch, name, lambda *_: None)

    def ran(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        runs.append(argv)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(dispatch.subprocess, "run", ran)
    return runs


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["test", "trouble"], ["tests/trouble", "tests/detector"]),
        (
            ["test", "airflow", "trouble", "-k", "unit"],
            ["tests/airflow", "tests/trouble", "tests/detector", "-k", "unit"],
        ),
        (["test", "all", "tests/repo", "-x"], ["tests/repo", "-x"]),
        (["test", "tests/repo"], ["tests/repo"]),
    ],
)
def test_several_kinds_of_tests_are_one_run(
    tested: list[list[str]], words: list[str], given: list[str]
) -> None:
    assert dispatch.main(words) == 0
    command = tested[-1]
    spread = {"-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder"}
    assert [each for each in command[3:] if each not in spread] == given


def test_without_an_engine_the_test_of_compose_says_why_not_and_fails(
    tested: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine.Engine, "answers", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert dispatch.main(["test", "compose"]) == 2
    assert tested == []
    assert "no container engine with Compose 2 answers here" in capsys.readouterr().err


def test_the_test_of_compose_hides_nothing_that_set_up_says(
    tested: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "ensure_engine", lambda: None)
    assert dispatch.main(["test", "compose"]) == 0
    assert tested[-1][3:] == ["tests/compose", "-s"]


@pytest.mark.parametrize(
    ("processors", "memory", "processes"),
    [(2, 16_000_000_000, "3"), (2, 8_000_000_000, "2"), (1, 1_000_000_000, "1")],
)
def test_all_tests_have_a_process_more_than_processors_if_memory_allows_it(
    monkeypatch: pytest.MonkeyPatch,
    tested: list[list[str]],
    processors: int,
    memory: int,
    processes: str,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    sizes = {"SC_PAGE_SIZE": 1_000, "SC_PHYS_PAGES": memory // 1_000}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    assert dispatch.main(["test"]) == 0
    command = tested[-1]
    assert command[command.index("-n") + 1] == processes
    assert "--ignore=tests/clusters" in command


@pytest.mark.parametrize(
    ("words", "ensured"),
    [
        (["land", "orders"], ["java", "spark-kafka"]),
        (["land", "--help"], []),
        (["repair", "orders"], ["java", "spark-kafka"]),
        (["repair", "orders", "--dry-run"], []),
        (["reconcile", "orders", "--level", "3"], ["java"]),
        (["reconcile", "orders", "--level=3"], ["java"]),
        (["reconcile", "orders"], []),
        (["report", "orders"], []),
    ],
)
def test_whatever_starts_spark_finds_java_and_the_jars_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, words: list[str], ensured: list[str]
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(dispatch, "ensure_java", lambda: asked.append("java"))
    monkeypatch.setattr(dispatch, "ensure_jars", asked.append)
    monkeypatch.setattr(os, "execve", lambda *_: None)
    dispatch.main(words)
    assert asked == ensured


@pytest.mark.parametrize("uid", [0, 1000])
def test_missing_java_is_asked_for_by_its_package(
    monkeypatch: pytest.MonkeyPatch, uid: int, tmp_path: Path
) -> None:
    refusing_apt(monkeypatch, tmp_path)
    monkeypatch.setattr(system, "java_home", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(SetupFailed, match="apt-get install openjdk-17-jre-headless"):
        system.ensure_java()


def test_missing_chromium_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing_apt(monkeypatch, tmp_path)
    with pytest.raises(SetupFailed, match="apt-get install chromium"):
        system.ensure_chromium()
    for name in ("chromium-browser", "chromium"):
        (tmp_path / name).touch(mode=0o755)
        assert system.ensure_chromium() == str(tmp_path / name)


def test_missing_maven_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing_apt(monkeypatch, tmp_path)
    with pytest.raises(SetupFailed, match="apt-get install maven"):
        system.ensure_maven()


def refusing_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with nothing on its PATH but an apt-get that fails."""
    program(tmp_path / "apt-get", "echo no network; exit 100")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system, "SETUP_LOG", tmp_path / "log")


def program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("release", "fits"),
    [('JAVA_VERSION="17.0.15"', True), ('JAVA_VERSION="21.0.1"', False), ("", False)],
)
def test_only_a_java_17_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, *, fits: bool
) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "java", "exit 0")
    (tmp_path / "release").write_text(f"IMPLEMENTOR=somebody\n{release}\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (system.java_home() == tmp_path) is fits


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Maven to be written, whose service ``kafka`` has one jar, with the letter a in it."""
    for module in (jars, jar_list):
        monkeypatch.setattr(module, "POMS", tmp_path / "poms")
    (tmp_path / "poms" / "kafka").mkdir(parents=True)
    (tmp_path / "poms" / "kafka" / "pom.xml").write_text("<project/>")
    list_jars(tmp_path, {"a.jar": "a"})
    monkeypatch.setattr(jars, "JARS", tmp_path / "jars")
    monkeypatch.setattr(jars, "FETCHED", tmp_path)
    monkeypatch.setattr(jars, "SETUP_LOG", tmp_path / "log")
    monkeypatch.setattr(jars, "ensure_java", lambda: tmp_path)
    monkeypatch.setattr(jars, "ensure_maven", lambda: str(tmp_path / "mvn"))
    return tmp_path / "mvn"


def list_jars(folder: Path, files: dict[str, str]) -> None:
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    lines = [f"{sha256}  {name}\n" for name, sha256 in sums.items()]
    (folder / "poms" / "kafka" / "jars.sha256").write_text("".join(lines))


def bringing(files: dict[str, str]) -> str:
    """What such a Maven does that brings these files."""
    into = 'for last; do :; done; cd "${last#-DoutputDirectory=}"'
    return "; ".join([into, *(f"printf {text} > {name}" for name, text in files.items())])


def test_an_unfinished_download_leaves_no_jars(maven: Path) -> None:
    program(maven, f"{bringing({'a.jar': 'a'})}; echo could not resolve; exit 1")
    with pytest.raises(SetupFailed, match="could not resolve"):
        jars.ensure_jars("kafka")
    assert list(jars.JARS.iterdir()) == []

    program(maven, bringing({"a.jar": "a"}))
    assert (jars.ensure_jars("kafka") / "a.jar").exists()
    program(maven, "exit 1")
    jars.ensure_jars("kafka")  # complete: Maven is not asked again


@pytest.mark.parametrize(
    ("brought", "told"),
    [
        ({"a.jar": "b", "c.jar": "c"}, ["a.jar has SHA-256 3e23e816"]),
        ({"c.jar": "c"}, ["a.jar is missing"]),
        ({"a.jar": "a", "c.jar": "c", "d.jar": "d"}, ["d.jar is not in the list"]),
        ({"a.jar": "b", "d.jar": "d"}, ["a.jar has", "c.jar is missing", "d.jar is not in"]),
    ],
    ids=["altered", "missing", "one too many", "all of it"],
)
def test_jars_that_are_not_the_listed_ones_are_told_and_not_kept(
    maven: Path, brought: dict[str, str], told: list[str]
) -> None:
    list_jars(maven.parent, {"a.jar": "a", "c.jar": "c"})
    program(maven, bringing(brought))
    with pytest.raises(SetupFailed, match=r"sandbox/poms/kafka/jars\.sha256") as refused:
        jars.ensure_jars("kafka")
    lines = str(refused.value).splitlines()
    files = [line.strip() for line in lines if line.startswith("    ")]
    assert len(files) == len(told)
    assert all(file.startswith(each) for file, each in zip(files, told, strict=True))
    assert lines[-1].startswith("Next: ")
    assert list(jars.JARS.iterdir()) == []


@pytest.mark.parametrize("changed", ["pom.xml", "jars.sha256"])
def test_jars_of_a_changed_pom_or_list_are_fetched_anew(maven: Path, changed: str) -> None:
    program(maven, bringing({"a.jar": "a"}))
    jars.ensure_jars("kafka")
    with (jars.POMS / "kafka" / changed).open("a") as file:
        file.write("\n" if changed == "pom.xml" else f"{'0' * 64}  b.jar\n")
    program(maven, "exit 1")
    with pytest.raises(SetupFailed, match="Maven could not fetch the jars of kafka"):
        jars.ensure_jars("kafka")
    assert (jars.JARS / "kafka" / "a.jar").exists()


@pytest.mark.parametrize(
    ("old", "kept"),
    [
        ("python==3.11.7\npyspark==4.0.4\nrich==1", True),
        ("python==3.12.1\npyspark==4.0.4\nrich==2", False),
        ("python==3.11.7\npyspark==4.0.3\nrich==2", False),
        (None, False),
    ],
    ids=["another package", "another Python", "another Spark", "killed set-up"],
)
def test_an_environment_is_changed_in_place_only_where_that_is_safe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str | None, *, kept: bool
) -> None:
    monkeypatch.setattr(environment, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(environment, "PYTHON", Path("/bin/sh"))
    if old is not None:
        (tmp_path / "stamp").write_text(old)
    assert environment._may_be_kept("python==3.11.7\npyspark==4.0.4\nrich==2") is kept


def test_hashes_are_no_reason_to_renew_an_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path / "requirements.txt")
    plain = "rich==1\nuv==2 ; python_version < '4'\n"
    hashed = plain.replace(
        "\n", " \\\n    --hash=sha256:12 \\\n    --hash=sha256:3\n    # via -r a\n"
    )
    stamps = set()
    for text in (plain, hashed):
        (tmp_path / "requirements.txt").write_text(text)
        stamps.add(environment._stamp())
    assert len(stamps) == 1
    assert stamps.pop().splitlines()[1:] == ["rich==1", "uv==2 ; python_version < '4'"]


def test_uv_itself_is_fetched_by_its_pin_and_its_hashes() -> None:
    first, *hashes = environment._pin_of_uv(layout.REQUIREMENTS.read_text()).splitlines()
    assert first.startswith("uv==")
    assert len(hashes) > 1
    assert all(each.strip().startswith("--hash=sha256:") for each in hashes)


def test_whoever_installs_asks_for_hashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "run", lambda argv, **_: ran.append(argv) or True)
    environment._install_by_uv("uv", {})
    environment._install_by_uv(None, {})
    environment._install_by_pip({})
    installs = [argv for argv in ran if "install" in argv]
    assert len(installs) == 4
    assert all("--require-hashes" in argv for argv in installs)


def test_pip_settings_reach_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CERT", "/certificates.pem")
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")
    env = environment.registry_environment()
    assert env["SSL_CERT_FILE"] == "/certificates.pem"
    assert env["UV_DEFAULT_INDEX"] == "https://packages.example/simple"


def test_connections_of_the_sandbox_never_replace_given_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TALLYSTICK_SANDBOX_DIR", str(tmp_path))
    monkeypatch.setenv("LEDGER_DSN", "postgresql://mine")
    monkeypatch.delenv("WEBHDFS_URL", raising=False)
    (tmp_path / "connections.json").write_text(
        json.dumps({"LEDGER_DSN": "postgresql://sandbox", "WEBHDFS_URL": "http://sandbox"})
    )
    env = dispatch._environment()
    assert (env["LEDGER_DSN"], env["WEBHDFS_URL"]) == ("postgresql://mine", "http://sandbox")
    assert "WEBHDFS_URL" not in dispatch._environment(connected=False)


def test_a_plain_address_of_the_caller_beats_the_sandbox_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_SANDBOX_DIR", str(tmp_path))
    for name in ("AIRFLOW_CONN_KAFKA_DEFAULT", "AIRFLOW_CONN_LEDGER_DEFAULT", "LEDGER_DSN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "mine:9092")
    names = ["AIRFLOW_CONN_KAFKA_DEFAULT", "AIRFLOW_CONN_LEDGER_DEFAULT"]
    (tmp_path / "connections.json").write_text(json.dumps(dict.fromkeys(names, "sandbox")))
    env = dispatch._environment()
    assert "AIRFLOW_CONN_KAFKA_DEFAULT" not in env
    assert env["AIRFLOW_CONN_LEDGER_DEFAULT"] == "sandbox"


def test_spark_runs_here_where_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    monkeypatch.setenv("TALLYSTICK_SANDBOX_DIR", "/nowhere")
    monkeypatch.setenv("SPARK_MASTER", "local[1]")
    assert json.loads(dispatch._environment()["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[1]"
    monkeypatch.setenv("SPARK_MASTER", "yarn")
    assert "AIRFLOW_CONN_SPARK_DEFAULT" not in dispatch._environment()


def test_a_broken_connections_file_is_told_and_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TALLYSTICK_SANDBOX_DIR", str(tmp_path))
    (tmp_path / "connections.json").write_text("{")
    dispatch._environment()
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "could not be read and is ignored" in seen.err


def test_a_second_setup_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    argv = ["flock", str(tmp_path / "lock"), "sh", "-c", "echo held; read _"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def let_go(text: str) -> None:
            said.append(text)
            holder.stdin.write("\n")
            holder.stdin.flush()

        monkeypatch.setattr(console, "say", let_go)
        with console.only_one(tmp_path / "lock", meanwhile="the jars come next"):
            assert holder.wait(10) == 0
    assert said == ["the jars come next"]


@pytest.mark.parametrize("words", [["foo"], ["tests/unit/nowhere"], ["Unit", "-x"]])
def test_tests_that_do_not_exist_are_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: pytest.fail("it began"))
    assert dispatch.main(["test", *words]) == 2
    said = capsys.readouterr().err
    assert f"there are no tests {words[0]!r};" in said
    assert (
        "accepted: unit, airflow, trouble, clusters, installed, sparks, compose, changed, all,"
        in said
    )
    assert "options of pytest" in said


@pytest.mark.parametrize(
    "words", [[], ["unit"], ["all", "-x"], ["-k", "foo"], ["tests/unit/cli/test_text.py::test_x"]]
)
def test_kinds_paths_and_options_of_tests_are_accepted(
    monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(dispatch, "_test", lambda python, rest: asked.append(rest) or 0)
    assert dispatch.main(["test", *words]) == 0
    assert asked == [words]
