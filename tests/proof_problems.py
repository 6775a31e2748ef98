"""Small problems of versions 7 to 9: deflated, chosen features, groups, signs.

Written from docs/proof-format.md alone, as `proof_builder` is: `Sets` says from a
header what is true, in fractions and by all sets, and `DerivedBuilder` writes proofs.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from proof_builder import ROOM, Builder, Json, definite, exact_forms, random_problem

Matrix = list[list[Fraction]]
PRECISE = 2**240  # of the roots that correlations need
FLOATS = 1e-11  # what is decided in float64: loadings that are not negative


def inverse(G: Matrix) -> Matrix:
    """Return G⁻¹ of a positive definite matrix, by elimination."""
    p = len(G)
    M = [[*row, *(Fraction(int(i == j)) for j in range(p))] for i, row in enumerate(G)]
    for c in range(p):
        M[c] = [y / M[c][c] for y in M[c]]
        for r in range(p):
            if r != c:
                M[r] = [a - M[r][c] * b for a, b in zip(M[r], M[c], strict=True)]
    return [row[p:] for row in M]


def times(A: Matrix, B: Matrix) -> Matrix:
    return [[sum(a * b for a, b in zip(row, col)) for col in zip(*B)] for row in A]  # noqa: B905


def exact_matrix(header: Json, Y: np.ndarray) -> Matrix:
    """Return A, deflated, of all features; roots are rounded to 70 digits."""
    C, variances = exact_forms(Y, header["data"])
    if header["data"].get("scale"):
        roots = [
            Fraction(isqrt(v.numerator * v.denominator * PRECISE**2), v.denominator)
            / PRECISE
            for v in variances
        ]
        C = [[c / (r * s) for c, s in zip(row, roots)] for row, r in zip(C, roots)]  # noqa: B905
    if "deflated" not in header:
        return C
    d = len(C)
    V = [[Fraction(0)] * len(header["deflated"]["vectors"]) for _ in range(d)]
    for j, vector in enumerate(header["deflated"]["vectors"]):
        for i, x in zip(vector["support"], vector["x"], strict=True):
            V[i][j] = Fraction(float.fromhex(x))
    turned = [list(row) for row in zip(*V, strict=True)]
    W, how = times(C, V), header["deflated"]["how"]
    if how == "hotelling":
        given = header["deflated"]["vectors"]
        a = [Fraction(float.fromhex(vector["value"])) for vector in given]
        change = times([[x * y for x, y in zip(row, a)] for row in V], turned)  # noqa: B905
        return [[a - b for a, b in zip(x, y)] for x, y in zip(C, change)]  # noqa: B905
    if how == "residual":
        change = times(times(W, inverse(times(turned, W))), [list(r) for r in zip(*W)])  # noqa: B905
        return [[a - b for a, b in zip(x, y)] for x, y in zip(C, change)]  # noqa: B905
    Q = times(times(V, inverse(times(turned, V))), turned)
    P = [[int(i == j) - Q[i][j] for j in range(d)] for i in range(d)]
    C = times(times(P, C), P)
    if how == "orthogonal":
        M = Fraction(float.fromhex(header["deflated"]["penalty"]))
        C = [[a - M * q for a, q in zip(x, y)] for x, y in zip(C, Q)]  # noqa: B905
    return C


class Sets:
    """What a header allows, and what is true of it."""

    def __init__(self, header: Json, Y: np.ndarray) -> None:
        self.A = exact_matrix(header, Y)
        said = header.get("constraints", {})
        self.include = set(said.get("include", []))
        self.without = set(header.get("without", []))
        self.groups = [
            (set(group["features"]), group["most"]) for group in said.get("groups", [])
        ]
        self.beside = [
            (set(group["features"]), group["most"]) for group in said.get("beside", [])
        ]
        self.nonnegative = said.get("nonnegative", False)
        self.whole = said.get("whole", False)

    def allowed(self, k: int) -> list[tuple[int, ...]]:
        free = [i for i in range(len(self.A)) if i not in self.without]
        if self.whole:  # of at most k features
            return [
                S
                for size in range(1, k + 1)
                for S in itertools.combinations(free, size)
                if self.include <= {*S}
                and all(
                    len({*S} & group) in (0, len(group)) for group, _ in self.groups
                )
            ]
        return [
            S
            for S in itertools.combinations(free, k)
            if self.include <= {*S}
            and all(
                len({*S} & group) <= most for group, most in self.groups + self.beside
            )
        ]

    def shifted(self, S: tuple[int, ...], value: float) -> Matrix:
        high = Fraction(value)
        return [[(high if i == j else 0) - self.A[i][j] for j in S] for i in S]

    def allows(self, k: int, objective: float, upper_bound: float) -> bool:
        """Say whether objective ≤ opt(k) ≤ upper_bound."""
        sets = self.allowed(k)
        if self.nonnegative:
            value = max(self.with_signs(S)[0] for S in sets)
            room = FLOATS * max(1.0, abs(value))
            return objective <= value + room and value <= upper_bound + room
        bounded = all(definite(self.shifted(S, upper_bound))[0] for S in sets)
        return bounded and any(
            not definite(self.shifted(S, objective))[1] for S in sets
        )

    def with_signs(self, S: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """The largest x'Ax over unit x ≥ 0 on S: an eigenvector of some subset."""
        found = []
        within = np.array([[float(self.A[i][j]) for j in S] for i in S])
        for size in range(1, len(S) + 1):
            for T in itertools.combinations(range(len(S)), size):
                values, vectors = np.linalg.eigh(within[np.ix_(T, T)])
                for value, y in zip(values, vectors.T, strict=True):
                    if (y >= -1e-9).all() or (y <= 1e-9).all():
                        x = np.zeros(len(S))
                        x[list(T)] = np.abs(y)
                        found.append((float(value), x))
        return max(found, key=lambda one: one[0])

    def best(self, k: int) -> tuple[float, tuple[int, ...], np.ndarray]:
        found = []
        for S in self.allowed(k):
            if self.nonnegative:
                value, x = self.with_signs(S)
            else:
                within = np.array([[float(self.A[i][j]) for j in S] for i in S])
                values, vectors = np.linalg.eigh(within)
                value, x = float(values[-1]), vectors[:, -1]
            found.append((value, S, x))
        return max(found, key=lambda one: one[0])


