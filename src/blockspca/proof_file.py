"""A proof as a file; `docs/proof-format.md` says what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

FORMAT = "blockspca-proof"


def needed_version(
    header: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> int:
    """Return the least version of the format that has all of a section."""
    rules = {record["rule"] for record in records}
    if "beside" in header.get("constraints", {}) or rules & {"compositions", "signs"}:
        return 9
    if header.get("deflated", {}).get("how") in ("hotelling", "orthogonal"):
        return 8
    if "whole" in header.get("constraints", {}):
        return 8
    if header.keys() & {"deflated", "constraints", "raised", "level"}:
        return 7
    if "entry-tree" in rules:
        return 6
    if "entry" in rules:
        return 5
    if any("rounds" in record for record in records):
        return 4
    if "direction" in rules:
        return 3
    return 2 if "without" in header else 1


@dataclass(frozen=True)
class Section:
    """Claims about one matrix, and the records that prove them."""

    header: Mapping[str, Any]  #: data and claims
    records: tuple[Mapping[str, Any], ...]  #: one for each k that the claims need

    def to_text(self) -> str:
        """Return the lines of this section, each a JSON object."""
        lines = [self.header, *self.records, {"end": len(self.records)}]
        return "".join(json.dumps(line) + "\n" for line in lines)


@dataclass(frozen=True)
class Proof:
    """What a file holds: a section, or one for each component."""

    sections: tuple[Section, ...]
    # by factories, so that the class has no such attributes: see `__getattr__`
    #: What is proved less well here than in the result, if anything is.
    message: str = field(default_factory=str)
    nodes: int = field(default_factory=int)  #: of all trees

    @classmethod
    def deferred(cls, write: Callable[[], Proof]) -> Proof:
        """Return a proof that is written when one of its fields is first read.

        Until then it holds what `write` refers to, and what interrupts or refuses the
        writing leaves it as it was.
        """
        proof = object.__new__(cls)
        vars(proof)["_write"] = write
        vars(proof)["_is_ours"] = True
        return proof

    @property
    def is_ours(self) -> bool:
        """True if a solve has deferred it, and it was not changed since."""
        return bool(vars(self).get("_is_ours", False))

    def __getattr__(self, name: str) -> Any:
        """Write a deferred proof: its fields are not there yet."""
        write = vars(self).get("_write")
        if write is None or name not in self.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        written = write()
        vars(self).update({n: getattr(written, n) for n in self.__dataclass_fields__})
        del vars(self)["_write"]
        return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the proof itself, without the data.

        Where it cannot be written, why not: a result that comes back from another
        process is not lost for that.
        """
        try:
            state = {name: getattr(self, name) for name in self.__dataclass_fields__}
            return {**state, "_is_ours": self.is_ours}
        except ValueError as refused:
            return {"sections": (), "message": str(refused), "nodes": 0}

    def to_text(self) -> str:
        """Return the content of the file."""
        if not self.sections:
            raise ValueError(f"this result has no proof to write: {self.message}")
        return "".join(section.to_text() for section in self.sections)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, whole or not at all, and return its path."""
        target = Path(path)
        _write_whole(target, self.to_text())
        return target

    def __add__(self, other: Proof) -> Proof:
        """One proof after the other."""
        message = "; ".join(filter(None, (self.message, other.message)))
        return Proof(self.sections + other.sections, message, self.nodes + other.nodes)


def _write_whole(target: Path, text: str) -> None:
    """Write a file beside the target and rename it: what was there is lost last."""
    if target.exists() and not target.is_file():  # a pipe, or a folder, which refuses
        target.write_text(text, encoding="utf-8")
        return
    place = Path(os.path.realpath(target))  # a link stays one
    draft = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:  # Ctrl-C, or a disk that is full
        draft.unlink(missing_ok=True)
        raise


class MayHaveProof:
    """Mixin of results whose call may record a proof."""

    proof: Proof | None
    _call: ClassVar[str]  # that records it

    def write_proof(self, path: str | os.PathLike[str]) -> Path:
        """Write the proof, for `python -m blockspca.checker`.

        What the solve has shown is put into the words of the format here, unless
        somebody has looked at `proof` before: a search of what each k leaves, which
        may take what a solve has left of a limit on time, and a fifth of it at least.

        Parameters
        ----------
        path : path
            Of the file. One that exists is replaced, as by `numpy.save`, once the
            new one is written whole: until then, and after Ctrl-C, it is as it was.

        Raises
        ------
        ValueError
            If there is no proof, the format has no words for it, or A could not be read
            again in that time.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> import blockspca as bs
        >>> result = bs.solve(np.array([[2.0, 1.0], [1.0, 2.0]]), 2, proof=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.write_proof(f"{folder}/two.proof").name
        'two.proof'
        """
        if self.proof is None:
            raise ValueError(
                f"this result has no proof to write: pass proof=True to {self._call}."
            )
        return self.proof.write(path)
