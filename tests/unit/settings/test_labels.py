"""Labels of a feed, and who is told of it by them: what is accepted, and the words for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.settings.feeds import load_feed, read_feeds

HEAD = """\
feed: orders
source: {topic: orders}
schedule: {cron: "0 * * * *", start_date: 2026-11-01}
target: {root: /data/landing}
"""
NAMED = "a label's name is 1 to 32 of a-z, 0-9, '_', begins with a letter, and is not 'feed'"
LINK = "it must be a link, http or https, without a user"
LINE = "it must be one line of 1 to 64 characters that can be seen"
SECRET = "it looks like a secret, which would show in pages, mails and metrics"


def labels_of(folder: Path, more: str) -> dict[str, str]:
    (folder / "orders.yaml").write_text(f"{HEAD}{more}\n")
    return dict(load_feed(folder, "orders").labels)


def test_labels_are_texts_as_they_were_written(tmp_path: Path) -> None:
    assert labels_of(tmp_path, "") == labels_of(tmp_path, "labels:") == {}
    told = "owner: ada@example.org, criticality: 1, on_call: yes, team: Größe 🚚"
    link = "https://wiki.example.org/a?b=(c)&d='e'#f"
    assert labels_of(tmp_path, f'labels: {{{told}, runbook: "{link}"}}') == {
        "owner": "ada@example.org",
        "criticality": "1",
        "on_call": "yes",
        "team": "Größe 🚚",
        "runbook": link,
    }
    (tmp_path / "_defaults.yaml").write_text("labels: {team: data, owner: ada}\n")
    assert labels_of(tmp_path, "labels: {owner: ben}") == {"team": "data", "owner": "ben"}


WRONG = [
    # (label, its value as it is written, what is wrong)
    ("Team", "a", f"'a' is not accepted: {NAMED}"),
    ("feed", "a", f"'a' is not accepted: {NAMED}"),
    ("a-b", "a", f"'a' is not accepted: {NAMED}"),
    ("x" * 33, "a", f"'a' is not accepted: {NAMED}"),
    ("team", '""', f"'' is not accepted: {LINE}"),
    ("team", '"  "', f"'  ' is not accepted: {LINE}"),
    ("team", '"a\\nb"', f"'a\\nb' is not accepted: {LINE}"),
    ("team", '"a\\u202eb"', f"'a\\u202eb' is not accepted: {LINE}"),
    ("team", '"a\\eb"', f"'a\\x1bb' is not accepted: {LINE}"),
    ("team", "x" * 65, f"'{'x' * 65}' is not accepted: {LINE}"),
    ("api_key", "hunter2", f"'***' is not accepted: {SECRET}"),
    ("runbook", '"https://h/?token=hunter2"', f"'***' is not accepted: {SECRET}"),
    ("runbook", '"javascript:alert(1)"', f"'javascript:alert(1)' is not accepted: {LINK}"),
    ("runbook", '"https://a:hunter2@h/"', f"'***' is not accepted: {SECRET}"),
    ("runbook", '"https://h/>)[x](<y"', f"'https://h/>)[x](<y' is not accepted: {LINK}"),
    ("runbook", '"https://a@h/"', f"'https://a@h/' is not accepted: {LINK}"),
    ("runbook", '"https://h/ a"', f"'https://h/ a' is not accepted: {LINK}"),
    ("runbook", '"https:///a"', f"'https:///a' is not accepted: {LINK}"),
    ("runbook", '"https://[h/"', f"'https://[h/' is not accepted: {LINK}"),
    ("runbook", "wiki", f"'wiki' is not accepted: {LINK}"),
    ("team", "", "nothing is not accepted: it does not read as text, put it in quotes"),
]


@pytest.mark.parametrize(("name", "value", "problem"), WRONG)
def test_a_label_that_could_do_harm_is_refused(
    tmp_path: Path, name: str, value: str, problem: str
) -> None:
    (tmp_path / "orders.yaml").write_text(f"{HEAD}labels:\n  {name}: {value}\n")
    (found,) = read_feeds(tmp_path).problems
    assert str(found).partition("orders.yaml")[2] == f":6: labels.{name}: {problem}"


@pytest.mark.parametrize(
    ("labels", "when", "is_told"),
    [
        ("{team: a}", "{}", True),
        ("{team: a}", "{labels: {team: a}}", True),
        ("{team: b}", "{labels: {team: a}}", False),
        ("{}", "{labels: {team: a}}", False),
        ("{team: a, tier: '1'}", "{labels: {team: a, tier: '1'}}", True),
        ("{team: a, tier: '2'}", "{labels: {team: a, tier: '1'}}", False),
    ],
)
def test_a_notifier_is_told_of_feeds_that_have_its_labels(
    tmp_path: Path, labels: str, when: str, is_told: bool
) -> None:
    (tmp_path / "_defaults.yaml").write_text(f"notify: [{{notifier: a.B, when: {when}}}]\n")
    (tmp_path / "orders.yaml").write_text(f"{HEAD}labels: {labels}\n")
    assert bool(load_feed(tmp_path, "orders").notifiers) == is_told
