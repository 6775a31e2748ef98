"""Changes of valid proofs that try to make them say more than is true.

`mutant(seed)` makes a small problem, a proof of it (`proof_builder`), and changes one
to three things: numbers, features, tokens of trees, records, what the header says about
the data, the data themselves (with a hash that fits), or the text. `judge` shows it to
the checker; an accepted proof with a claim that is false, by exact brute force, is a
defect.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from blockspca.checker.check import check_proof
from blockspca.checker.proof_file import ProofError, Section, read_proof
from proof_builder import (
    Builder,
    Json,
    Truth,
    as_bytes,
    describe,
    direction_proof,
    entry_proof,
    entry_tree_proof,
    random_problem,
    rounds_proof,
    sha256,
)
from proof_problems import Sets, derived_proof

Rng = np.random.Generator
MODES = ({"exact": True}, {"floats": True}, {})


@dataclass
class Draft:
    """A proof that is being changed: its lines, the data, and the text at last."""

    lines: list[Json]
    Y: np.ndarray
    cut: Callable[[bytes], bytes] = bytes

    @property
    def header(self) -> Json:
        return self.lines[0]

    @property
    def records(self) -> list[Json]:
        return self.lines[1:-1]

    def text(self) -> bytes:
        return self.cut(as_bytes(self.lines))


def moved(value: float, rng: Rng) -> float:
    """Return another number: often a little less, for that is what a cheat wants."""
    way = rng.integers(6)
    if way == 0:
        return float(rng.choice([0.0, -value, value * 2, value / 2, 1e300, 5e-324]))
    if way == 1:
        return float(np.nextafter(value, rng.choice([-np.inf, np.inf])))
    step = 2.0 ** -float(rng.integers(1, 45))
    return value * (1 + step) if way == 2 else value - abs(value) * step


def change_real(draft: Draft, rng: Rng) -> None:
    places = [(line, "upper") for line in draft.records]
    for line in draft.records:
        lists = [line.get(key, []) for key in ("weights", "scaling")]
        for numbers in (*lists, *line.get("directions", [])):
            places += [(numbers, i) for i in range(len(numbers))]
        places += [(line, key) for key in ("rho", "rest") if key in line] * 2
        for one in line.get("rounds", []):
            places += [(one, "rho"), (one["vector"], 0), (one["vector"], 1)]
    for claim in draft.header["claims"]:
        places += [(claim, "objective"), (claim, "upper_bound")] * 2
        places += [(claim["x"], i) for i in range(len(claim["x"]))]
    line, key = places[rng.integers(len(places))]
    line[key] = moved(float.fromhex(line[key]), rng).hex()


def lower_together(draft: Draft, rng: Rng, start: int = 0) -> None:
    """Lower the bounds from some k on, of records and claims alike."""
    start = start or int(rng.integers(1, len(draft.records) + 1))
    factor = 1 - 2.0 ** -float(rng.integers(1, 40))
    for line in [*draft.records, *draft.header["claims"]]:
        if line["k"] >= start:
            key = "upper" if "upper" in line else "upper_bound"
            value = float.fromhex(line[key])
            line[key] = (value * factor if value > 0 else value / factor).hex()


def cheapen(draft: Draft, rng: Rng) -> None:
    """Put a simple reason in the place of another, and lower the bounds, too."""
    record = draft.records[rng.integers(len(draft.records))]
    for key in [*record]:
        if key not in ("k", "upper"):
            del record[key]
    record["rule"] = str(rng.choice(["variance", "rows", "average", "tree"]))
    if record["rule"] == "tree":
        record["features"] = list(range(draft.Y.shape[1]))
        record["tree"] = str(rng.choice(["S0", "L", "P", "D S0"]))
    if record["rule"] == "average":
        record["from"] = int(rng.integers(1, record["k"] + 1))
    lower_together(draft, rng, record["k"])


def raise_objective(draft: Draft, rng: Rng) -> None:
    for claim in draft.header["claims"]:
        claim["objective"] = claim["upper_bound"]


def change_integer(draft: Draft, rng: Rng) -> None:
    places: list[tuple] = [(draft.header, "row_list"), (draft.lines[-1], "end")]
    data = draft.header["data"]
    places += [(data, key) for key in ("n", "d", "ddof") if key in data]
    for line in [*draft.records, *draft.header["claims"]]:
        for key in ("k", "from"):
            places += [(line, key)] * (3 if key in line else 0)
        for key in ("features", "support"):
            places += [(line[key], i) for i in range(len(line.get(key, ())))]
    line, key = places[rng.integers(len(places))]
    line[key] += int(rng.choice([-2, -1, 1, 2]))


def change_options(draft: Draft, rng: Rng) -> None:
    data = draft.header["data"]
    if data["kind"] == "matrix" or rng.random() < 0.2:
        kind = "data" if data["kind"] == "matrix" else "matrix"
        draft.header["data"] = describe(draft.Y, kind)
    else:
        key = str(rng.choice(["center", "scale"]))
        data[key] = not data[key]


def change_data(draft: Draft, rng: Rng) -> None:
    """Put other numbers in place of the data, and the hash that belongs to them."""
    Y = draft.Y = draft.Y.copy()
    way = rng.integers(4)
    if way == 0:
        Y[:] = Y[:, rng.permutation(Y.shape[1])]
    elif way == 1:
        i, j = rng.integers(Y.shape[0]), rng.integers(Y.shape[1])
        Y[i, j] = moved(Y[i, j] or 1.0, rng)
    else:
        Y *= 1 + 2.0 ** -float(rng.integers(1, 40)) * (way == 2) * rng.random(Y.shape)
    if rng.random() < 0.9:
        draft.header["data"]["sha256"] = sha256(Y)


def change_tree(draft: Draft, rng: Rng) -> None:
    trees = [line for line in draft.records if line["rule"] == "tree"]
    if not trees:
        return change_real(draft, rng)
    line = trees[rng.integers(len(trees))]
    tokens = line["tree"].split(" ")
    at = int(rng.integers(len(tokens)))
    way = rng.integers(5)
    if way == 0:
        del tokens[at]
    elif way == 1:
        tokens[at] = str(rng.choice(["L", "P", "D", "S0", "S1", "0", "1", "2"]))
    elif way == 2:
        tokens.insert(at, str(rng.choice(["D", "L", "P", "S0"])))
    elif way == 3:  # close a subtree at once
        closed = close_subtree(tokens, at)
        tokens = closed if closed else tokens
    else:
        other = int(rng.integers(len(tokens)))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    line["tree"] = " ".join(tokens)


def close_subtree(tokens: list[str], at: int) -> list[str]:
    """Return the tokens with the node at `at` replaced by a leaf."""
    stop, waiting = at, 1
    while waiting and stop < len(tokens):
        token = tokens[stop]
        if not token[0].isalpha():
            return []
        opened = int(token[1:]) if token[0] == "S" else 0
        stop += 1 + opened
        waiting += 0 if token == "D" else opened - 1
    return [*tokens[:at], "S0", *tokens[stop:]]


def open_less(draft: Draft, rng: Rng) -> None:
    """Leave out one child of an S, with its node: the text stays well formed."""
    trees = [line for line in draft.records if "S" in line.get("tree", "")]
    if not trees:
        return lower_together(draft, rng)
    line = trees[rng.integers(len(trees))]
    tokens = line["tree"].split(" ")
    places = [i for i, t in enumerate(tokens) if t[0] == "S" and t != "S0"]
    if not places:
        return change_real(draft, rng)
    at = places[rng.integers(len(places))]
    size = int(tokens[at][1:])
    gone = int(rng.integers(size))
    start = at + 1 + size
    for _ in range(gone):
        start = end_of_node(tokens, start)
    stop = end_of_node(tokens, start)
    del tokens[start:stop]
    del tokens[at + 1 + gone]
    tokens[at] = f"S{size - 1}"
    line["tree"] = " ".join(tokens)


def end_of_node(tokens: list[str], at: int) -> int:
    waiting = 1
    while waiting and at < len(tokens):
        opened = int(tokens[at][1:]) if tokens[at][0] == "S" else 0
        waiting += 0 if tokens[at] == "D" else opened - 1
        at += 1 + opened
    return at


def change_features(draft: Draft, rng: Rng) -> None:
    trees = [line for line in draft.records if line.get("features")]
    if not trees:
        return change_integer(draft, rng)
    features = trees[rng.integers(len(trees))]["features"]
    way = rng.integers(3)
    at = int(rng.integers(len(features)))
    if way == 0:
        del features[at]
    elif way == 1:
        features.insert(at, int(rng.integers(draft.Y.shape[1])))
    else:
        rng.shuffle(features)


def change_records(draft: Draft, rng: Rng) -> None:
    lines, at = draft.lines, int(rng.integers(1, len(draft.lines) - 1))
    way = rng.integers(5)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(at, copy.deepcopy(lines[int(rng.integers(1, len(lines) - 1))]))
    elif way == 2:
        other = int(rng.integers(1, len(lines) - 1))
        lines[at], lines[other] = lines[other], lines[at]
    elif way == 3:
        lines[at] |= {"rule": str(rng.choice(["variance", "rows"]))}
        for key in {*lines[at]} - {"k", "upper", "rule"}:
            del lines[at][key]
    else:  # everything one k further
        for line in lines[at:-1]:
            line["k"] += 1
    if len(lines) > 2 and rng.random() < 0.8:
        lines[-1] = {"end": len(lines) - 2}


def change_support(draft: Draft, rng: Rng) -> None:
    claim = draft.header["claims"][-1]
    way = rng.integers(3)
    if way == 0:
        claim["support"] = sorted(
            [*claim["support"], int(rng.integers(draft.Y.shape[1]))]
        )
        claim["x"].append(float(rng.standard_normal()).hex())
    elif way == 1:
        claim["k"] -= 1
    else:
        claim["support"], claim["x"] = claim["support"][1:], claim["x"][1:]


def change_round(draft: Draft, rng: Rng) -> None:
    """Move a feature from one list of a round to another, or leave a round out."""
    rounds = draft.records[0].get("rounds")
    if not rounds:
        return cheapen(draft, rng)
    one = rounds[rng.integers(len(rounds))]
    if rng.random() < 0.2:
        return rounds.remove(one)
    i = int(rng.integers(draft.Y.shape[1]))
    place = rng.choice(["in", "free", "out"])
    for key in ("in", "free"):
        one[key] = sorted({*one[key]} - {i} | ({i} if key == place else set()))
    if rng.random() < 0.5:
        lower_together(draft, rng)


def change_point(draft: Draft, rng: Rng) -> None:
    """Change a share or the lists of rule "entry"; often lower the bounds as well."""
    if any("nodes" in line for line in draft.records):
        return change_nodes(draft, rng)
    records = [line for line in draft.records if line["rule"] == "entry"]
    if not records:
        return change_real(draft, rng)
    record = records[rng.integers(len(records))]
    way = rng.integers(4)
    if way == 0:
        shares = record["shares"]
        i = int(rng.integers(len(shares)))
        shares[i] = int(rng.choice([-shares[i], 2**14, 2**14 + 1, -(2**15), 0]))
    elif way == 1:
        rng.shuffle(record[str(rng.choice(["shares", "weights"]))])
    elif way == 2:
        record["k"] += int(rng.choice([-1, 1]))
    else:  # fewer rows that have to be below the bound
        key = str(rng.choice(["core", "dense"]))
        del record[key][rng.integers(len(record[key]))]
        m = len(record["core"])
        record["shares"] = record["shares"][: m * (m - 1) // 2]
        record["scaling"] = ["0x1.0p+0"] * draft.Y.shape[1]
    if rng.random() < 0.7:
        lower_together(draft, rng)


def change_nodes(draft: Draft, rng: Rng) -> None:
    """Change the nodes of rule "entry-tree"; often lower the bounds as well."""
    nodes = draft.records[0]["nodes"]
    at = int(rng.integers(len(nodes)))
    node, way = nodes[at], rng.integers(6)
    points = [one[key] for one in nodes for key in ("fix", "close") if key in one]
    if way == 0 and points:
        numbers = points[rng.integers(len(points))]["weights"]
        i = int(rng.integers(len(numbers)))
        numbers[i] = moved(float.fromhex(numbers[i]), rng).hex()
    elif way == 1:  # a feature more is out, or in
        fixes = [one for one in nodes if "fix" in one]
        one = fixes[rng.integers(len(fixes))]
        i = int(rng.integers(draft.Y.shape[1]))
        if rng.random() < 0.5:
            one["out"].append(i)
            one["own"].append("0x0.0p+0")
            one["prices"].append("0x1.0p+1")
        else:
            one["in"] = sorted({*one["in"], i})
    elif way == 2:
        nodes[at] = {"last": True}
    elif way == 3 and points:
        nodes[at] = {"close": copy.deepcopy(points[rng.integers(len(points))])}
    elif way == 4:
        del nodes[at]
    elif "split" in node:
        node["split"] = int(rng.integers(draft.Y.shape[1]))
    if rng.random() < 0.6:
        lower_together(draft, rng)


def change_problem(draft: Draft, rng: Rng) -> None:
    """Change what a header of version 7 says of the matrix and of the sets."""
    header, d = draft.header, draft.Y.shape[1]
    said = header.get("constraints", {})
    word = rng.choice(["level", "include", "groups", "vectors", "raised", "signs"])
    if word == "level":
        if rng.random() < 0.2:
            del header["level"]
        else:
            value = float.fromhex(header["level"])
            header["level"] = moved(value, rng).hex()
    elif word == "include":
        change = (
            [rng.choice(said["include"])] if rng.random() < 0.6 else [rng.integers(d)]
        )
        said["include"] = sorted({*said["include"]} ^ {int(i) for i in change})
    elif word == "groups":
        groups = said["groups"]
        group = groups[rng.integers(len(groups))]
        if rng.random() < 0.5:
            group["most"] += int(rng.choice([-1, 1]))
        else:
            group["features"] = sorted({*group["features"]} ^ {int(rng.integers(d))})
    elif word == "vectors":
        deflated = header["deflated"]
        vector = deflated["vectors"][rng.integers(len(deflated["vectors"]))]
        if rng.random() < 0.3:
            deflated["how"] = str(rng.choice(["residual", "projection"]))
        elif rng.random() < 0.3:
            deflated["vectors"].remove(vector)
        else:
            at = rng.integers(len(vector["x"]))
            vector["x"][at] = moved(float.fromhex(vector["x"][at]), rng).hex()
    elif word == "raised":
        pairs = {tuple(pair) for pair in header["raised"]}
        i, j = sorted(rng.choice(d, 2, replace=False).tolist())
        header["raised"] = [list(pair) for pair in sorted(pairs ^ {(i, j)})]
    else:
        said["nonnegative"] = not said["nonnegative"]
        if rng.random() < 0.5:
            header.pop("raised", None)


def truncate(draft: Draft, rng: Rng) -> None:
    share = rng.random()
    draft.cut = lambda text: text[: int(share * len(text))]


def change_byte(draft: Draft, rng: Rng) -> None:
    share, byte = rng.random(), bytes([int(rng.integers(32, 127))])

    def cut(text: bytes) -> bytes:
        at = int(share * len(text))
        return text[:at] + byte + text[at + 1 :]

    draft.cut = cut


CHANGES: tuple[Callable[[Draft, Rng], None], ...] = (
    change_real,
    lower_together,
    cheapen,
    raise_objective,
    change_integer,
    change_options,
    change_data,
    change_tree,
    open_less,
    change_features,
    change_records,
    change_support,
    change_round,
    change_point,
    change_problem,
    truncate,
    change_byte,
)


def mutants(seed: int, count: int) -> list[tuple[Draft, str]]:
    """Return so many mutants of one proof, with the names of what was changed."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 7))
    Y, data = random_problem(rng, d)
    slack = float(rng.choice([0.0, 0.05, 0.3]))
    k = int(rng.integers(2, min(d, 4) + 1))
    derived = derived_proof(rng, d, k) if seed % 4 == 1 else None
    if derived is not None:
        lines, Y = derived
    elif seed % 8 == 7:
        lines = entry_tree_proof(Y, data, k, rng)
    elif seed % 4 == 3:
        lines = entry_proof(Y, data, k, rng)
    elif data["kind"] == "data" and rng.random() < 0.3:
        lines = rounds_proof(Y, data, k, rng) or direction_proof(Y, data, k, rng)
    else:
        lines = Builder(Y, data, rng).build(k, slack)
    return mutants_of(lines, Y, rng, count)


