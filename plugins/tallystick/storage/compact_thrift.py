"""Thrift's compact protocol, as far as a Parquet footer and its page headers use it.

Nothing here knows Parquet: a struct is its fields by id, and what was read is written back as it
was (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    13
)
_INTEGERS: Final = (_I16, _I32, _I64)
_LONGEST_VARINT_BITS: Final = 63


@dataclass(slots=True)
class ThriftList:
    """A list, with the type that all of its elements have."""

    kind: int
    items: list[Any]


@dataclass(slots=True)
class ThriftStruct:
    """A struct: by field id, each field's type and value."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def __getitem__(self, field_id: int) -> Any:
        """The field's value; KeyError where there is none."""
        return self.fields[field_id][1]

    def get(self, field_id: int) -> Any:
        """The field's value; None where there is none."""
        return self.fields[field_id][1] if field_id in self.fields else None

    def with_fields(self, **changed: Any) -> ThriftStruct:
        """A copy with fields changed, named `f1`, `f2` and so on; None takes the field away.

        A field that is there keeps its type; an added one is a number of 64 bits.
        """
        fields = dict(self.fields)
        for name, value in changed.items():
            field_id = int(name[1:])
            if value is None:
                fields.pop(field_id, None)
            else:
                fields[field_id] = (fields.get(field_id, (_I64, 0))[0], value)
        return ThriftStruct(dict(sorted(fields.items())))


def read_struct(content: bytes | memoryview, position: int = 0) -> tuple[ThriftStruct, int]:
    """The struct that begins here, and the position after it; ValueError where none does."""
    try:
        return _read_struct(memoryview(content), position)
    except (IndexError, RecursionError) as error:
        raise ValueError(f"no Thrift struct at {position}") from error


def written(struct: ThriftStruct) -> bytes:
    """The struct as bytes."""
    return b"".join(_struct_bytes(struct))


def _read_struct(view: memoryview, position: int) -> tuple[ThriftStruct, int]:
    fields: dict[int, tuple[int, Any]] = {}
    field_id = 0
    while True:
        head = view[position]
        position += 1
        kind = head & 0x0F
        if kind == _STOP:
            return ThriftStruct(fields), position
        if head >> 4:
            field_id += head >> 4
        else:
            field_id, position = _read_number(view, position)
        if kind in (_TRUE, _FALSE):
            fields[field_id] = (_TRUE, kind == _TRUE)
        else:
            value, position = _read_value(view, position, kind)
            fields[field_id] = (kind, value)


def _read_value(view: memoryview, position: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _read_number(view, position)
    match kind:
        case 3 | 1 | 2:  # a byte; in lists a truth value is one, too
            return view[position], position + 1
        case 7:
            if position + 8 > len(view):
                raise ValueError(f"8 bytes at {position} reach past the end")
            return bytes(view[position : position + 8]), position + 8
        case 8:
            length, position = _read_varint(view, position)
            if position + length > len(view):
                raise ValueError(f"{length} bytes at {position} reach past the end")
            return bytes(view[position : position + length]), position + length
        case 9 | 10:
            return _read_list(view, position)
        case 12:
            return _read_struct(view, position)
        case _:
            raise ValueError(f"Thrift type {kind} at {position} is not read")


def _read_list(view: memoryview, position: int) -> tuple[ThriftList, int]:
    head = view[position]
    position += 1
    count, kind = head >> 4, head & 0x0F
    if count == 15:
        count, position = _read_varint(view, position)
    # Each element takes a byte at least.
    if count > len(view) - position:
        raise ValueError(f"{count} elements at {position} reach past the end")
    items = []
    for _ in range(count):
        value, position = _read_value(view, position, kind)
        items.append(value)
    return ThriftList(kind, items), position


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    found, shift = 0, 0
    while True:
        byte = view[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, position
        shift += 7
        if shift > _LONGEST_VARINT_BITS:
            raise ValueError(f"no number at {position}")


def _read_number(view: memoryview, position: int) -> tuple[int, int]:
    raw, position = _read_varint(view, position)
    return (raw >> 1) ^ -(raw & 1), position


def _struct_bytes(struct: ThriftStruct) -> Iterator[bytes]:
    before = 0
    for field_id, (kind, value) in struct.fields.items():
        said = (_TRUE if value else _FALSE) if kind == _TRUE else kind
        if 0 < field_id - before <= 15:
            yield bytes([(field_id - before) << 4 | said])
        else:
            yield bytes([said]) + _number_bytes(field_id)
        before = field_id
        if kind != _TRUE:
            yield from _value_bytes(kind, value)
    yield bytes([_STOP])


def _value_bytes(kind: int, value: Any) -> Iterator[bytes]:
    if kind in _INTEGERS:
        yield _number_bytes(value)
    elif kind in (_BYTE, _TRUE, _FALSE):
        yield bytes([value])
    elif kind == _DOUBLE:
        yield value
    elif kind == _BINARY:
        yield _varint_bytes(len(value)) + value
    elif kind == _STRUCT:
        yield from _struct_bytes(value)
    else:
        count = len(value.items)
        yield bytes([min(count, 15) << 4 | value.kind])
        if count >= 15:
            yield _varint_bytes(count)
        for each in value.items:
            yield from _value_bytes(value.kind, each)


def _number_bytes(number: int) -> bytes:
    return _varint_bytes((number << 1) ^ (number >> 63))


def _varint_bytes(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
