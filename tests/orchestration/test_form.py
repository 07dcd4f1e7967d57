"""The form of a manual run, as Airflow checks what a person typed."""

from __future__ import annotations

import pytest


def test_the_form_left_alone_is_valid() -> None:
    from tallystick.orchestration.form import form

    assert {name: param.resolve() for name, param in form().items()} == {
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

    from tallystick.orchestration.form import form

    with pytest.raises(ParamValidationError):
        form()[name].resolve(value)


def test_every_field_says_what_it_is() -> None:
    from tallystick.orchestration.form import form

    for param in form().values():
        assert param.description
        assert param.schema["title"]