def random_header(rng: np.random.Generator, data: Json, d: int) -> Json:
    """Return what a header of version 7 or 8 has besides, at random."""
    said: Json = {}
    order = rng.permutation(d).tolist()
    if rng.random() < 0.5:
        vectors = []
        for _ in range(int(rng.integers(1, 3))):
            support = sorted(rng.choice(d, int(rng.integers(1, d)), replace=False))
            x = rng.standard_normal(len(support))
            vectors.append(
                {"support": [int(i) for i in support], "x": [float(v).hex() for v in x]}
            )
        how = str(rng.choice(["residual", "projection", "hotelling", "orthogonal"]))
        said["deflated"] = {"how": how, "vectors": vectors}
        if how == "hotelling":
            for vector in vectors:
                vector["value"] = float(2 * rng.standard_normal() + 1).hex()
        if how == "orthogonal":
            said["deflated"]["penalty"] = float(rng.exponential(20.0)).hex()
    if rng.random() < 0.3:
        said["without"] = [order.pop()]
    if rng.random() < 0.75 or not said.keys() - {"without"}:
        include = sorted(order[: int(rng.integers(0, 3))])
        groups, start = [], 0
        while start < d and rng.random() < 0.6:
            size = int(rng.integers(1, 4))
            members = sorted(order[start : start + size])
            held = len({*members} & {*include})
            if members:
                most = max(1, held, int(rng.integers(1, len(members) + 1)))
                groups.append({"most": most, "features": members})
            start += size
        nonnegative = bool(rng.random() < 0.25)
        said["constraints"] = {
            "include": include,
            "groups": groups,
            "nonnegative": nonnegative,
        }
        if groups and rng.random() < 0.5:
            members = sorted(order[: int(rng.integers(1, len(order) + 1))])
            most = max(1, len({*members} & {*include}), int(rng.integers(1, 4)))
            said["constraints"]["beside"] = [{"most": most, "features": members}]
        if nonnegative and rng.random() < 0.8:
            pairs = itertools.combinations(range(d), 2)
            said["raised"] = [list(pair) for pair in pairs if rng.random() < 0.2]
    return said


