"""A proof as one HTML page: its bounds, when features were excluded, and its trees.

The page shows what the file says; only the checker decides whether that is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from .._html import Markup, table
from ..checker.composition_file import Compositions
from ..checker.entry_file import Close, EntryNode, Fix, Split
from ..checker.proof_file import Claim, Node, Record, Section
from ..status import is_optimal_gap

Name = Callable[[int], str]

_MOST_NODES = 500  # of one tree that are shown
_MOST_NAMES = 60  # of one list

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; } th { text-align: left; padding: 2px 10px; }
td { border-top: 1px solid #ddd; } code, .mono { font-family: ui-monospace, monospace; }
details { margin: 0.4rem 0; } summary { cursor: pointer; }
ul.tree { list-style: none; border-left: 1px solid #bbb; margin: 0;
          padding-left: 1rem; }
.bar { display: inline-block; height: 0.7em; background: #3b7dd8; border-radius: 2px; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; }
td { border-color: #444; } }
"""

RULES = {
    "variance": "the sum of the k largest variances is no larger",
    "rows": "no row has a larger sum of its variance and its k − 1 largest entries",
    "average": "averages over all subsets of {source} features",
    "tree": "screening, then a tree of all sets that it leaves",
    "direction": "(c'y)² ≤ ρ + κ(z'y)² for every feature, and one eigenvalue",
    "entry": "every entry moved towards 0 by w_i w_j, for (k − 1) w_i² on the diagonal",
    "entry-tree": "features fixed and split, and what is left bounded by such weights",
    "group-tree": "a tree of all sets of whole groups, by norms of their blocks",
    "compositions": "how many features a set takes from each part, and trees",
    "signs": "a tree of all sets that screening leaves, for loadings without signs",
}
SCREENED = ("tree", "entry-tree", "signs")
STEPS = {
    "D": "dropped: features i with Σ B_ij² ≤ (τ − B_ii)(τ − u), in no better set",
    "L": "closed: too few features are left, or every feature or pair is below τ",
    "P": "closed: τI − B is positive semidefinite, so nothing here is above τ",
    "N": "closed: τI − A − N is positive semidefinite, N not negative",
}


def proof_page(sections: Sequence[Section], names: Sequence[str] | None = None) -> str:
    """Return the page of a proof that `blockspca.checker.proof_file` has read.

    Parameters
    ----------
    sections : sequence of Section
    names : sequence of str, optional
        Of all d features; numbers are shown if there are none.
    """
    if names is not None and len(names) != sections[0].problem.d:
        raise ValueError(
            f"names has {len(names)} entries for {sections[0].problem.d} features; "
            "pass one for each."
        )
    parts = [_section(section, names) for section in sections]
    problem = sections[0].problem
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>A proof</title><style>{_STYLE}</style></head><body>"
        "<h1>A proof</h1>"
        f"<p>Data: {problem.n} × {problem.d}, SHA-256 "
        f"<code>{escape(problem.sha256)}</code>. Whether the proof holds is for "
        "<code>python -m blockspca.checker</code> to say; this page only shows it.</p>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def proof_lines(
    sections: Sequence[Section], names: Sequence[str] | None = None
) -> list[str]:
    """Return what a proof claims, and by which rule for each k, as lines of text."""
    lines = []
    for section in sections:
        lines.append(str(section.problem))
        lines += [_claim(claim, names, section) for claim in section.claims]
        for record in section.records:
            because = RULES[record.rule].format(source=record.source)
            line = f"k = {record.k}: at most {record.upper:.6g}: {because}"
            if record.tree:
                what = "features" if record.rule == "tree" else "groups"
                line += f" ({len(record.features)} {what}, {_nodes(record)} nodes)"
            lines.append(line)
    return lines


def _namer(section: Section, names: Sequence[str] | None) -> Name:
    numbers = [*section.kept]

    def name(position: int) -> str:
        number = numbers[position]
        return str(number) if names is None else names[number]

    return name


