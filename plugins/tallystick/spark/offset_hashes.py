"""A sum of hashes that tells one set of offsets from another, without a list of either.

It finds accidents, not forgers: of sets that differ by chance one in 2^64 has the sum of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.row_hash import SPARK_SEED, hash_long, wrapped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK: Final = 1 << 13
"""So many offsets stay in a processor's cache while they are hashed. For copies of 128 kB and more
the kernel would be asked each time, which takes as long as the hashing."""


def offset_hash_sum(offsets: OffsetRuns) -> int | None:
    """The sum of each offset's XXH64, as Spark hashes it, modulo 2^64, signed.

    None where numpy can't be loaded: a cluster's driver may lack it, or its processor be too old
    for it. Python alone takes too long.

    >>> offset_hash_sum(OffsetRuns.of([(3, 5)]))
    3593036533847674734
    """
    try:
        import numpy  # noqa: F401
    except (ImportError, RuntimeError):
        return None
    total = 0
    for block in _blocks(offsets):
        hashes = cast("NDArray[np.uint64]", hash_long(cast(int, block), SPARK_SEED))
        total += int(hashes.sum())
    return wrapped(total)


def _blocks(offsets: OffsetRuns) -> Iterator[NDArray[np.uint64]]:
    """Every offset once, so many at a time as a block holds."""
    firsts, counts, left = list[int](), list[int](), _BLOCK
    for first, until in offsets:
        while first < until:
            count = min(until - first, left)
            firsts.append(first)
            counts.append(count)
            first, left = first + count, left - count
            if not left:
                yield _listed(firsts, counts)
                firsts, counts, left = [], [], _BLOCK
    if counts:
        yield _listed(firsts, counts)


def _listed(firsts: list[int], counts: list[int]) -> NDArray[np.uint64]:
    """So many numbers from each of the first ones on."""
    import numpy as np

    each = np.array(counts)
    ends = np.cumsum(each)
    numbers = np.arange(ends[-1]) + np.repeat(np.array(firsts) - (ends - each), each)
    return cast("NDArray[np.uint64]", numbers.view(np.uint64))
