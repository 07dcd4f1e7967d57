"""Imports Spark Connect's client without pandas, which takes longer than all the rest of it.

The client needs pandas for data frames of pandas alone, and imports it with its first line. Here
something else is imported under that name, which turns into pandas as soon as somebody asks for
more of it than the client's own modules do while they are imported.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final

_NAMES: Final = ("pandas", "pandas.api", "pandas.api.types")
_ONE_AT_A_TIME: Final = threading.Lock()


class _Later(ModuleType):
    """A module whose attributes are those of the real one, which is imported for the first."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            raise AttributeError(f"{self.__name__}.{attribute} while {self.__name__} is left out")
        return getattr(import_module(self.__name__), attribute)


@contextmanager
def pandas_left_out() -> Iterator[None]:
    """Modules that are imported in the block get pandas when they use it, and not before.

    Nothing is left out where pandas was imported before, or is not installed. No other thread may
    import pandas meanwhile.
    """
    with _ONE_AT_A_TIME:
        try:
            found = None if "pandas" in sys.modules else version("pandas")
        except PackageNotFoundError:
            found = None
        if found is None:
            yield
            return
        pandas, api, types = (_Later(each) for each in _NAMES)
        vars(pandas).update(__version__=found, DataFrame="pandas.DataFrame")  # for annotations
        for each in ("is_datetime64_dtype", "is_timedelta64_dtype"):
            vars(types)[each] = _later(each)
        sys.modules.update(zip(_NAMES, (pandas, api, types), strict=True))
        try:
            yield
        finally:
            for each in _NAMES:
                del sys.modules[each]
            del vars(pandas)["DataFrame"]


def _later(name: str) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        return getattr(import_module("pandas.api.types"), name)(*arguments)

    return function
