"""The shapes of results, from the notation of the catalogue: ``[.. rows cols>0]``."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple, Optional, Sequence

_TERM = re.compile(r"^(?:(\d+)\*)?([A-Za-z_]\w*)(?:\+(\d+))?$")


class _Length(NamedTuple):
    """The length of an axis: times·name + plus."""

    name: str  # "" for the number plus
    times: int
    plus: int


class _Notation(NamedTuple):
    """What a notation says of the axes of an operand."""

    axes: bool  # in brackets; else the factors of the number of elements
    leading: bool  # any number of axes come first
    lengths: tuple[_Length, ...]


@functools.lru_cache(maxsize=None)
def _parse(text: str) -> Optional[_Notation]:
    """Return the meaning of a notation, None if it says nothing of lengths."""
    axes = text.startswith("[")
    terms = text[1:-1].split() if axes else text[1:-1].split("*")
    leading = terms[:1] == [".."]
    lengths = []
    for term in terms[1:] if leading else terms:
        term = term.split(">")[0]
        match = _TERM.match(term)
        if term.isdigit():
            lengths.append(_Length("", 0, int(term)))
        elif match:
            lengths.append(_Length(match[2], int(match[1] or 1), int(match[3] or 0)))
        else:
            return None
    return _Notation(axes, leading, tuple(lengths)) if text else None


class Sizes:
    """What the operands that are given say about the lengths of axes."""

    __slots__ = ("names", "leading")

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.leading: Optional[tuple[int, ...]] = None

    def learn(self, notation: str, shape: Sequence[int]) -> None:
        """Take the lengths of an operand. The library checks whether they agree."""
        n = _parse(notation)
        if n is None:
            return
        if not n.axes:
            if len(n.lengths) == 1 and n.lengths[0].times == 1:
                self.names.setdefault(n.lengths[0].name, _product(shape))
            return
        if n.leading:
            split = len(shape) - len(n.lengths)
            if split < 0:
                return
            if self.leading is None:
                self.leading = tuple(shape[:split])
                self.names.setdefault("rows", _product(self.leading))
            shape = shape[split:]
        for length, size in zip(n.lengths, shape):
            if length.name and length.name != "_":
                self.names.setdefault(length.name, (size - length.plus) // length.times)

    def shape(self, notation: str) -> Optional[list[int]]:
        """Return the shape of a result, or None if it does not follow."""
        n = _parse(notation)
        if n is None or n.leading and self.leading is None:
            return None
        lengths = list(self.leading or ()) if n.leading else []
        for length in n.lengths:
            if length.name and length.name not in self.names:
                return None
            lengths.append(self.names.get(length.name, 0) * length.times + length.plus)
        return lengths if n.axes else [_product(lengths)]


def _product(lengths: Sequence[int]) -> int:
    n = 1
    for length in lengths:
        n *= length
    return n
