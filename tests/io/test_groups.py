"""Groups of features are read from text files of several forms."""

from __future__ import annotations

from pathlib import Path

from blockspca.io.groups import read_groups


class Counted(str):
    """Text that counts how often it is compared."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)


def test_many_features_are_found_without_comparing_each_with_all(tmp_path):
    d = 500
    file = tmp_path / "groups.txt"
    file.write_text("".join(f"gene {i} g{i % 7}\n" for i in range(d)))
    names = tuple(Counted(f"gene {i}") for i in range(d))
    Counted.comparisons = 0
    found = read_groups(str(file), Path("data.csv"), names)
    assert found == {f"gene {i}": f"g{i % 7}" for i in range(d)}
    assert Counted.comparisons <= 10 * d