def _section(section: Section, names: Sequence[str] | None) -> str:
    name = _namer(section, names)
    chosen = len(section.problem.chosen)  # which records do not count
    claims = {claim.k - chosen: claim for claim in section.claims}
    said = "".join(
        f"<li>{escape(_claim(claim, names, section))}</li>" for claim in section.claims
    )
    if section.problem.level is not None:
        own = ", ".join(_number(i, names) for i in section.problem.chosen)
        said += (
            f"<li>The bounds below are about what {escape(own)}, chosen for good, "
            f"leave at the level {section.problem.level:.6g}; k counts the others.</li>"
        )
    details = _details(section, name)
    return (
        f"<h2>{escape(str(section.problem))}</h2>"
        f"<h3>What is claimed</h3><ul>{said}</ul>"
        f"<h3>The bounds</h3>{_bounds(section, claims)}"
        f"<h3>Step by step</h3>{details}"
    )


def _number(feature: int, names: Sequence[str] | None) -> str:
    return str(feature) if names is None else names[feature]


def _claim(claim: Claim, names: Sequence[str] | None, section: Section) -> str:
    objective, bound = claim.objective, max(claim.upper_bound, claim.objective)
    gap = (bound - objective) / abs(objective or 1.0)
    features = ", ".join(_number(i, names) for i in claim.support)
    kind = "optimal" if is_optimal_gap(objective, bound) else f"gap {gap:.2%}"
    kept = " that keep the constraints" if section.problem.constraints.words() else ""
    return (
        f"No {claim.k} features{kept} have more variance than {claim.upper_bound:.6g}; "
        f"these have {claim.objective:.6g} ({kind}): {features}."
    )


def _bounds(section: Section, claims: dict[int, Claim]) -> str:
    largest = max((abs(record.upper) for record in section.records), default=1.0)
    rows = []
    for record in section.records:
        claim = claims.get(record.k)
        width = 160 * abs(record.upper) / (largest or 1.0)
        left = len(record.features) if record.rule in SCREENED else "–"
        rows.append(
            (
                record.k,
                f"{record.upper:.6g}",
                Markup(f'<span class="bar" style="width:{width:.0f}px"></span>'),
                "–" if claim is None else f"{claim.objective:.6g}",
                RULES[record.rule].format(source=record.source),
                left,
                _nodes(record),
            )
        )
    headings = ("k", "at most", "", "reached", "because", "features left", "nodes")
    return table(headings, rows)


def _nodes(record: Record) -> int:
    trees = [record.tree]
    given = record.compositions
    if given is not None:
        trees += [given.counts, *(one.tree for one in given.cases)]
    closed = sum(not isinstance(node, Fix) for node in record.nodes)
    return closed + sum(node.letter != "D" for tree in trees for node in tree)


def _details(section: Section, name: Name) -> str:
    parts, before = [], None
    d = len(section.kept)
    for record in section.records:
        if record.direction is not None:
            parts.append(_rounds(record, d, name))
        if record.nodes:
            parts.append(_fixings(record, d, name))
        if record.rule == "group-tree":
            parts.append(_of_groups(record, name))
        if record.compositions is not None:
            parts.append(_counted(record, record.compositions, name))
        if record.rule not in ("tree", "signs"):
            before = None
            continue
        left = set(record.features)
        lines = [
            f"Screening with τ = {record.upper:.6g} leaves {len(left)} of {d} "
            f"features: {_list(record.features, name)}."
        ]
        if before is not None:
            gone, back = sorted(before - left), sorted(left - before)
            if gone:
                lines.append(f"Gone since k = {record.k - 1}: {_list(gone, name)}.")
            if back:
                lines.append(f"Not excluded any more: {_list(back, name)}.")
        before = left
        summary = f"k = {record.k}: {len(left)} features, {_nodes(record)} nodes"
        parts.append(_folded(summary, lines, "".join(_tree(record, name))))
    return "".join(parts) or "<p>Every bound is by a formula; there is no tree.</p>"


def _folded(summary: str, lines: Sequence[str], tree: str = "") -> str:
    """Return paragraphs and perhaps a tree, folded under a summary."""
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<details><summary>{summary}</summary>{text}{tree}</details>"


def _of_groups(record: Record, name: Name) -> str:
    """The tree of groups, each named by its first feature."""
    groups = f"{len(record.features)} groups"
    line = (
        f"{groups}, each by its first feature, in the order of the tree: "
        f"{_list(record.features, name)}."
    )
    summary = f"k = {record.k}: {groups}, {_nodes(record)} nodes"
    return _folded(summary, [line], "".join(_tree(record, name)))


