"""Proofs of small problems, written from docs/proof-format.md alone, and what is true.

`build` writes a proof in plain floats, with room: what it gets wrong a checker refuses.
`is_true` decides a claim exactly, in fractions, by all supports: it shares nothing with
the checker, so that it can judge it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

Json = dict[str, Any]
ROOM = 1e-9

# The worked example of docs/proof-format.md: its matrix, and its proof.
FIVE = np.array(
    [
        [4.0, 2, 2, 1, 0],
        [2, 4, 0, 0, 1],
        [2, 0, 3, 1, 0],
        [1, 0, 1, 3, 1],
        [0, 1, 0, 1, 2],
    ]
)
EXAMPLE = Path(__file__).parent / "proofs" / "example-5x5.proof"


def as_bytes(lines: Iterable[Json]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def sha256(Y: np.ndarray) -> str:
    head = f"blockspca-data-1 {Y.shape[0]} {Y.shape[1]}\n".encode()
    return hashlib.sha256(head + (Y + 0.0).astype("<f8").tobytes()).hexdigest()


def describe(Y: np.ndarray, kind: str = "matrix", **options: Any) -> Json:
    """Return `data` of the header."""
    n, d = Y.shape
    data: Json = {"sha256": sha256(Y), "kind": kind, "n": n, "d": d}
    if kind == "data":
        data |= {"center": True, "scale": False, "ddof": 1, **options}
    return data


# -- what is true -------------------------------------------------------------------


def exact_forms(Y: np.ndarray, data: Json) -> tuple[list[list[Fraction]], list]:
    """Return C and weights s with x'Ax = y'Cy and x'x = Σ s_i y_i², in fractions.

    Without `scale` C = A and s = 1. With it C are covariances and s variances, y_i =
    x_i/σ_i; features of variance 0 have a row of A that is 0, which is what s = 1 says
    of them.
    """
    rows = [[Fraction(value) for value in row] for row in Y.tolist()]
    n, d = Y.shape
    if data["kind"] == "matrix":
        C = [[(rows[i][j] + rows[j][i]) / 2 for j in range(d)] for i in range(d)]
        return C, [Fraction(1)] * d
    columns = [list(column) for column in zip(*rows, strict=True)]
    if data["center"]:
        columns = [[y - sum(column) / n for y in column] for column in columns]
    N = n - data["ddof"]
    C = [
        [sum(a * b for a, b in zip(one, two, strict=True)) / N for two in columns]
        for one in columns
    ]
    if not data["scale"]:
        return C, [Fraction(1)] * d
    return C, [C[i][i] or Fraction(1) for i in range(d)]


def definite(M: list[list[Fraction]]) -> tuple[bool, bool]:
    """Say whether M is positive semidefinite, and whether it is positive definite."""
    strictly = True
    M = [list(row) for row in M]
    left = list(range(len(M)))
    while left:
        p = max(left, key=lambda i: M[i][i])
        if M[p][p] < 0 or any(M[i][i] < 0 for i in left):
            return False, False
        if M[p][p] == 0:
            return all(M[i][j] == 0 for i in left for j in left), False
        left.remove(p)
        for i in left:
            for j in left:
                M[i][j] -= M[i][p] * M[p][j] / M[p][p]
    return True, strictly


class Truth:
    """Decides claims about one matrix by trying all supports, exactly."""

    def __init__(self, Y: np.ndarray, data: Json) -> None:
        self.C, self.weights = exact_forms(Y, data)

    def _shifted(self, S: tuple[int, ...], value: Fraction) -> list[list[Fraction]]:
        return [
            [(value * self.weights[i] if i == j else 0) - self.C[i][j] for j in S]
            for i in S
        ]

    def allows(self, k: int, objective: float, upper_bound: float) -> bool:
        """Say whether objective ≤ opt(k) ≤ upper_bound."""
        low, high = Fraction(objective), Fraction(upper_bound)
        sets = list(itertools.combinations(range(len(self.C)), k))
        bounded = all(definite(self._shifted(S, high))[0] for S in sets)
        return bounded and any(not definite(self._shifted(S, low))[1] for S in sets)


# -- a prover -----------------------------------------------------------------------


def float_matrix(Y: np.ndarray, data: Json) -> np.ndarray:
    if data["kind"] == "matrix":
        return (Y + Y.T) / 2
    Z = Y - Y.mean(axis=0) if data["center"] else Y
    A = Z.T @ Z / (len(Y) - data["ddof"])
    if data["scale"]:
        sigma = np.sqrt(np.diagonal(A))
        inverse = np.divide(1, sigma, out=np.zeros_like(sigma), where=sigma > 0)
        A = A * np.outer(inverse, inverse)
    return A


def best_set(A: np.ndarray, k: int) -> tuple[float, tuple[int, ...], np.ndarray]:
    found = []
    for S in itertools.combinations(range(len(A)), k):
        values, vectors = np.linalg.eigh(A[np.ix_(S, S)])
        found.append((float(values[-1]), S, vectors[:, -1]))
    return max(found, key=lambda item: item[0])


class Builder:
    """Writes a proof of all k up to some K; random choices make different ones."""

    def __init__(self, Y: np.ndarray, data: Json, rng: np.random.Generator) -> None:
        self.Y, self.data, self.rng = Y, data, rng
        self.A = float_matrix(Y, data)
        self.scale = float(np.abs(self.A).max()) or 1.0
        self.uppers: dict[int, float] = {}

    def build(self, largest: int, slack: float = 0.0) -> list[Json]:
        records, claims = [], []
        for k in range(1, largest + 1):
            value, S, x = best_set(self.A, k)
            record = self.record(k, value, slack)
            self.uppers[k] = float.fromhex(record["upper"])
            records.append(record)
            if k == largest or self.rng.random() < 0.3:
                bound = self.uppers[k] + ROOM * self.scale
                claims.append(
                    {
                        "k": k,
                        "support": list(S),
                        "x": [float(entry).hex() for entry in x],
                        "objective": (value - ROOM * self.scale).hex(),
                        "upper_bound": bound.hex(),
                    }
                )
        header: Json = {"format": "blockspca-proof", "version": 1, "data": self.data}
        header |= {"row_list": int(self.rng.integers(1, 8)), "claims": claims}
        # A list that is too short may leave features: then the longest is what helps.
        header["row_list"] = max(header["row_list"], largest - 1, 1)
        return [header, *records, {"end": len(records)}]

    def record(self, k: int, value: float, slack: float) -> Json:
        room = ROOM * self.scale
        floor = self.uppers[k - 1] + room if k > 1 else -np.inf
        closed = self.closed_form(k)
        closed["upper"] = max(closed.pop("needs") + room, floor)
        tau = max(value + room + slack * self.scale * self.rng.random(), floor)
        if k == 1 or self.rng.random() < 0.25 or tau > closed["upper"]:
            return closed | {"upper": closed["upper"].hex()}
        features = self.screened(k, tau)
        B = self.A[np.ix_(features, features)]
        tokens = self.node(B, list(range(len(features))), k, k, tau)
        return {
            "k": k,
            "upper": float(tau).hex(),
            "rule": "tree",
            "features": features,
            "tree": " ".join(tokens),
        }

    def closed_form(self, k: int) -> Json:
        """Return the least bound of those in closed form, with the name `needs`."""
        A = self.A
        absolute = np.abs(A) - np.diag(np.abs(np.diagonal(A)))
        most = np.sort(absolute, axis=1)[:, ::-1][:, : k - 1].sum(axis=1)
        found = [{"rule": "rows", "needs": float((np.diagonal(A) + most).max())}]
        if k == 1 or self.data["kind"] == "data":
            variances = np.sort(np.diagonal(A))[::-1]
            found.append({"rule": "variance", "needs": float(variances[:k].sum())})
        for m in range(1, k):
            below, least = self.uppers[m], float(np.diagonal(A).min())
            if m > 1:
                average = least + (below - least) * (k - 1) / (m - 1)
                found.append({"rule": "average", "from": m, "needs": average})
            if self.data["kind"] == "data":
                found.append({"rule": "average", "from": m, "needs": below * k / m})
        self.rng.shuffle(found)  # type: ignore[arg-type]
        if self.rng.random() < 0.5:
            found.sort(key=lambda item: item["needs"])
        return {"k": k} | found[0]

    def drops(self, B: np.ndarray, F: list[int], m: int, k: int, tau: float) -> list:
        """Return what is left of F, by positions in B."""
        while True:
            for i in F:
                squares = sorted((B[i, j] ** 2 for j in F if j != i), reverse=True)
                rest = tau - ROOM * self.scale / 8 - B[i, i]
                room = rest * (tau - self.uppers[k - 1])
                if rest >= 0 and sum(squares[: m - 1]) * (1 + 1e-9) < room:
                    F = [j for j in F if j != i]
                    break
            else:
                return F

    def screened(self, k: int, tau: float) -> list[int]:
        features = list(range(len(self.A)))
        if self.rng.random() < 0.85:
            features = self.drops(self.A, features, k, k, tau)
        self.rng.shuffle(features)
        if self.rng.random() < 0.5:
            features.sort(key=lambda i: -self.A[i, i])
        return features

    def node(
        self, B: np.ndarray, F: list[int], m: int, k: int, tau: float
    ) -> list[str]:
        rng, tokens = self.rng, []
        if m >= 2 and rng.random() < 0.5:
            tokens = ["D"]
            F = self.drops(B, F, m, k, tau)
        least = tau - ROOM * self.scale / 8
        inside = B[np.ix_(F, F)]
        if len(F) < m or m == 1 or (m == 2 and self.pairs_fit(inside, least)):
            return [*tokens, "L"]
        if rng.random() < 0.5 and np.linalg.eigvalsh(inside)[-1] < least:
            return [*tokens, "P"]
        opened = self.open_positions(B, F, m, k, least)
        opened |= {i for i in F if rng.random() < 0.1}
        tokens += [f"S{len(opened)}", *map(str, sorted(opened))]
        for p in sorted(opened):
            child = B + np.outer(B[p], B[p]) / (tau - B[p, p])
            tokens += self.node(child, [i for i in F if i > p], m - 1, k, tau)
        return tokens

    @staticmethod
    def pairs_fit(B: np.ndarray, tau: float) -> bool:
        room = tau - np.diagonal(B)
        fits = np.outer(room, room) >= (1 + 1e-9) * B**2
        np.fill_diagonal(fits, True)
        return bool(fits.all() and (room >= 0).all())

    def open_positions(
        self, B: np.ndarray, F: list[int], m: int, k: int, tau: float
    ) -> set[int]:
        T = [-np.inf] * (m + 1)
        opened = set()
        for place, f in reversed(list(enumerate(F))):
            squares = sorted((B[f, j] ** 2 for j in F[place + 1 :]), reverse=True)
            fresh = list(T)
            for q in range(1, m + 1):
                first = B[f, f]
                if q > 1:
                    a, b, r2 = first, T[q - 1], sum(squares[: q - 1])
                    first = -np.inf
                    if b > -np.inf:
                        first = (a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + r2)
                if q == m and first > tau:
                    opened.add(f)
                cap = self.uppers.get(k - m + q, np.inf) if q < m else np.inf
                fresh[q] = min(max(T[q], first), cap if cap <= tau else np.inf)
            T = fresh
        return opened


class Directions:
    """Rule "direction" of section 6, feature by feature, for one ρ and its q_l."""

    def __init__(self, C: np.ndarray, rho: float, rng: np.random.Generator) -> None:
        r = int(rng.integers(0, 3))
        self.C, self.rho = C, rho
        self.Q = np.linalg.svd(C)[0][:, :r]
        self.weights = rng.uniform(0.1, 1.0, r)
        self.rest = float(rng.uniform(1e-3, 1.0))
        self.terms = [self.term(c) for c in C.T]

    def term(self, c: np.ndarray) -> np.ndarray:
        """Return κzz'/‖z‖²."""
        rho, w, rest, g = self.rho, self.weights, self.rest, self.Q.T @ c
        a = c @ c
        if a <= rho:
            return np.zeros((len(c), len(c)))
        s = max(0.0, a - g @ g)
        low, high = 0.0, a * max(rest, *w, 0.0)
        for _ in range(200):
            mu = (low + high) / 2
            value = np.sum(w * g**2 / (mu + rho * w)) + rest * s / (mu + rho * rest)
            low, high = (mu, high) if value > 1 else (low, mu)
        z = c + self.Q @ (g * ((mu + rho * rest) / (mu + rho * w) - 1))
        if rho - a + (c @ z) ** 2 / (z @ z) <= 1e-7 * rho:
            z = c
        kappa = rho * (a - rho) / (rho - a + (c @ z) ** 2 / (z @ z))
        return kappa * np.outer(z, z) / (z @ z)

    def fields(self) -> Json:
        return {
            "rho": self.rho.hex(),
            "rest": self.rest.hex(),
            "weights": [float(weight).hex() for weight in self.weights],
            "directions": [[float(entry).hex() for entry in q] for q in self.Q.T],
        }


