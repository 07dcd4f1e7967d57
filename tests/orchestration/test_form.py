"""The form of a manual run, as Airflow checks what a person typed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tallystick.settings.feed import Feed


def a_feed(until: str = "now") -> Feed:
    return Feed.model_validate(
        {
            "feed": "orders",
            "source": {"topic": "orders"},
            "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
            "plan": {"until": until},
            "target": {"root": "/landing"},
        }
    )


def test_the_form_left_alone_is_valid() -> None:
    from tallystick.orchestration.ingest import form

    assert {name: param.resolve() for name, param in form(a_feed()).items()} == {
        "window_start": None,
        "window_end": None,
        "dry_run": False,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("window_start", 5), ("window_end", True), ("dry_run", "yes"), ("dry_run", None)],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    from tallystick.orchestration.ingest import form

    with pytest.raises(ParamValidationError):
        form(a_feed())[name].resolve(value)


def test_every_field_says_what_it_is() -> None:
    from tallystick.orchestration.ingest import form

    for param in form(a_feed()).values():
        assert param.description
        assert param.schema["title"]


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("now", "a run with an old window puts current records under that window"),
        ("now", "lands all that is readable now, and the window is only its label"),
        ("window_end", "each record lands under its own window"),
        ("window_end", "A window that was landed before is a no-op"),
        ("window_end", "A run without an interval takes the newest window that is over."),
    ],
)
def test_the_form_says_where_records_go_before_an_old_window_is_given(
    until: str, words: str
) -> None:
    from tallystick.orchestration.ingest import form

    description = form(a_feed(until))["window_start"].description
    assert description
    assert words in description


@pytest.mark.parametrize("form_of", ["ingest", "repair"])
def test_the_form_says_where_a_dry_run_is_shown(form_of: str) -> None:
    from tallystick.orchestration import ingest, repair

    form = ingest.form(a_feed()) if form_of == "ingest" else repair.repair_form()
    assert "on the run's tab Tallystick" in (form["dry_run"].description or "")


def test_a_dry_run_says_that_unpausing_begins_the_scheduled_run_too() -> None:
    from tallystick.orchestration.ingest import form

    told = form(a_feed())["dry_run"].description or ""
    assert "'Unpause on trigger' also begins its scheduled run, which lands." in told


def test_digests_are_of_named_findings_or_of_all_that_were_open() -> None:
    from tallystick.errors import ConfigurationError
    from tallystick.orchestration.repair_conf import digests_of

    assert digests_of({"findings": "1, 2", "evidence": " 0A1b2c3d, ffffffff"}) == (
        "0a1b2c3d",
        "ffffffff",
    )
    assert digests_of({"evidence": "0a1b2c3d"}) == ("0a1b2c3d",)
    assert digests_of({}) == ()
    with pytest.raises(ConfigurationError):
        digests_of({"evidence": "all of it"})


@pytest.mark.parametrize("text", ["0a1b2c3", "0a1b2c3g", "0a1b2c3d;0a1b2c3d", "'"])
def test_what_is_no_digest_is_refused(text: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    from tallystick.orchestration.repair import repair_form

    with pytest.raises(ParamValidationError):
        repair_form()["evidence"].resolve(text)
