"""Proofs for loadings that are not negative, written from docs/proof-format.md alone.

As `proof_builder` does: in plain floats, with room; what is wrong a checker refuses.
What is added to A comes from the library: whether it serves is the checker's word.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from blockspca.certify.sign_records import added_at_optimum, added_matrix
from proof_builder import ROOM, Builder, Json, random_problem
from proof_problems import Sets, random_header


class NotWritten(Exception):
    """No numbers were found that close a set."""


class SignBuilder(Builder):
    """Writes a proof of one k, and of fewer features where nothing is included."""

    def __init__(
        self, Y: np.ndarray, data: Json, said: Json, rng: np.random.Generator
    ) -> None:
        self.Y, self.data, self.rng = Y, data, rng
        self.header: Json = {"format": "blockspca-proof", "version": 9, "data": data}
        self.header |= said
        self.sets = Sets(self.header, Y)
        self.A = np.array([[float(a) for a in row] for row in self.sets.A])
        self.scale = float(np.abs(self.A).max()) or 1.0
        self.M = self.A.copy()
        kept = {tuple(pair) for pair in said.get("raised", [])}
        for i, j in itertools.permutations(range(len(self.A)), 2):
            if "raised" in said and (min(i, j), max(i, j)) not in kept:
                self.M[i, j] = max(self.M[i, j], 0.0)

    def build_one(self, k: int) -> list[Json] | None:
        """Return the lines; None if there is no such set."""
        if not self.sets.allowed(k):
            return None
        value, S, x = self.sets.best(k)
        records, self.signs = [], {}
        smaller = not self.sets.include and self.rng.random() < 0.7
        for q in range(1 if smaller else k, k + 1):
            if self.sets.allowed(q):
                records.append(self.sign_record(q))
        upper = float.fromhex(records[-1]["upper"])
        claim: Json = {"k": k, "support": list(S), "x": [float(y).hex() for y in x]}
        claim["objective"] = (value - ROOM * self.scale).hex()
        claim["upper_bound"] = (upper + ROOM * self.scale).hex()
        if self.sets.beside:
            claim["set"] = list(S)
        self.header |= {"row_list": max(k - 1, 1), "claims": [claim]}
        return [self.header, *records, {"end": len(records)}]

    def sign_record(self, k: int) -> Json:
        value = self.sets.best(k)[0]
        self.k = k
        self.tau = max([value, *self.signs.values()]) + 2 * ROOM * self.scale
        if self.rng.random() < 0.3:
            self.tau += float(self.rng.random()) * self.scale / 4
        inside = sorted(self.sets.include)
        features = [
            i
            for i in range(len(self.A))
            if i not in self.sets.without and i not in inside
        ]
        if k - 1 in self.signs and self.rng.random() < 0.8:
            self.uppers = dict(self.signs)
            features = self.drops(self.M, features, k, k, self.tau)
        features = [i for i in features if self.has_room({*inside, i})]
        self.rng.shuffle(features)
        self.rows = [*inside, *features]
        self.inside = len(inside)
        B: Any = self.M[np.ix_(self.rows, self.rows)]
        for p in range(self.inside):
            B = self.chosen(B, p)
        self.added: list[Json] = []
        F = list(range(self.inside, len(self.rows)))
        tree = self.sign_node(list(range(self.inside)), B, F, k - self.inside)
        self.signs[k] = self.tau
        record = {"k": k, "upper": self.tau.hex(), "rule": "signs"}
        record |= {"features": features, "tree": " ".join(tree)}
        return record | {"added": self.added}

    def chosen(self, B: Any, p: int) -> Any:
        if B is None or not B[p, p] < self.tau - ROOM * self.scale / 8:
            return None
        return B + np.outer(B[p], B[p]) / (self.tau - B[p, p])

    def fits(self, rows: list[int]) -> bool:
        return self.has_room({self.rows[row] for row in rows})

    def has_room(self, names: set[int]) -> bool:
        limits = self.sets.groups + self.sets.beside
        return all(len(names & group) <= most for group, most in limits)

    def sign_node(self, P: list[int], B: Any, F: list[int], m: int) -> list[str]:
        F = [i for i in F if self.fits([*P, i])]
        least = self.tau - ROOM * self.scale / 8
        if len(F) < m or (m == 0 and B is not None):
            return ["L"]
        if m == 0 or self.rng.random() < 0.3:
            token = self.add([*P, *F] if m else P, m == 0)
            if token:
                return token
            if m == 0:
                raise NotWritten
        if B is not None and m >= 2 and max(B[i, i] for i in F) > least:
            B = None
        if m == 1 and B is not None:
            opened = {i for i in F if B[i, i] > least}
        elif B is None:
            opened = {*F[: len(F) - m + 1]}
        else:
            self.uppers = {} if P else dict(self.signs)
            opened = self.open_positions(B, F, m, self.k, least)
        names = sorted(opened)
        tokens = [f"S{len(names)}", *(str(i - self.inside) for i in names)]
        for p in names:
            after = [i for i in F if i > p]
            tokens += self.sign_node([*P, p], self.chosen(B, p), after, m - 1)
        return tokens

    def add(self, rows: list[int], hard: bool) -> list[str]:
        names = [self.rows[row] for row in rows]
        A, tau = self.A[np.ix_(names, names)], self.tau - ROOM * self.scale / 8
        N = added_matrix(A, tau, 200)
        if N is None and hard and len(A) > 1:
            N = added_at_optimum(A, tau, 500)
        if N is None:
            return []
        numbers = [float(x).hex() for x in N[np.triu_indices(len(N), 1)]]
        self.added.append({"features": names, "numbers": numbers})
        return [f"N{len(self.added) - 1}"]


def sign_proof(
    rng: np.random.Generator, d: int, k: int
) -> tuple[list[Json], np.ndarray] | None:
    """Return a proof with its data; None where there is none to write."""
    Y, data = random_problem(rng, d)
    said = random_header(rng, data, d)
    said.setdefault("constraints", {"include": [], "groups": []})
    said["constraints"]["nonnegative"] = True
    if rng.random() < 0.7:
        pairs = itertools.combinations(range(d), 2)
        said["raised"] = [list(pair) for pair in pairs if rng.random() < 0.2]
    try:
        lines = SignBuilder(Y, data, said, rng).build_one(k)
    except (ZeroDivisionError, NotWritten):  # the vectors have no scores
        return None
    return None if lines is None else (lines, Y)