class DerivedBuilder(Builder):
    """Writes proofs for headers of version 7 or 8: chosen features, groups and all."""

    def __init__(
        self, Y: np.ndarray, data: Json, said: Json, rng: np.random.Generator
    ) -> None:
        self.Y, self.data, self.rng = Y, data, rng
        how = said.get("deflated", {}).get("how")
        self.takes = how in ("hotelling", "orthogonal")  # of version 8
        version = 9 if "beside" in said.get("constraints", {}) else 7 + self.takes
        self.header: Json = {"format": "blockspca-proof", "version": version}
        self.header |= {"data": data, **said}
        self.sets = Sets(self.header, Y)
        self.uppers: dict[int, float] = {}
        self.whole = np.array([[float(a) for a in row] for row in self.sets.A])
        self.scale = float(np.abs(self.whole).max()) or 1.0

    def build_one(self, k: int) -> list[Json] | None:
        """Write a proof of one k; None if there is no such set."""
        allowed = self.sets.allowed(k)
        if not allowed:
            return None
        value, S, x = self.sets.best(k)
        include = sorted(self.sets.include)
        chosen: list[int] = []
        M = self.whole.copy()
        if "raised" in self.header:
            kept = {tuple(pair) for pair in self.header["raised"]}
            for i, j in itertools.permutations(range(len(M)), 2):
                if (min(i, j), max(i, j)) not in kept:
                    M[i, j] = max(M[i, j], 0.0)
        elif include and not self.takes and self.rng.random() < 0.8:
            chosen = include
            own = M[np.ix_(chosen, chosen)]
            least = float(np.linalg.eigvalsh(own)[-1])
            level = max(value, least) + 1e-3 * self.scale * self.rng.random()
            level += 4 * ROOM * self.scale
            self.header["level"] = level.hex()
            G = level * np.eye(len(chosen)) - own
            M = M + M[:, chosen] @ np.linalg.solve(G, M[chosen])
        limits = self.sets.groups + self.sets.beside
        full = [
            i for group, most in limits if len(group & {*chosen}) >= most for i in group
        ]
        out = {*self.sets.without, *chosen, *full}
        self.names = [i for i in range(len(M)) if i not in out]
        places = k - len(chosen)
        if not self.names:
            return None
        self.A = (M + M.T)[np.ix_(self.names, self.names)] / 2
        self.room = [most - len(group & {*chosen}) for group, most in self.sets.groups]
        self.label = [
            next((g for g, (group, _) in enumerate(self.sets.groups) if i in group), -1)
            for i in self.names
        ]
        self.beside = [
            ({p for p, i in enumerate(self.names) if i in group}, most)
            for group, most in (
                (group, most - len(group & {*chosen}))
                for group, most in self.sets.beside
            )
        ]
        records = self.chain(places)
        bound = records and float.fromhex(records[-1]["upper"])
        bound = max([*([bound] if records else []), *([level] if chosen else [])])
        self.header |= {
            "row_list": max(places - 1, 1),
            "claims": [
                {
                    "k": k,
                    "support": list(S),
                    "x": [float(entry).hex() for entry in x],
                    "objective": (value - ROOM * self.scale).hex(),
                    "upper_bound": float(bound + ROOM * self.scale).hex(),
                    **({"set": list(S)} if self.sets.beside else {}),
                }
            ],
        }
        return [self.header, *records, {"end": len(records)}]

    def chain(self, places: int) -> list[Json]:
        records = []
        for q in range(1, places + 1):
            sets = [
                S
                for S in itertools.combinations(range(len(self.names)), q)
                if self.fits(S)
            ]
            within = (self.A[np.ix_(S, S)] for S in sets)
            tops = (float(np.linalg.eigvalsh(B)[-1]) for B in within)
            value = max(tops, default=float(np.diagonal(self.A).min()))
            record = self.record(q, value, 0.0)
            self.uppers[q] = float.fromhex(record["upper"])
            if "features" in record:
                record["features"] = [self.names[i] for i in record["features"]]
            records.append(record)
        return records

    def closed_form(self, k: int) -> Json:
        """As without groups; of row sums, now and then, what sets can meet counts."""
        if self.room and self.rng.random() < 0.3:
            sums = [self.met(np.abs(self.A[i]), i, k - 1) for i in range(len(self.A))]
            needs = max(a + s for a, s in zip(np.diagonal(self.A), sums, strict=True))
            return {"k": k, "rule": "rows", "needs": float(needs)}
        if self.data["kind"] == "data" and ("raised" in self.header or self.takes):
            kind, self.data = self.data, {**self.data, "kind": "matrix"}
            found = super().closed_form(k)
            self.data = kind
            return found
        return super().closed_form(k)

    def fits(self, S: Any) -> bool:
        beside = all(len(group & {*S}) <= most for group, most in self.beside)
        return beside and self.fits_groups(S)

    def fits_groups(self, S: Any) -> bool:
        labels = [self.label[i] for i in S]
        return all(labels.count(g) <= most for g, most in enumerate(self.room))

    def drops(self, B: np.ndarray, F: list[int], m: int, k: int, tau: float) -> list:
        """As without groups in nodes; at the root what no set can have is left out."""
        if B is not self.A:
            return super().drops(B, F, m, k, tau)
        while True:
            for i in F:
                total = self.met(
                    [B[i, j] ** 2 if j in F else 0.0 for j in range(len(B))], i, m - 1
                )
                rest = tau - ROOM * self.scale / 8 - B[i, i]
                if rest >= 0 and total * (1 + 1e-9) < rest * (tau - self.uppers[k - 1]):
                    F = [j for j in F if j != i]
                    break
            else:
                return F

    def met(self, row: Any, i: int, most: int) -> float:
        """The largest sum of a row that a set with feature i can meet."""
        held, total = [i], 0.0
        for j in sorted(range(len(row)), key=lambda j: -row[j]):
            if j != i and len(held) <= most and self.fits_groups([*held, j]):
                held.append(j)
                total += row[j]
        return total

    def record(self, k: int, value: float, slack: float) -> Json:
        self.chosen: list[int] = []
        return super().record(k, value, slack)

    def screened(self, k: int, tau: float) -> list[int]:
        self.features = super().screened(k, tau)
        return self.features

    def node(
        self, B: np.ndarray, F: list[int], m: int, k: int, tau: float
    ) -> list[str]:
        P = self.chosen
        named = [self.features[i] for i in F]
        F = [i for i, name in zip(F, named, strict=True) if self.fits([*P, name])]
        if m == 2 and self.rng.random() < 0.5:
            least = tau - ROOM * self.scale / 8
            pairs = [
                (a, b)
                for a, b in itertools.combinations(F, 2)
                if self.fits([*P, self.features[a], self.features[b]])
            ]
            if all(self.pairs_fit(B[np.ix_(p, p)], least) for p in pairs) and all(
                B[i, i] <= least for i in F
            ):
                return ["L"]
        rng, tokens = self.rng, []
        if m >= 2 and rng.random() < 0.5:
            tokens = ["D"]
            F = super().drops(B, F, m, k, tau)
        least = tau - ROOM * self.scale / 8
        inside = B[np.ix_(F, F)]
        if len(F) < m or m == 1 or (m == 2 and self.pairs_fit(inside, least)):
            return [*tokens, "L"]
        if rng.random() < 0.5 and np.linalg.eigvalsh(inside)[-1] < least:
            return [*tokens, "P"]
        opened = self.open_positions(B, F, m, k, least)
        tokens += [f"S{len(opened)}", *map(str, sorted(opened))]
        for p in sorted(opened):
            child = B + np.outer(B[p], B[p]) / (tau - B[p, p])
            self.chosen = [*P, self.features[p]]
            tokens += self.node(child, [i for i in F if i > p], m - 1, k, tau)
        self.chosen = P
        return tokens


def derived_proof(
    rng: np.random.Generator, d: int, k: int
) -> tuple[list[Json], np.ndarray] | None:
    """Return a proof with its data; None where there is none to write."""
    Y, data = random_problem(rng, d)
    said = random_header(rng, data, d)
    try:
        builder = DerivedBuilder(Y, data, said, rng)
        lines = builder.build_one(k)
    except ZeroDivisionError:  # the vectors have no scores
        return None
    return None if lines is None else (lines, Y)
