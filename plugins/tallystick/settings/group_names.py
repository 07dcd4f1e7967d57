"""Names of feeds that a pattern of topics has: file and topic are read back from them.

So who has a feed's name asks neither broker nor ledger which file declares it.
"""

from __future__ import annotations

import re
from typing import Final

OF_GROUP: Final = "--"
"""Stands between a group and a topic in a feed's name, and in no other one."""
# A feed's name is a directory, too: of lower-case letters, digits, `-` and `_`.
_ESCAPED: Final = re.compile("[._A-Z]")
_WRITTEN: Final = {".": "_-", "_": "__"}
_MEANT: Final = {"-": ".", "_": "_"}


def group_of(feed: str) -> str:
    """The file that declares the feed, and the ending of its DAGs' ids: mostly the feed's own name.

    >>> group_of("orders"), group_of("events--orders_-eu")
    ('orders', 'events')
    """
    return feed.partition(OF_GROUP)[0]


def is_of_group(feed: str, group: str) -> bool:
    """True for a feed of the group, which itself is none.

    >>> is_of_group("events--a", "events"), is_of_group("events", "events")
    (True, False)
    """
    return feed != group_of(feed) == group


def name_in_group(group: str, topic: str) -> str:
    """The feed of a group that lands this topic; `topic_in_group` reads the topic back.

    >>> name_in_group("events", "Orders.eu_1")
    'events--_orders_-eu__1'
    """
    return f"{group}{OF_GROUP}{_ESCAPED.sub(_escaped, topic)}"


def topic_in_group(feed: str) -> str | None:
    """The topic of a group's feed; None for a feed that is none.

    >>> topic_in_group("events--_orders_-eu__1"), topic_in_group("orders")
    ('Orders.eu_1', None)
    """
    group, mark, written = feed.partition(OF_GROUP)
    topic = re.sub("_(.)", lambda found: _MEANT.get(found[1], found[1].upper()), written)
    return topic if mark and name_in_group(group, topic) == feed else None


def _escaped(found: re.Match[str]) -> str:
    return _WRITTEN.get(found[0], f"_{found[0].lower()}")