def columns_of(Y: np.ndarray, data: Json) -> np.ndarray:
    C = Y - Y.mean(axis=0) if data["center"] else Y.copy()
    C /= np.sqrt(len(Y) - data["ddof"])
    if data["scale"]:
        norms = np.linalg.norm(C, axis=0)
        C = np.divide(C, norms, out=np.zeros_like(C), where=norms > 0)
    return C


def one_record(version: int, data: Json, A: np.ndarray, record: Json) -> list[Json]:
    value, S, x = best_set(A, record["k"])
    upper = float.fromhex(record["upper"])
    claim = {
        "k": record["k"],
        "support": list(S),
        "x": [float(entry).hex() for entry in x],
        "objective": (value - 1e-9 * abs(value)).hex(),
        "upper_bound": (upper + 1e-9 * abs(upper)).hex(),
    }
    header: Json = {"format": "blockspca-proof", "version": version, "data": data}
    header |= {"row_list": 1, "claims": [claim]}
    return [header, record, {"end": 1}]


def some_rho(A: np.ndarray, k: int, rng: np.random.Generator) -> float:
    variances = np.sort(np.diagonal(A))
    least = 1e-3 * variances[-1] or 1.0
    return float(max(variances[-k] * rng.uniform(0.3, 1.1), least))


