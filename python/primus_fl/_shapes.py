"""The shapes and dtypes of results, from the notation of the catalogue: ``[.. rows cols>0]``."""

from __future__ import annotations

import re
from typing import Optional, Sequence

_TERM = re.compile(r"^(?:(\d+)\*)?([A-Za-z_]\w*)(?:\+(\d+))?$")


class Sizes:
    """What the operands that are given say about the lengths of axes."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.leading: Optional[tuple[int, ...]] = None

    def learn(self, notation: str, shape: Sequence[int]) -> None:
        """Take the lengths of an operand. The library checks whether they agree."""
        if notation.startswith("("):
            name = notation[1:-1]
            if name.isidentifier() and name != "rows":
                size = 1
                for n in shape:
                    size *= n
                self.names.setdefault(name, size)
            return
        terms = notation[1:-1].split()
        if not terms or "*" in terms:
            return
        if terms[0] == "..":
            terms = terms[1:]
            if len(shape) < len(terms):
                return
            split = len(shape) - len(terms)
            if self.leading is None:
                self.leading = tuple(shape[:split])
            shape = shape[split:]
        for term, n in zip(terms, shape):
            match = _TERM.match(term.split(">")[0])
            if match and match[2] != "_":
                self.names.setdefault(match[2], (n - int(match[3] or 0)) // int(match[1] or 1))

    def shape(self, notation: str) -> Optional[list[int]]:
        """Return the shape of a result, or None if it does not follow."""
        if notation.startswith("("):
            size = 1
            for factor in notation[1:-1].split("*"):
                n = self._length(factor)
                if n is None:
                    return None
                size *= n
            return [size]
        if not notation:
            return None
        lengths: list[int] = []
        for term in notation[1:-1].split():
            if term == "..":
                if self.leading is None:
                    return None
                lengths.extend(self.leading)
                continue
            n = self._length(term.split(">")[0])
            if n is None:
                return None
            lengths.append(n)
        return lengths

    def _length(self, term: str) -> Optional[int]:
        if term.isdigit():
            return int(term)
        match = _TERM.match(term)
        if match is None:
            return None
        if match[2] == "rows" and self.leading is not None and "rows" not in self.names:
            n = 1
            for axis in self.leading:
                n *= axis
        elif match[2] in self.names:
            n = self.names[match[2]]
        else:
            return None
        return n * int(match[1] or 1) + int(match[3] or 0)
