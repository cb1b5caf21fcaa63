"""The words of a report: names and values of the job made visible, numbers, and lists of both.

A sentence is a tuple of parts: plain text, and `Code` for every name and value that comes from the job. How
code is set apart, and how either is escaped, is the renderer's business; that nothing in it can move a
cursor, end a line or hide is settled here.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Final, Self

Report = dict[str, Any]
LONGEST_VALUE: Final = 72  # characters of a value within a sentence
LONGEST_LIST: Final = 6  # names in a list before "and n more"
SMALLEST_FAMILY: Final = 3  # paths that differ in their indices alone are drawn together from that number on
INDEX: Final = re.compile(r"\[[^\[\]]*\]|(?<=\.)\d+(?=[.\[]|$)")


class Code(str):
    """A name or value of the job, in one line of visible characters."""

    __slots__ = ()

    def __new__(cls, text: object) -> Self:
        """Make every character visible."""
        return super().__new__(cls, visible(str(text)))


Sentence = tuple[str, ...]


def visible(text: str, *, keep: str = "") -> str:
    r"""Write out all that steers a terminal or hides, such as `\n` or a change of direction.

    Args:
        text: Any text, lone surrogates included.
        keep: Control characters that stay as they are.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text
    )


def short(value: str) -> Code:
    """Return a value in at most `LONGEST_VALUE` characters, its beginning and end kept."""
    code = Code(value)
    if len(code) <= LONGEST_VALUE:
        return code
    half = (LONGEST_VALUE - 3) // 2
    return Code(f"{code[:half]} … {code[-half:]}")


def number(value: float | str | None) -> str:
    """Write a difference: an exact zero as 0, others with three significant digits."""
    if value is None:
        return "not measured"
    if value == "inf":
        return "not comparable"
    return "0" if value == 0 else f"{float(value):.3g}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the right number."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Sequence[Sentence], *, most: int | None = LONGEST_LIST) -> Sentence:
    """Join sentences as prose does: a, b and c; past `most` items the rest is counted."""
    if most is not None and len(items) > most:
        return (*joined(items[:most], ", "), f" and {len(items) - most} more")
    return (*joined(items[:-1], ", "), " and ", *items[-1]) if items[1:] else joined(items, "")


def joined(items: Iterable[Sentence], separator: str) -> Sentence:
    """Join sentences by a separator."""
    out: list[str] = []
    for position, item in enumerate(items):
        out += [separator] * (position > 0) + list(item)
    return tuple(out)


def names(items: Iterable[str], *, most: int | None = LONGEST_LIST) -> Sentence:
    """List names of the job."""
    return listed([(Code(item),) for item in items], most=most)


def families(paths: Sequence[str], apart: Sequence[object] = ()) -> list[list[int]]:
    """Group paths that differ in their indices and keys alone, as the same moment of many parameters does.

    Args:
        paths: Paths of a report.
        apart: For each path what else its family has in common; paths that differ in it stay apart.

    Returns:
        Numbers of the paths, by family, in the order of the first of each. What is too small for a family is told
        one by one.
    """
    groups: dict[object, list[int]] = {}
    for number, path in enumerate(paths):
        groups.setdefault((INDEX.sub("*", path), *apart[number : number + 1]), []).append(number)
    found = [
        g for group in groups.values() for g in ([group] if len(group) >= SMALLEST_FAMILY else [[n] for n in group])
    ]
    return sorted(found)


def pattern(paths: Sequence[str]) -> Code:
    """Return the name of a family: `optimizer.state[model.*].exp_avg`, or the path itself of a single one."""
    found = [INDEX.findall(path) for path in paths]
    common = iter([common_index(indices) for indices in zip(*found, strict=True)])
    return Code(INDEX.sub(lambda _: next(common), paths[0]))


def common_index(indices: Sequence[str]) -> str:
    """Return an index, or with a star for that in which several differ."""
    if len(set(indices)) == 1:
        return indices[0]
    if not indices[0].startswith("["):
        return "*"
    parts = zip(*(index[1:-1].split(".") for index in indices), strict=False)
    shared = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, parts)]
    return f"[{'.'.join([*shared, '*'])}]" if "'" not in indices[0] else "[*]"


def patterns(paths: Iterable[str]) -> list[Code]:
    """Return the names of the families of some paths."""
    once = list(dict.fromkeys(paths))
    return [pattern([once[n] for n in family]) for family in families(once)]


def spans(steps: Iterable[int]) -> str:
    """Write ascending numbers with runs drawn together: 1, 4 to 7 and 9."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][1] + 1:
            runs[-1][1] = step
        else:
            runs.append([step, step])
    words = [word for a, b in runs for word in ([f"{a} to {b}"] if b > a + 1 else map(str, dict.fromkeys((a, b))))]
    return "".join(listed([(word,) for word in words], most=12))


def interrupted(after: Sequence[int]) -> str:
    """Say where a resume was interrupted: after step 5, or after steps 4 and then 7 for a chain."""
    if len(after) == 1:
        return "before the first step" if after[0] == 0 else f"after step {after[0]}"
    return f"after steps {', '.join(str(step) for step in after[:-1])} and then {after[-1]}"


def words_of(sentence: Sentence) -> str:
    """Return a sentence as bare text."""
    return re.sub(r"\s+", " ", "".join(sentence)).strip()