def direction_proof(
    Y: np.ndarray, data: Json, k: int, rng: np.random.Generator
) -> list[Json]:
    """Write a proof of one k by rule "direction", without rounds."""
    A = float_matrix(Y, data)
    made = Directions(columns_of(Y, data), some_rho(A, k, rng), rng)
    needed = k * made.rho + float(np.linalg.eigvalsh(sum(made.terms))[-1])
    record = {"k": k, "upper": (needed * (1 + 2.0**-20)).hex(), "rule": "direction"}
    return one_record(3, data, A, record | made.fields())


def rounds_proof(
    Y: np.ndarray, data: Json, k: int, rng: np.random.Generator
) -> list[Json]:
    """Write a proof of one k by rounds, or return nothing where they lead nowhere."""
    A, C = float_matrix(Y, data), columns_of(Y, data)
    upper = best_set(A, k)[0] * (1 + float(rng.choice([1e-8, 1e-3, 0.02])))
    tau = upper * (1 - 2.0**-19)

    def holds(level: float, M: np.ndarray) -> bool:
        return bool(np.linalg.eigvalsh(M)[-1] < level)

    inside: list[int] = []
    free, rounds = list(range(C.shape[1])), []
    for _ in range(4):
        m = k - len(inside)
        if m < 1 or len(free) <= m:
            break
        made = Directions(C, some_rho(A, k, rng), rng)
        M = C[:, inside] @ C[:, inside].T + sum(made.terms[i] for i in free)
        out_level, in_level = tau - (m - 1) * made.rho, tau - m * made.rho
        if not holds(out_level, M) or in_level <= 0:
            continue
        without = [M - term for term in made.terms]
        out = {
            i for i in free if holds(out_level, without[i] + np.outer(C[:, i], C[:, i]))
        }
        needed = {i for i in free if holds(in_level, without[i])} - out
        values, vectors = np.linalg.eigh(M)
        b = vectors[:, -1] * np.sqrt(2 * max(0.0, values[-1] - in_level) + in_level / 2)
        if len(needed) > m or not holds(in_level, M - np.outer(b, b)):
            continue
        free = [i for i in free if i not in out | needed]
        one = {"in": sorted(needed), "free": free}
        rounds.append(made.fields() | one | {"vector": [float(x).hex() for x in b]})
        inside += needed
    m = k - len(inside)
    last = Directions(C, some_rho(A, k, rng), rng)
    M = C[:, inside] @ C[:, inside].T
    if len(free) > m:
        M = M + sum(last.terms[i] for i in free)
        m_rho = m * last.rho
    else:
        M, m_rho = M + C[:, free] @ C[:, free].T, 0.0
    if not rounds or not holds(upper * (1 - 1e-10) - m_rho, M):
        return []
    record: Json = {"k": k, "upper": upper.hex(), "rule": "direction"}
    return one_record(4, data, A, record | last.fields() | {"rounds": rounds})


