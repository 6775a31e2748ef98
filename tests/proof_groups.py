"""Proofs of small problems with whole groups, written from docs/proof-format.md alone.

As `proof_builder` does: in plain floats, with room; what is wrong a checker refuses.
"""

from __future__ import annotations

import itertools

import numpy as np

from proof_builder import Json, random_problem
from proof_problems import Sets, random_header

NEAR = 1e-5  # room of suffix bounds, beside the largest entry
LEAST = 1e-9  # and of the bound


def whole_header(rng: np.random.Generator, data: Json, d: int) -> Json:
    """Return what a header with whole groups has besides, at random."""
    said: Json = {}
    if rng.random() < 0.3:
        said = {"deflated": random_header(rng, data, d).get("deflated")}
        said = said if said["deflated"] else {}
    order, units, start = rng.permutation(d).tolist(), [], 0
    while start < d:
        size = int(rng.integers(1, 4))
        units.append(sorted(order[start : start + size]))
        start += size
    groups = [unit for unit in units if len(unit) > 1 or rng.random() < 0.3]
    groups = groups or units[:1]
    include, without = [], []
    if len(units) > 2 and rng.random() < 0.4:
        include = units[0]
    if len(units) > 2 and rng.random() < 0.3:
        without = units[1]
    if without:
        said["without"] = without
    said["constraints"] = {
        "include": include,
        "groups": [{"most": len(unit), "features": unit} for unit in groups],
        "nonnegative": False,
        "whole": True,
    }
    return said


class GroupBuilder:
    """Writes a proof of one k, with a tree of units."""

    def __init__(
        self, Y: np.ndarray, data: Json, said: Json, rng: np.random.Generator
    ) -> None:
        self.rng = rng
        self.header: Json = {"format": "blockspca-proof", "version": 8, "data": data}
        self.header |= said
        self.sets = Sets(self.header, Y)
        self.A = np.array([[float(a) for a in row] for row in self.sets.A])
        self.scale = float(np.abs(self.A).max()) or 1.0
        groups = [group["features"] for group in said["constraints"]["groups"]]
        held = {i for group in groups for i in group}
        units = groups + [[i] for i in range(len(self.A)) if i not in held]
        out = {*said["constraints"]["include"], *said.get("without", [])}
        self.units = [unit for unit in units if not {*unit} & out]

    def build(self, k: int) -> list[Json] | None:
        """Return the lines; None if there is no such set."""
        allowed = self.sets.allowed(min(k, len(self.A)))
        if not allowed or not self.units:
            return None
        best = max(allowed, key=lambda S: self.top(self.A, [*S]))
        within = self.A[np.ix_(best, best)]
        values, vectors = np.linalg.eigh(within)
        self.k, self.tau = k, float(values[-1]) + LEAST * self.scale
        if self.rng.random() < 0.4:
            self.tau += float(self.rng.random()) * self.scale / 4
        record, records = self.record(k), []
        if self.rng.random() < 0.4:  # and of smaller sets, on which nothing rests
            for q in range(len(self.sets.include) + 1, k):
                if smaller := self.sets.allowed(q):
                    self.tau = max(self.top(self.A, [*S]) for S in smaller)
                    self.tau += LEAST * self.scale
                    records.append(self.record(q))
        records.append(record)
        self.tau = float.fromhex(record["upper"])
        claim = {
            "k": k,
            "support": list(best),
            "x": [float(x).hex() for x in vectors.T[-1]],
        }
        claim["objective"] = float(values[-1] - LEAST * self.scale).hex()
        claim["upper_bound"] = float(self.tau + LEAST * self.scale).hex()
        self.header |= {"row_list": 1, "claims": [claim]}
        return [self.header, *records, {"end": len(records)}]

    def record(self, k: int) -> Json:
        """Return a record of k for τ."""
        self.rng.shuffle(self.units)
        B, include = self.A, sorted(self.sets.include)
        for p in include:
            B = self.choose(B, p)
        room = k - len(include)
        fit = [g for g, unit in enumerate(self.units) if len(unit) <= room]
        tree = " ".join(self.node(B, fit, room))
        record = {"k": k, "upper": self.tau.hex(), "rule": "group-tree"}
        return record | {"features": [unit[0] for unit in self.units], "tree": tree}

    def choose(self, B: np.ndarray, p: int) -> np.ndarray:
        return B + np.outer(B[p], B[p]) / (self.tau - B[p, p])

    @staticmethod
    def top(B: np.ndarray, S: list[int]) -> float:
        return float(np.linalg.eigvalsh(B[np.ix_(S, S)])[-1])

    def node(self, B: np.ndarray, F: list[int], room: int) -> list[str]:
        if not F:
            return ["L"]
        everything = [i for g in F for i in self.units[g]]
        least = self.tau - NEAR * self.scale
        if self.rng.random() < 0.5 and self.top(B, everything) < least:
            return ["P"]
        sizes = itertools.accumulate(sorted(len(self.units[g]) for g in F))
        m = sum(size <= room for size in sizes)
        opened = self.opened(B, F, m, least)
        opened += [g for g in F if g not in opened and self.rng.random() < 0.1]
        tokens = [f"S{len(opened)}", *map(str, sorted(opened))]
        for g in sorted(opened):
            C, left = B, room - len(self.units[g])
            for p in self.units[g]:
                C = self.choose(C, p)
            after = [h for h in F if h > g and len(self.units[h]) <= left]
            tokens += self.node(C, after, left)
        return tokens

    def opened(self, B: np.ndarray, F: list[int], m: int, least: float) -> list[int]:
        """Return the units whose suffix bound is not below τ, with room."""
        n = len(F)
        N = np.zeros((n, n))
        for a, b in itertools.product(range(n), range(n)):
            block = B[np.ix_(self.units[F[a]], self.units[F[b]])]
            N[a, b] = np.linalg.norm(block)
            if a == b:
                N[a, a] = np.linalg.eigvalsh(block)[-1]
        T = np.full((m + 1, n + 1), -np.inf)
        found = []
        for t in reversed(range(n)):
            squares = np.sort(N[t, t + 1 :] ** 2)[::-1]
            for q in range(1, m + 1):
                first = N[t, t]
                if q > 1 and t + 1 < n:
                    b, r2 = T[q - 1, t + 1], squares[: q - 1].sum()
                    first = (first + b + np.sqrt((first - b) ** 2 + 4 * r2)) / 2
                T[q, t] = max(T[q, t + 1], first)
            if first > least:
                found.append(F[t])
        return found


def group_proof(
    rng: np.random.Generator, d: int, k: int
) -> tuple[list[Json], np.ndarray] | None:
    """Return a proof with its data; None where there is none to write."""
    Y, data = random_problem(rng, d)
    try:
        builder = GroupBuilder(Y, data, whole_header(rng, data, d), rng)
        lines = builder.build(k)
    except ZeroDivisionError:  # the vectors have no scores
        return None
    return None if lines is None else (lines, Y)
