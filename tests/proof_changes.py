"""Changes of valid proofs that try to make them say more than is true.

Each changes a `Draft` in one way: numbers, features, tokens of trees, records, what the
header says about the data, the data themselves (with a hash that fits), or the text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proof_builder import Json, as_bytes, describe, sha256

Rng = np.random.Generator


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
    trees = [line for line in draft.records if "tree" in line]
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


def change_counts(draft: Draft, rng: Rng) -> None:
    """Change parts, counts or cases of "compositions"; often lower the bounds, too."""
    record = draft.records[-1]
    if "parts" not in record:
        return cheapen(draft, rng)
    parts, cases, d = record["parts"], record["cases"], draft.Y.shape[1]
    part = parts[rng.integers(len(parts))]
    way = rng.integers(9)
    if way == 0:  # in no part, in two of them, or in another
        i = part.pop(int(rng.integers(len(part)))) if rng.random() < 0.7 else part[0]
        if rng.random() < 0.7:
            other = parts[rng.integers(len(parts))]
            other[:] = sorted([*other, i])
        if not part:
            del record["bounds"][parts.index(part)], parts[parts.index(part)]
    elif way == 1:
        parts[parts.index(part)] = sorted({*part} ^ {int(rng.integers(d))})
    elif way == 2:
        at = parts.index(part)
        del parts[at], record["bounds"][at]
    elif way == 3:
        level = float.fromhex(record["level"])
        record["level"] = (level * float(rng.choice([0.0, 0.5, 0.9, 2.0]))).hex()
    elif way == 4:
        points = [point for items in record["bounds"] for point in items]
        point = points[rng.integers(len(points))]
        numbers, at = (point, "t") if rng.random() < 0.5 else (point["v"], 0)
        numbers[at] = moved(float.fromhex(numbers[at]), rng).hex()
    elif way == 5:
        lists = record["bounds"] if rng.random() < 0.5 else cases
        rng.shuffle(lists)
    elif way == 6:
        record["k"] += int(rng.choice([-1, 1]))
    elif way == 7:
        change_counted_tree(record, rng)
    else:
        case = cases[rng.integers(len(cases))]
        names = case["features"]
        if rng.random() < 0.5 and names:
            names.pop(int(rng.integers(len(names))))
        elif rng.random() < 0.5:
            names.append(int(rng.integers(d)))
        else:
            case["tree"] = str(rng.choice(["L", "S0", "P", "D L", "D S0"]))
    if rng.random() < 0.6:
        lower_together(draft, rng)


def change_counted_tree(record: Json, rng: Rng) -> None:
    """Leave a count out, with its cases, or put another in its place."""
    tokens = record["counts"].split(" ")
    at = int(rng.integers(len(tokens)))
    if tokens[at].isdigit():
        tokens[at] = str(rng.integers(record["k"] + 1))
        record["counts"] = " ".join(tokens)
        return
    closed = close_subtree(tokens, at)
    first = tokens[:at].count("L")
    gone = tokens[at : end_of_node(tokens, at)].count("L")
    del record["cases"][first : first + gone]
    record["counts"] = " ".join(closed)


def change_added(draft: Draft, rng: Rng) -> None:
    """Change what is added by "signs", or what it is added to."""
    records = [line for line in draft.records if line["rule"] == "signs"]
    if not records:
        return lower_together(draft, rng)
    record = records[rng.integers(len(records))]
    added, d, way = record["added"], draft.Y.shape[1], rng.integers(6)
    one = added[rng.integers(len(added))] if added else {}
    if way == 0 and one.get("numbers"):
        at = rng.integers(len(one["numbers"]))
        one["numbers"][at] = moved(float.fromhex(one["numbers"][at]) or 1.0, rng).hex()
    elif way == 1 and one:  # of fewer features, or of others
        at = int(rng.integers(len(one["features"])))
        if rng.random() < 0.5:
            del one["features"][at]
        else:
            one["features"][at] = int(rng.integers(d))
        size = len(one["features"])
        one["numbers"] = one["numbers"][: size * (size - 1) // 2]
    elif way == 2:
        rng.shuffle(added)
    elif way == 3:  # a rule that all sets may rest on, or the other way round
        other = draft.records[rng.integers(len(draft.records))]
        other["rule"] = "signs" if other["rule"] == "tree" else "tree"
        other.pop("added") if other["rule"] == "tree" else other.update(added=[])
    elif way == 4:
        tokens = record["tree"].split(" ")
        at = int(rng.integers(len(tokens)))
        tokens[at] = str(rng.choice(["N0", "N1", "L", "S0", "P"]))
        record["tree"] = " ".join(tokens)
    else:
        record["features"].pop(int(rng.integers(len(record["features"]))))
    if rng.random() < 0.6:
        lower_together(draft, rng)


def change_problem(draft: Draft, rng: Rng) -> None:
    """Change what a header of version 7 to 9 says of the matrix and of the sets."""
    header, d = draft.header, draft.Y.shape[1]
    said = header.get("constraints", {})
    words = ["level", "include", "groups", "vectors", "raised", "signs", "whole"]
    word = rng.choice([*words, "beside", "set"])
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
    elif word == "set":
        names = header["claims"][-1]["set"]
        if rng.random() < 0.5:
            names[rng.integers(len(names))] = int(rng.integers(d))
            names.sort()
        else:
            del header["claims"][-1]["set"], said["beside"]
    elif word in ("groups", "beside"):
        groups = said[word]
        if word == "groups" and rng.random() < 0.1:
            said["groups"], said["beside"] = said["beside"], groups
        group = groups[rng.integers(len(groups))]
        if rng.random() < 0.5:
            group["most"] += int(rng.choice([-1, 1]))
        else:
            group["features"] = sorted({*group["features"]} ^ {int(rng.integers(d))})
    elif word == "vectors":
        deflated = header["deflated"]
        vector = deflated["vectors"][rng.integers(len(deflated["vectors"]))]
        if rng.random() < 0.3:
            change_way(header, rng)
        elif rng.random() < 0.3 and deflated["how"] in ("hotelling", "orthogonal"):
            place = vector if "value" in vector else deflated
            key = "value" if "value" in vector else "penalty"
            place[key] = moved(float.fromhex(place[key]), rng).hex()
        elif rng.random() < 0.3:
            deflated["vectors"].remove(vector)
        else:
            at = rng.integers(len(vector["x"]))
            vector["x"][at] = moved(float.fromhex(vector["x"][at]), rng).hex()
    elif word == "whole":
        said.pop("whole") if rng.random() < 0.5 else said.update(whole=True)
        if rng.random() < 0.5:
            at = rng.integers(len(said["groups"]))
            moved_feature = said["groups"][at]["features"].pop()
            said["groups"][at - 1]["features"].append(moved_feature)
        for group in said["groups"]:
            group["features"].sort()
            group["most"] = len(group["features"])
    elif word == "raised":
        pairs = {tuple(pair) for pair in header["raised"]}
        i, j = sorted(rng.choice(d, 2, replace=False).tolist())
        header["raised"] = [list(pair) for pair in sorted(pairs ^ {(i, j)})]
    else:
        said["nonnegative"] = not said["nonnegative"]
        if rng.random() < 0.5:
            header.pop("raised", None)


def change_way(header: Json, rng: Rng) -> None:
    """Deflate in another way by the same vectors, most often with what that needs."""
    deflated = header["deflated"]
    how = str(rng.choice(["residual", "projection", "hotelling", "orthogonal"]))
    number = float(rng.exponential(3.0)).hex()
    deflated |= {"how": how}
    if rng.random() < 0.8:
        deflated.pop("penalty", None)
        header["version"] = 7 + (how in ("hotelling", "orthogonal"))
        for vector in deflated["vectors"]:
            vector.pop("value", None)
            if how == "hotelling":
                vector["value"] = number
        if how == "orthogonal":
            deflated["penalty"] = number


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
    change_counts,
    change_added,
    change_problem,
    truncate,
    change_byte,
)