def entry_proof(
    Y: np.ndarray,
    data: Json,
    k: int,
    rng: np.random.Generator,
    room: float = 2.0**-31,
) -> list[Json]:
    """Write a proof of one k by rule "entry", of section 7, with some weights."""
    A = float_matrix(Y, data)
    d, top = len(A), float(np.abs(A).max()) or 1.0
    w = np.sqrt(top / max(k - 1, 1)) * rng.uniform(0, 1, d) ** float(rng.integers(1, 3))
    w *= rng.random(d) < 0.9
    value, S, x = best_set(A, k)
    guided = k > 1 and value > 0 and rng.random() < 0.5
    if guided:  # by the best component: then the bound is often its value
        w = np.sqrt(np.maximum(value - np.diagonal(A), 0) / (k - 1)) * 0.95
        size = np.maximum(np.abs(x), 1e-3)
        w[[*S]] = w[S[np.argmin(size)]] * size.min() / size
    dense = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.5, 1.0]))
    core = dense[rng.random(len(dense)) < 0.7]
    v = np.exp(rng.normal(size=d) * float(rng.choice([0.0, 0.3])))
    shares = [int(s) for s in rng.integers(-(2**14), 2**14 + 1, len(core) ** 2)]
    pairs = list(itertools.combinations(core.tolist(), 2))
    if rng.random() < 0.7:  # what clipping the entries comes to
        product = np.outer(w, w)
        wanted = np.divide(A, product, out=np.zeros_like(A), where=product > 0)
        if guided:
            wanted[np.ix_(S, S)] = np.sign(np.outer(x, x))
        wanted = np.rint(np.clip(wanted, -1, 1) * 2**14)
        shares = [int(wanted[i, j]) for i, j in pairs]
    shares = shares[: len(pairs)]
    record: Json = {"k": k, "rule": "entry", "weights": [float(x).hex() for x in w]}
    record |= {"core": core.tolist(), "shares": shares, "dense": dense.tolist()}
    if len(dense) < d:
        record["scaling"] = [float(x).hex() for x in v]
    needed = entry_value(A, record)
    record["upper"] = (needed + (room * abs(needed))).hex()
    return one_record(5, data, A, record)


