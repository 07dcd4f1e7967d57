"""Which committed files hold the same offsets: none of them can be replaced without the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.manifest import Manifest


def sharing_offsets(
    manifests: Iterable[Manifest], replaced: Collection[CommittedFile]
) -> Mapping[CommittedFile, tuple[CommittedFile, ...]]:
    """By file, the sorted files that it is bound to, itself included; without replaced files.

    Two files are bound where their slices share an offset of one generation, and through others.
    """
    groups: dict[CommittedFile, set[CommittedFile]] = {}
    for slices in _by_log(manifests, replaced, groups).values():
        slices.sort(key=lambda each: (each[0].first_offset, each[0].last_offset))
        furthest: tuple[FileSlice, CommittedFile] | None = None
        for held, file in slices:
            if furthest and held.first_offset <= furthest[0].last_offset:
                _bind(groups, file, furthest[1])
            if furthest is None or held.last_offset > furthest[0].last_offset:
                furthest = (held, file)
    return {file: tuple(sorted(group)) for file, group in groups.items()}


def _by_log(
    manifests: Iterable[Manifest],
    replaced: Collection[CommittedFile],
    groups: dict[CommittedFile, set[CommittedFile]],
) -> Mapping[tuple[int, int], list[tuple[FileSlice, CommittedFile]]]:
    """The slices by generation and partition; each file is a group of its own at first."""
    slices: defaultdict[tuple[int, int], list[tuple[FileSlice, CommittedFile]]] = defaultdict(list)
    for manifest in manifests:
        for landed in manifest.files:
            file = CommittedFile(manifest.plan.batch_id, landed.name)
            if file not in replaced:
                groups[file] = {file}
                for each in landed.slices:
                    slices[manifest.plan.ordinal, each.partition].append((each, file))
    return slices


def _bind(
    groups: dict[CommittedFile, set[CommittedFile]], one: CommittedFile, other: CommittedFile
) -> None:
    small, large = sorted((groups[one], groups[other]), key=len)
    if small is not large:
        large |= small
        for each in small:
            groups[each] = large
