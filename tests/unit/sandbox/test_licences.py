"""A licence is named where its maker says it plainly, and is unknown otherwise."""

from email.message import Message
from importlib.metadata import Distribution

import pytest

from sandbox.licences import java_parts, page, python_parts
from sandbox.licences.names import licence_named


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("MIT", "MIT"),
        ("apache-2.0", "Apache-2.0"),
        ("The Apache Software License, Version 2.0", "Apache-2.0"),
        ("GPL2 w/ CPE", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("Public Domain", "Public Domain"),
        ("BSD", None),
        ("BSD License", None),
        ("Apache Software License", None),
        ("UNKNOWN", None),
        ("", None),
    ],
)
def test_only_what_is_plain_has_a_name(said: str, named: str | None) -> None:
    assert licence_named(said) == named


def test_a_licence_has_one_row_and_those_with_copyleft_stand_first() -> None:
    table = page._table({"b": "MIT", "c": "Some OR GPL-2.0-or-later", "a": "MIT", "d": "MPL-2.0"})
    assert table.splitlines()[2:] == [
        "| MPL-2.0 | d |",
        "| Some OR GPL-2.0-or-later | c |",
        "| MIT | a, b |",
    ]


class Metadata(Distribution):
    """A distribution with these headers alone."""

    def __init__(self, *headers: tuple[str, str]) -> None:
        self._headers = headers

    @property
    def metadata(self) -> Message:
        message = Message()
        for name, text in (("Version", "1"), *self._headers):
            message[name] = text
        return message

    def read_text(self, filename: str) -> None: ...
    def locate_file(self, path: object) -> None: ...


BSD = ("Classifier", "License :: OSI Approved :: BSD License")
MIT = ("Classifier", "License :: OSI Approved :: MIT License")


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ([("License-Expression", "MIT OR Apache-2.0"), ("License", "BSD")], "MIT OR Apache-2.0"),
        ([("License", "UNKNOWN"), MIT], "MIT"),
        ([("License", "BSD 3-Clause License\n\nCopyright"), BSD], "BSD-3-Clause"),
        ([("License", "BSD License"), BSD], "unknown: BSD License; BSD License"),
        ([MIT, BSD], "unknown: "),
        ([], "unknown: "),
    ],
)
def test_the_most_exact_word_of_a_packages_metadata_counts(
    monkeypatch: pytest.MonkeyPatch, headers: list[tuple[str, str]], licence: str
) -> None:
    monkeypatch.setattr(python_parts, "distribution", lambda _: Metadata(*headers))
    assert python_parts._licence_of("some", "1") == licence
    assert python_parts._licence_of("some", "2") == "unknown: 1 is installed here"


def test_a_jar_has_the_licences_that_maven_names() -> None:
    said = dict(
        java_parts._said_of(
            "\nLists of 3 third-party dependencies.\n"
            "     (Apache-2.0) (The GNU General Public License (GPL), Version 2, With Classpath"
            " Exception) Some: part (of it) (org.some:some-part:1.2 - https://some.example)\n"
            "     (MIT) Some (org.some:some:1.2 - no url defined)\n"
            "     (Nobody's) Other (org.some:other_2.13:3 - no url defined)\n"
        )
    )
    two = "Apache-2.0, GPL-2.0-only WITH Classpath-exception-2.0"
    assert java_parts._licence_of("some-part-1.2.jar", said) == two
    assert java_parts._licence_of("some-part-1.2-linux-x86_64.jar", said) == two
    assert java_parts._licence_of("some-1.2.jar", said) == "MIT"
    assert java_parts._licence_of("other_2.13-3.jar", said) == "unknown: Nobody's"
    assert java_parts._licence_of("some-1.20.jar", said) == "unknown: not named by Maven"
