"""Level L2: committed files against the listing (A8, C1, U1), as a table."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.rules.a8_committed_file_missing import in_doubt
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.storage_witness import missing_or_changed
from tallystick.domain.rules.waivers import as_far_as_asked
from tallystick.domain.verdicts import Verdict
from tests.support.builders import a_file, a_manifest

ONE = a_file("one.parquet", FileSlice(0, 0, 4, 5), FileSlice(1, 7, 8, 2), length_bytes=1_000)
TWO = a_file("two.parquet", FileSlice(0, 5, 8, 4), length_bytes=900)
MANIFEST = a_manifest(files=(ONE, TWO))
AS_COMMITTED = {
    "one.parquet": StoredFile(1_000, ONE.checksum),
    "two.parquet": StoredFile(900, TWO.checksum),
}

# What storage shows, every finding with its partition and interval, and why.
ROWS: list[tuple[str, Mapping[str, StoredFile], list[str]]] = [
    ("as committed: length and checksum agree", AS_COMMITTED, []),
    (
        "one missing: every slice of the file is named",
        {"two.parquet": AS_COMMITTED["two.parquet"]},
        ["A8 0 [0, 5)", "A8 1 [7, 9)"],
    ),
    ("all missing: the directory is gone", {}, ["A8 0 [0, 5)", "A8 1 [7, 9)", "A8 0 [5, 9)"]),
    (
        "one shorter: whatever the checksum says",
        AS_COMMITTED | {"two.parquet": StoredFile(899, None)},
        ["C1 0 [5, 9)"],
    ),
    (
        "one longer: appended to",
        AS_COMMITTED | {"two.parquet": StoredFile(901, None)},
        ["C1 0 [5, 9)"],
    ),
    (
        "one changed: same length, other bytes",
        AS_COMMITTED | {"two.parquet": StoredFile(900, "crc32c:ffffffff")},
        ["C1 0 [5, 9)"],
    ),
    (
        "one shorter, and stored in another way: its length alone proves the change",
        AS_COMMITTED | {"two.parquet": StoredFile(899, "sha256:ff", "stored in another way")},
        ["C1 0 [5, 9)"],
    ),
    (
        "one without a checksum: no evidence is never OK",
        AS_COMMITTED | {"two.parquet": StoredFile(900, None)},
        ["C1 0 [5, 9)"],
    ),
    (
        "one more: a stray is another rule's business",
        AS_COMMITTED | {"three.parquet": StoredFile(5, None)},
        [],
    ),
]


@pytest.mark.parametrize(
    ("stored", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_is_missing_or_changed(stored: Mapping[str, StoredFile], expected: list[str]) -> None:
    found = list(missing_or_changed(MANIFEST, "/landing/orders", stored))
    told = [
        f"{each.code.value} {each.partition} [{each.from_offset}, {each.until_offset})"
        for each in found
    ]

    assert told == expected
    assert all(each.verdict is Verdict.PROVEN_LOSS for each in found)
    assert all("/landing/orders/" in each.cause for each in found)


def test_a_changed_file_names_both_sides() -> None:
    (length,) = missing_or_changed(
        MANIFEST, "/d", AS_COMMITTED | {"two.parquet": StoredFile(1, None)}
    )
    (checksum,) = missing_or_changed(
        MANIFEST, "/d", AS_COMMITTED | {"two.parquet": StoredFile(900, "crc32c:ffffffff")}
    )

    assert length.cause == "/d/two.parquet has 1 bytes, 900 were committed."
    assert checksum.cause == (
        "/d/two.parquet has checksum crc32c:ffffffff, crc32c:00000000 was committed."
    )


def test_a_file_that_could_not_be_asked_is_unknown_and_what_its_length_proves_is_told() -> None:
    unasked = StoredFile(900, None, "no DataNode.")
    (unknown,) = missing_or_changed(MANIFEST, "/d", AS_COMMITTED | {"two.parquet": unasked})
    shorter = StoredFile(899, None, "no DataNode.")
    both = list(missing_or_changed(MANIFEST, "/d", AS_COMMITTED | {"two.parquet": shorter}))

    assert (unknown.code, unknown.verdict) == (FindingCode.COULD_NOT_TELL, Verdict.UNKNOWN)
    assert [each.code.value for each in both] == ["U1", "C1"]
    assert both[1].evidence["checksum"] is None
    assert {each.subject for each in both} == {"two.parquet"}


def test_what_could_not_be_asked_is_as_on_record_while_all_else_is() -> None:
    def changed(length_bytes: int, checksum: str | None) -> Finding:
        stored = AS_COMMITTED | {"two.parquet": StoredFile(length_bytes, checksum)}
        (found,) = missing_or_changed(MANIFEST, "/d", stored)
        return found

    known = changed(899, "crc32c:ffffffff")
    assert as_far_as_asked(changed(899, None), [known]) == known
    for now in (changed(898, None), changed(899, "crc32c:eeeeeeee")):
        assert as_far_as_asked(now, [known]) == now
    assert as_far_as_asked(changed(899, None), []) == changed(899, None)


def test_rows_are_not_lost_while_anything_is_unread_and_stay_so_if_they_were() -> None:
    [lost] = missing_or_changed(MANIFEST, "/d", {"one.parquet": AS_COMMITTED["one.parquet"]})
    [found] = in_doubt([lost], (), ["/data/orders/gen=2"])
    assert found.verdict is Verdict.UNKNOWN
    assert "Nobody has looked in /data/orders/gen=2 now" in found.cause
    assert as_far_as_asked(found, [lost]) == lost, "it was lost before, and is so still"


def test_rows_are_not_lost_while_anything_is_unexplained_whatever_was_known() -> None:
    [lost] = missing_or_changed(MANIFEST, "/d", {"one.parquet": AS_COMMITTED["one.parquet"]})
    [found] = in_doubt([lost], ["/s/two", "/s/one"], ["/a"])
    assert (found.verdict, found.evidence["unexplained"]) == (Verdict.UNKNOWN, "/s/one")
    assert as_far_as_asked(found, [lost]) == found


def test_only_missing_files_of_a_listing_are_in_doubt() -> None:
    [changed] = missing_or_changed(
        MANIFEST, "/d", AS_COMMITTED | {"two.parquet": StoredFile(1, None)}
    )
    [lost] = missing_or_changed(MANIFEST, "/d", {"one.parquet": AS_COMMITTED["one.parquet"]})
    assert in_doubt([changed], ["/s"], ["/a"]) == [changed]
    assert in_doubt([lost], (), ()) == [lost]