def entry_value(A: np.ndarray, record: Json) -> float:
    """Return the least U for which a record of rule "entry" holds, in floats."""
    w = np.array([float.fromhex(x) for x in record["weights"]])
    M = np.sign(A) * np.maximum(np.abs(A) - np.outer(w, w), 0.0)
    pairs = itertools.combinations(record["core"], 2)
    for (i, j), share in zip(pairs, record["shares"], strict=True):
        M[i, j] = M[j, i] = A[i, j] - share * 2.0**-14 * w[i] * w[j]
    np.fill_diagonal(M, np.diagonal(A) + (record["k"] - 1) * w**2)
    G = record["dense"]
    rest = [j for j in range(len(A)) if j not in G]
    found = []
    inside = M[np.ix_(G, G)]
    if rest:
        v = np.array([float.fromhex(x) for x in record["scaling"]])
        terms = np.abs(M - np.diag(np.diagonal(M))) * v / v[:, None]
        found = [M[j, j] + terms[j].sum() for j in rest]
        inside = inside + np.diag(terms[np.ix_(G, rest)].sum(axis=1))
    if G:
        found.append(np.linalg.eigvalsh(inside)[-1])
    return float(max(found))


class EntryTree:
    """Writes the nodes of rule "entry-tree": points at random, for one U."""

    def __init__(
        self, A: np.ndarray, k: int, upper: float, rng: np.random.Generator
    ) -> None:
        self.A, self.k, self.rng, self.upper = A, k, rng, upper
        self.level = upper - 2.0**-31 * abs(upper)
        self.nodes: list[Json] = []

    def node(self, inside: list[int], free: list[int]) -> None:
        m = self.k - len(inside)
        if m <= 0 or len(free) <= m:
            self.nodes.append({"last": True})
            return
        T = sorted([*inside, *free])
        point, M = self.point(T, inside, m)
        if np.linalg.eigvalsh(M)[-1] <= self.level:
            self.nodes.append({"close": point})
            return
        out = {i: found for i in free if (found := self.out(T, inside, m, i))}
        left = [T.index(i) for i in T if i not in out]
        needed = [
            i
            for i in free
            if i not in out and self.is_below(M, [j for j in left if T[j] != i])
        ]
        if out or needed:
            own, prices = zip(*out.values(), strict=True) if out else ((), ())
            fix = {"fix": point, "out": [*out], "in": needed}
            fix |= {"own": [u.hex() for u in own], "prices": [a.hex() for a in prices]}
            self.nodes.append(fix)
            free = [i for i in free if i not in out and i not in needed]
            self.node(sorted([*inside, *needed]), free)
            return
        p = int(self.rng.choice(free))
        self.nodes.append({"split": p})
        free = [i for i in free if i != p]
        self.node(sorted([*inside, p]), free)
        self.node(inside, free)

    def is_below(self, M: np.ndarray, left: list[int]) -> bool:
        values = np.linalg.eigvalsh(M[np.ix_(left, left)])
        return bool((values <= self.level).all())

    def point(self, T: list[int], inside: list[int], m: int) -> tuple[Json, np.ndarray]:
        rng, n = self.rng, len(T)
        self.ratio = float(rng.choice([1.0, 0.5, 2.0]))
        B = self.A[np.ix_(T, T)]
        room = np.maximum(self.upper - np.diagonal(B), 0.0) / self.k
        self.w = w = np.sqrt(room) * rng.uniform(0.3, 1.0, n)
        product = np.outer(w, w)
        wanted = np.divide(B, product, out=np.zeros_like(B), where=product > 0)
        self.shares = s = np.rint(np.clip(wanted, -1, 1) * 2**14)
        np.fill_diagonal(s, 0.0)
        self.rho = np.where(np.isin(T, inside), self.ratio, 1.0)
        M = self.moved(T, m + len(inside) * self.ratio)
        point = {
            "ratio": self.ratio.hex(),
            "weights": [x.hex() for x in w.tolist()],
            "shares": s[np.triu_indices(n, 1)].astype(int).tolist(),
        }
        return point, M

    def moved(self, T: list[int], R: float) -> np.ndarray:
        M = self.A[np.ix_(T, T)] - self.shares * 2.0**-14 * np.outer(self.w, self.w)
        price = np.maximum(R / self.rho - 1, 0.0) * self.w**2
        return M + np.diag(price)

    def out(
        self, T: list[int], inside: list[int], m: int, i: int
    ) -> tuple[float, float] | None:
        """Return u and a with which i is out, if it is."""
        at, a = T.index(i), float(self.rng.uniform(1, 5) * self.k)
        R = (m - 1 + len(inside) * self.ratio) * (1 + 1 / a)
        B = self.upper * np.eye(len(T)) - self.moved(T, R)
        if np.linalg.eigvalsh(B)[0] < 2.0**-19 * abs(self.upper):
            return None
        u = float(self.w[at] * self.rng.uniform(0, 1))
        c = self.A[T, i] - self.shares[:, at] * 2.0**-14 * u * self.w
        left = [j for j in range(len(T)) if j != at]
        form = c[left] @ np.linalg.solve(B[np.ix_(left, left)], c[left])
        fits = self.A[i, i] + a * u * u + form <= self.upper - 1e-8 * abs(self.upper)
        return (u, a) if fits else None


