"""Proofs that count the features of parts, written from docs/proof-format.md alone.

As `proof_builder` does: in plain floats, with room; what is wrong a checker refuses.
"""

from __future__ import annotations

import itertools

import numpy as np

from proof_builder import ROOM, Builder, Json, best_set, random_problem, sha256

NEAR = 1e-6  # room of counts, beside the largest entry


class CompositionBuilder(Builder):
    """Writes a proof of one k by parts, with trees for the counts that are left."""

    def build_one(self, k: int) -> list[Json]:
        rng, d = self.rng, len(self.A)
        value, S, x = best_set(self.A, k)
        self.k, self.tau = k, value + 2 * ROOM * self.scale
        if rng.random() < 0.4:
            self.tau += float(rng.random()) * self.scale / 4
        records = self.smaller() if rng.random() < 0.5 else []
        order, self.parts, start = rng.permutation(d).tolist(), [], 0
        while start < d:
            size = int(rng.integers(1, 4))
            self.parts.append(sorted(order[start : start + size]))
            start += size
        self.strong = len(self.parts)
        if self.strong > 1 and rng.random() < 0.6:  # the last is the rest
            self.parts.append([i for part in self.parts[-1:] for i in part])
            del self.parts[-2]
            self.strong -= 1
        self.tables()
        self.cases: list[Json] = []
        counts = self.count([])
        level = float(self.level + NEAR * self.scale)
        record = {"k": k, "upper": self.tau.hex(), "rule": "compositions"}
        record |= {"parts": self.parts[: self.strong], "level": level.hex()}
        record |= {"bounds": self.bounds, "counts": " ".join(counts)}
        records.append(record | {"cases": self.cases})
        claim = {"k": k, "support": list(S), "x": [float(y).hex() for y in x]}
        claim["objective"] = (value - ROOM * self.scale).hex()
        claim["upper_bound"] = (self.tau + ROOM * self.scale).hex()
        header: Json = {"format": "blockspca-proof", "version": 9, "data": self.data}
        header |= {"row_list": max(k - 1, 1), "claims": [claim]}
        return [header, *records, {"end": len(records)}]

    def smaller(self) -> list[Json]:
        """Return records of fewer features, for the chain."""
        records = []
        for q in range(1, self.k):
            record = self.record(q, best_set(self.A, q)[0], 0.0)
            self.uppers[q] = float.fromhex(record["upper"])
            records.append(record)
        return records

    # -- tables ------------------------------------------------------------------------

    def tables(self) -> None:
        k, sizes = self.k, np.abs(self.A) - np.diag(np.abs(np.diagonal(self.A)))
        self.sizes = sizes
        rest = self.parts[-1] if self.strong < len(self.parts) else []
        self.level = max((sizes[i, j] for i in rest for j in rest), default=0.0)
        self.bounds, self.within = [], []
        for part in self.parts[: self.strong]:
            own = self.A[np.ix_(part, part)]
            rows = [
                max(
                    self.A[i, i] + self.top(i, part, s - 1)
                    for i in part
                )
                for s in range(1, len(part) + 1)
            ]  # fmt: skip
            points = []
            for _ in range(int(self.rng.integers(0, 3))):
                v = np.linalg.eigh(own)[1][:, -1] * self.rng.uniform(0, 2)
                v *= np.sqrt(self.scale) * self.rng.choice([0.1, 1.0])
                left = own - np.outer(v, v)
                t = float(np.linalg.eigvalsh(left)[-1]) + NEAR * self.scale
                points.append({"t": t.hex(), "v": [float(y).hex() for y in v]})
                squares = np.cumsum(np.sort(v * v)[::-1])
                rows = [min(a, t + b) for a, b in zip(rows, squares, strict=True)]
            self.bounds.append(points)
            self.within.append(rows)
        if rest:
            own = max(self.A[i, i] for i in rest)
            self.within.append([own + s * self.level for s in range(len(rest))])
        self.after = [[-np.inf] * (k + 1) for _ in range(len(self.parts) + 1)]
        for g in reversed(range(len(self.parts))):
            for r in range(1, k + 1):
                found = [self.after[g + 1][r]]
                for s in range(1, min(r, len(self.parts[g])) + 1):
                    a, b = self.within[g][s - 1], self.after[g + 1][r - s]
                    if s < r and b > -np.inf:
                        c2 = self.coupled(self.parts[g], s, self.beyond(g), r - s)
                        a = (a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + c2)
                    if s == r or b > -np.inf:
                        found.append(a)
                self.after[g][r] = max(found)
        for q in range(1, k):
            known = self.after[0][q] + NEAR * self.scale
            self.uppers[q] = min(self.uppers.get(q, np.inf), known)

    def beyond(self, g: int) -> list[list[int]]:
        return self.parts[g + 1 :]

    def top(self, i: int, part: list[int], s: int) -> float:
        return float(sum(sorted((self.sizes[i, j] for j in part), reverse=True)[:s]))

    def coupled(
        self, part: list[int], s: int, others: list[list[int]], q: int
    ) -> float:
        together = [j for other in others for j in other]
        there = max(self.top(i, together, q) for i in part)
        return there * max(self.top(j, part, s) for j in together)

    def is_closed(self, counts: list[int]) -> bool:
        g, q = len(counts) - 1, self.k - sum(counts)
        if q > sum(map(len, self.beyond(g))):
            return True
        used = [(self.parts[h], s, h) for h, s in enumerate(counts) if s]
        size = len(used) + (q > 0)
        M = np.zeros((size, size))
        for a, (part, s, h) in enumerate(used):
            M[a, a] = self.within[h][s - 1]
            for b, (other, count, _) in enumerate(used[:a]):
                M[a, b] = M[b, a] = np.sqrt(self.coupled(part, s, [other], count))
            if q:
                c2 = self.coupled(part, s, self.beyond(g), q)
                M[a, -1] = M[-1, a] = np.sqrt(c2)
        if q:
            M[-1, -1] = self.after[g + 1][q]
        return bool(np.linalg.eigvalsh(M)[-1] < self.tau - 8 * NEAR * self.scale)

    # -- trees -------------------------------------------------------------------------

    def count(self, counts: list[int]) -> list[str]:
        left = self.k - sum(counts)
        if not left:
            missing = len(self.parts) - len(counts)
            self.cases.append(self.case(counts + [0] * missing))
            return ["L"]
        most = min(left, len(self.parts[len(counts)]))
        later = sum(map(len, self.parts[len(counts) + 1 :]))
        opened = [
            s
            for s in range(most + 1)
            if not self.is_closed([*counts, s])
            or (left - s <= later and self.rng.random() < 0.1)
        ]
        tokens = [f"S{len(opened)}", *map(str, opened)]
        for s in opened:
            tokens += self.count([*counts, s])
        return tokens

    def case(self, counts: list[int]) -> Json:
        chosen = [
            i
            for part, s in zip(self.parts, counts, strict=True)
            if s == len(part)
            for i in part
        ]
        label = {
            i: g
            for g, part in enumerate(self.parts)
            if 0 < counts[g] < len(part)
            for i in part
        }
        features = [int(i) for i in self.rng.permutation(list(label)).astype(int)]
        rows = [*chosen, *features]
        B = self.A[np.ix_(rows, rows)]
        for _ in chosen:
            B = B[1:, 1:] + np.outer(B[0, 1:], B[0, 1:]) / (self.tau - B[0, 0])
        self.labels = [label[i] for i in features]
        m, F = self.k - len(chosen), list(range(len(features)))
        tree = self.case_node(B, F, m, counts) if m else ["L"]
        return {"features": features, "tree": " ".join(tree)}

    def case_node(
        self, B: np.ndarray, F: list[int], m: int, room: list[int]
    ) -> list[str]:
        F = [i for i in F if room[self.labels[i]] > 0]
        held = [self.labels[i] for i in F]
        if sum(min(room[g], held.count(g)) for g in {*held}) < m or m == 1:
            return ["L"]
        least = self.tau - ROOM * self.scale / 8
        pairs = [
            (i, j)
            for i, j in itertools.combinations(F, 2)
            if self.labels[i] != self.labels[j] or room[self.labels[i]] > 1
        ]
        if m == 2 and all(self.pairs_fit(B[np.ix_(p, p)], least) for p in pairs):
            return ["L"]
        rng, tokens = self.rng, []
        u = self.uppers.get(self.k - 1, np.inf)
        if rng.random() < 0.5 and u < least:
            tokens, F = ["D"], self.drops(B, F, m, self.k, self.tau)
        if len(F) < m:
            return [*tokens, "L"]
        if rng.random() < 0.5 and np.linalg.eigvalsh(B[np.ix_(F, F)])[-1] < least:
            return [*tokens, "P"]
        opened = sorted(self.open_positions(B, F, m, self.k, least))
        tokens += [f"S{len(opened)}", *map(str, opened)]
        for p in opened:
            child = B + np.outer(B[p], B[p]) / (self.tau - B[p, p])
            left = [s - (g == self.labels[p]) for g, s in enumerate(room)]
            tokens += self.case_node(child, [i for i in F if i > p], m - 1, left)
        return tokens


def composition_proof(
    rng: np.random.Generator, d: int, k: int
) -> tuple[list[Json], np.ndarray]:
    """Return a proof with its data, of parts that are weakly coupled or not."""
    Y, data = random_problem(rng, d)
    if data["kind"] == "matrix" and rng.random() < 0.6:
        block = np.arange(d) // 2
        Y = np.where(np.equal.outer(block, block), Y, Y / 20)
        data = data | {"sha256": sha256(Y)}
    return CompositionBuilder(Y, data, rng).build_one(k), Y