def mutants_of(
    lines: list[Json],
    Y: np.ndarray,
    rng: Rng,
    count: int,
    changes: Sequence[Callable[[Draft, Rng], None]] = CHANGES,
) -> list[tuple[Draft, str]]:
    """Return so many mutants of a proof, with the names of what was changed."""
    made = []
    for _ in range(count):
        draft = Draft(copy.deepcopy(lines), Y)
        names = []
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            change = changes[rng.integers(len(changes))]
            try:
                change(draft, rng)
            except (IndexError, ValueError, KeyError):
                continue  # an earlier change has left nothing to change here
            names.append(change.__name__)
        made.append((draft, " ".join(names)))
    return made


def judge_file(text: bytes, Y: np.ndarray, seed: int, count: int) -> tuple[int, list]:
    """Show mutants of a given proof to the checker, in floats; the data stay.

    Of opt(k) it is known that the proof's own claims hold, once it has been checked: a
    claim of a mutant is false if it contradicts them.
    """
    check_proof(text, Y)
    known = {claim.k: claim for claim in read_proof(text)[0].claims}
    lines = [json.loads(line) for line in text.decode().splitlines()]
    kept = [c for c in CHANGES if c not in (change_data, change_options)]
    accepted, wrong = 0, []
    rng = np.random.default_rng(seed)
    for number, (draft, names) in enumerate(mutants_of(lines, Y, rng, count, kept)):
        try:
            check_proof(draft.text(), Y, floats=True)
        except ProofError:
            continue
        accepted += 1
        for claim in read_proof(draft.text())[0].claims:
            truth = known.get(claim.k, claim)
            low, high = truth.objective, truth.upper_bound
            if claim.upper_bound < low or claim.objective > high:
                wrong.append(f"seed {seed}, mutant {number} ({names}): k = {claim.k}")
    return accepted, wrong


def false_claims(section: Section, header: Json, Y: np.ndarray) -> list[int]:
    """Return the k of the claims of a proof that are false."""
    truth: Truth | Sets
    plain = header.keys() <= {"format", "version", "data", "row_list", "claims"}
    truth = Truth(Y, header["data"]) if plain else Sets(header, Y)
    return [
        claim.k
        for claim in section.claims
        if not truth.allows(claim.k, claim.objective, claim.upper_bound)
    ]


def judge(seed: int, count: int) -> tuple[int, list[str]]:
    """Show mutants to the checker; return how many it accepted, and what is wrong."""
    accepted, wrong = 0, []
    for number, (draft, names) in enumerate(mutants(seed, count)):
        text = draft.text()
        try:
            check_proof(text, draft.Y, **MODES[(seed + number) % len(MODES)])
        except ProofError:
            continue
        accepted += 1
        header = json.loads(text.split(b"\n")[0])
        false = false_claims(read_proof(text)[0], header, draft.Y)
        if false:
            wrong.append(f"seed {seed}, mutant {number} ({names}): k = {false}")
    return accepted, wrong