def entry_tree_proof(
    Y: np.ndarray, data: Json, k: int, rng: np.random.Generator
) -> list[Json]:
    """Write a proof of one k by rule "entry-tree", without screening."""
    A = float_matrix(Y, data)
    value = best_set(A, k)[0]
    upper = value + abs(value) * float(rng.choice([1e-8, 1e-3, 0.05]))
    tree = EntryTree(A, k, upper, rng)
    tree.node([], list(range(len(A))))
    record: Json = {"k": k, "upper": upper.hex(), "rule": "entry-tree"}
    record |= {"features": list(range(len(A))), "nodes": tree.nodes}
    return one_record(6, data, A, record)


def random_problem(rng: np.random.Generator, d: int) -> tuple[np.ndarray, Json]:
    """Return small data or a small matrix, often with ties."""
    kind = rng.choice(["matrix", "integers", "data", "scaled", "raw"])
    if kind in ("matrix", "integers"):
        Y = rng.standard_normal((d, d)) if kind == "matrix" else None
        if Y is None:
            Y = rng.integers(-2, 4, (d, d)).astype(float)
        if rng.random() < 0.8:
            Y = np.tril(Y) + np.tril(Y, -1).T
        return Y, describe(Y)
    Y = rng.standard_normal((int(rng.integers(3, 9)), d)) * rng.gamma(2.0, size=d)
    if rng.random() < 0.3:
        Y = np.round(Y)
    options = {"center": kind != "raw", "scale": kind == "scaled"}
    return Y, describe(Y, "data", **options, ddof=int(rng.integers(0, 2)))
