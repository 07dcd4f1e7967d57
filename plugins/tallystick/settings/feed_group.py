"""Many feeds of one file: each topic that matches a pattern is a feed; they share their DAGs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Annotated, Final, Literal

from pydantic import AfterValidator

from tallystick.errors import FeedUnknown
from tallystick.settings.feed import Accepted, Feed, FeedFile, Reading, Source, checked
from tallystick.settings.group_names import name_in_group, topic_in_group

_LONGEST_NAME: Final = 200
_INTERNAL: Final = "__"


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(str(error)) from None
    return text


class GroupSource(Reading):
    """The feeds of the group read these."""

    topics: Annotated[
        str,
        AfterValidator(checked(_pattern)),
        Accepted("a regular expression that matches whole names of topics, in quotes"),
    ]


class FeedGroup(FeedFile):
    """What a file says of all its feeds."""

    source: GroupSource
    dag: Annotated[Literal["shared"], Accepted("shared: the feeds of topics share their DAGs")] = (
        "shared"
    )

    @property
    def reads(self) -> str:
        """The pattern of topics."""
        return self.source.topics

    def feeds_among(self, topics: Iterable[str], named: Collection[str]) -> list[str]:
        """The feeds of those topics that match; not of internal ones, and none that is `named`."""
        matches = re.compile(self.source.topics).fullmatch
        return [
            name_in_group(self.name, each)
            for each in sorted(topics)
            if matches(each) and each not in named and not each.startswith(_INTERNAL)
        ]

    def feed(self, name: str, named: Collection[str] = ()) -> Feed:
        """The feed of that name; raises FeedUnknown where the group has none, or it can't be."""
        topic = topic_in_group(name)
        accepted = None
        if topic is None or name not in self.feeds_among([topic], ()):
            accepted = f"a feed of group {self.name}: {name_in_group(self.name, '')}<a topic that"
            accepted += f" matches {self.source.topics!r}>"
        elif topic in named:
            accepted = f"a topic that no other file names, not {topic}; retire the feed"
        elif len(name) > _LONGEST_NAME:
            accepted = f"{_LONGEST_NAME} characters: give the topic {topic} a file of its own"
        if topic is None or accepted:
            raise FeedUnknown("the feed's name", name, accepted or "", where=f"group {self.name}")
        same = {each: getattr(self, each) for each in FeedFile.model_fields}
        source = {each: getattr(self.source, each) for each in Reading.model_fields}
        if source["export_group"]:  # two feeds with one group's offsets would refuse each other's
            source["export_group"] += f".{topic}"
        # All of it was read from a file that is right.
        return Feed.model_construct(
            **{**same, "name": name, "source": Source.model_construct(topic=topic, **source)}
        )