def _counted(record: Record, given: Compositions, name: Name) -> str:
    """The parts, and the counts that have a tree of their own."""
    lines = [
        f"Part {number}, {len(part)} features: {_list(part, name)}."
        for number, part in enumerate(given.parts, start=1)
    ]
    lines.append(
        f"Features in none of them have no entry above {given.level:.4g} with one "
        "another, and are one more part, the last."
    )
    cases = list(zip(given.counted(), given.cases, strict=True))
    for counts, case in cases[:_MOST_NODES]:
        taken = ", ".join(map(str, counts))
        nodes = sum(node.letter != "D" for node in case.tree)
        lines.append(f"{taken} features of the parts in turn: a tree, {nodes} nodes.")
    if len(cases) > _MOST_NODES:
        lines.append(f"… and {len(cases) - _MOST_NODES} more, not shown.")
    lines.append("All other counts are closed by the matrix of their bounds.")
    summary = f"k = {record.k}: {len(given.parts)} parts, {len(cases)} counts left"
    return _folded(summary, lines)


def _rounds(record: Record, d: int, name: Name) -> str:
    """Describe which features each round of directions fixes and leaves."""
    direction = record.direction
    assert direction is not None
    lines = []
    for number, step in enumerate(direction.rounds, start=1):
        lines.append(
            f"Round {number}, ρ = {step.direction.rho:.4g}: in every better set: "
            f"{_list(step.needed, name)}; still open: {len(step.free)} of {d} features."
        )
    lines.append(
        f"Then kρ + λmax(M), with ρ = {direction.rho:.4g} and what is left, is at most "
        f"{record.upper:.6g}."
    )
    summary = f"k = {record.k}: directions, {len(direction.rounds)} rounds"
    return _folded(summary, lines)


def _fixings(record: Record, d: int, name: Name) -> str:
    """Describe each node of a search by weights."""
    lines = [f"{len(record.features)} of {d} features are left by screening."]
    lines += [_searched(node, name) for node in record.nodes[:_MOST_NODES]]
    if len(record.nodes) > _MOST_NODES:
        more = len(record.nodes) - _MOST_NODES
        lines.append(f"… and {more} more steps, not shown.")
    return _folded(f"k = {record.k}: weights, {_nodes(record)} nodes", lines)


def _searched(node: EntryNode, name: Name) -> str:
    """Describe a node of a search by weights."""
    if isinstance(node, Fix):
        out, needed = _list(node.out, name), _list(node.inside, name)
        return f"In no better set: {out}; in every better set: {needed}."
    if isinstance(node, Split):
        return f"Split: with {name(node.feature)}, then without."
    if isinstance(node, Close):
        return "Closed: UI − M is positive semidefinite."
    return "Closed: one set is left at the most, and is no better."


def _list(features: Sequence[int], name: Name) -> str:
    shown = ", ".join(name(i) for i in features[:_MOST_NAMES])
    more = len(features) - _MOST_NAMES
    return shown + (f" and {more} more" if more > 0 else "") if features else "none"


def _tree(record: Record, name: Name) -> Iterator[str]:
    """The nodes in preorder as nested lists, without recursion: trees may be deep."""
    open_children: list[list[int]] = []  # of each node above, those still to come
    yield '<ul class="tree"><li>'
    for count, node in enumerate(record.tree):
        if count == _MOST_NODES:
            rest = len(record.tree) - count
            yield f"<p>… and {rest} more steps, not shown.</p>"
            yield "</li></ul>" * (len(open_children) + 1)
            return
        yield f"<div>{escape(_step(node, record, name))}</div>"
        if node.letter == "D":
            continue
        if node.opened:
            first, *others = node.opened
            open_children.append(others)
            yield f'<ul class="tree"><li>{_chosen(record.features[first], name)}'
            continue
        while open_children and not open_children[-1]:
            open_children.pop()
            yield "</li></ul>"
        if open_children:
            child = open_children[-1].pop(0)
            yield f"</li><li>{_chosen(record.features[child], name)}"
    yield "</li></ul>"


def _chosen(feature: int, name: Name) -> str:
    return f"<b>with {escape(name(feature))}</b>, and features after it"


def _step(node: Node, record: Record, name: Name) -> str:
    if node.letter != "S":
        return STEPS[node.letter]
    opened = _list([record.features[p] for p in node.opened], name)
    if not node.opened:
        return "closed: by suffix bounds, whatever feature comes first"
    return f"suffix bounds close all sets but those that begin with: {opened}"
