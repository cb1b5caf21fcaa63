"""Judge a directory of results: is it complete, well-formed, at one with itself, and what was expected?

    python verify.py results                            # against the committed expected/
    python verify.py results --require-bitwise          # equal to a tolerance is then not enough
    python verify.py results --no-expected              # other seeds, scenarios or settings: steps 1 to 3 alone
    python verify.py results --expected other --json    # against another set; the verdict as one JSON object

1. Presence: exactly the six files, regular and of sane size.
2. Form: strict parsing, then the file's schema.
3. Agreement of the set with itself: rows, lines, traces and summary tell one story.
4. Agreement with the expected set: bit for bit where the numeric fingerprint is the expected one; elsewhere errors may
   differ by `--rtol`, and digests of models are not compared.

The judge believes nothing that a file says about itself, and needs neither torch nor the program that it judges.

Exit status: 0 VERIFIED or CONSISTENT; 1 FAILED; 2 it could not judge; 130 Ctrl-C, 141 nobody reads the output.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import os
import re
import reprlib
import stat
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema.validators import extend

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected"
SCHEMAS = HERE / "schemas"

# Far above what a run of a thousand seeds writes, far below what would take long to read.
KIB, MIB = 2**10, 2**20
FILES = {  # name -> largest size in bytes
    "results.csv": 8 * MIB,
    "raw-output.txt": 8 * MIB,
    "step-traces.json": 32 * MIB,
    "run-summary.json": 256 * KIB,
    "environment.json": 64 * KIB,
    "checkpoint-schema.json": 64 * KIB,
}
MOST_COMMAS = 10**6  # and so, about, the values that a file can hold
MOST_DIFFERENCES = 1000  # of one file; after so many, further ones tell nothing
SHOWN_DIFFERENCES = 20

# What another numeric platform may change. Everything else is a discrete fact, or set by one.
TOLERATED = {
    "max_parameter_abs_error",
    "max_parameter_abs_error_min",
    "max_parameter_abs_error_median",
    "max_parameter_abs_error_max",
    "max_optimizer_tensor_abs_error",
    "max_param_error",
}
DIGESTS = {"reference_final_model_hash", "resumed_final_model_hash"}

EXACT_SCENARIOS = {"full_boundary", "full_mid_accumulation"}  # all others must diverge
MID_ACCUMULATION = "mid_accumulation"
WITHOUT_COUNTERS = "model_optimizer_only"  # resumes with counters that start again from 0
WITHOUT_GRADIENTS = "mid_without_gradients"

Path_ = tuple[str | int, ...]  # a place in a document: keys and indices from its root


class CannotJudgeError(Exception):
    """There is nothing to judge, or nothing to judge by; the message names it."""


# ----------------------------------------------------------------------------------------------------- verdict


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it must be.

    `place` is a JSON pointer into the file, whose rows or lines count as an array of objects (empty: the whole file);
    `run` names the seed and scenario of that row; `expected` and `actual` are shortened for display.
    """

    file: str
    place: str
    reason: str
    run: str | None = None
    expected: str | None = None
    actual: str | None = None

    def __str__(self) -> str:
        where = f"{self.file} {self.place}".rstrip() + (f" ({self.run})" if self.run else "")
        values = f": expected {self.expected}, found {self.actual}" if self.expected is not None else ""
        return f"{where}: {self.reason}{values}"


@dataclass
class Verdict:
    """What `verify` found.

    Attributes:
        outcome: `bitwise`, `tolerance`, `consistent` or `failed`.
        values: leaf values compared with the expected set, or looked at where there was none.
        differences: all of them, each place once, in the order of the steps.
        notes: what differs in `environment.json` and is no fault.
        other_operations: names whose numeric fingerprint is not the expected one.
        rtol: bound of the relative difference where fingerprints differ.
    """

    rtol: float
    outcome: str = "failed"
    values: int = 0
    differences: list[Difference] = field(default_factory=list)
    notes: list[Difference] = field(default_factory=list)
    other_operations: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing differs that must not."""
        return self.outcome != "failed"

    @property
    def exit_status(self) -> int:
        """0 when passed, else 1."""
        return 0 if self.passed else 1

    @property
    def headline(self) -> str:
        """The last line of the report."""
        size = f"{len(FILES)} files, {self.values} values"
        if self.outcome == "failed":
            files = len({difference.file for difference in self.differences})
            return f"FAILED: {len(self.differences)} differences in {files} files"
        if self.outcome == "tolerance":
            operations = ", ".join(self.other_operations)
            return f"VERIFIED to rtol {shortest(self.rtol)}: {size} (numeric fingerprint differs in: {operations})"
        return f"{'VERIFIED bitwise' if self.outcome == 'bitwise' else 'CONSISTENT'}: {size}"

    def report(self) -> str:
        """Return a line for each file, notes, at most 20 differences, and the headline."""
        counts = Counter(difference.file for difference in self.differences)
        lines = [f"{name}: {counts[name] or 'no'} differences" for name in FILES]
        lines += [f"note: {note}" for note in self.notes]
        lines += [str(difference) for difference in self.differences[:SHOWN_DIFFERENCES]]
        if len(self.differences) > SHOWN_DIFFERENCES:
            lines.append(f"... and {len(self.differences) - SHOWN_DIFFERENCES} more")
        return "\n".join([*lines, self.headline])

    def to_json(self) -> str:
        """Return the same as one JSON object."""
        return json.dumps({"verdict": self.headline, "passed": self.passed, **asdict(self)}, indent=2)


def shortest(number: float) -> str:
    """Return a number in scientific notation with as few digits as say it exactly: `1e-04`."""
    return next(text for digits in range(18) if float(text := f"{number:.{digits}e}") == number)


class Abbreviation(reprlib.Repr):
    """`repr`, cut so that no value, however large or deep, fills more than a line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict, self.maxstring, self.maxother = 2, 8, 4, 100, 100


shown = Abbreviation().repr


def one_line(text: str) -> str:
    """Return at most 300 characters of a text, with anything that a terminal would obey or break a line at escaped."""
    if len(text) <= 300 and text.isprintable():  # noqa: PLR2004 -- as the docstring says
        return text
    text = text if len(text) <= 300 else f"{text[:300]}..."  # noqa: PLR2004 -- likewise
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def pointer(place: Iterable[str | int]) -> str:
    """Return a place as a JSON pointer."""
    return one_line("".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place))


class Findings:
    """Collects differences, each place once: a later step has nothing to add to what an earlier one found there."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[str, str], Difference] = {}
        self.counts: Counter[str] = Counter()

    def full(self, file: str) -> bool:
        """Return whether a file has so many differences that further ones are not counted."""
        return self.counts[file] > MOST_DIFFERENCES

    def add(self, difference: Difference) -> None:
        """Keep a difference, unless its place has one; the last of very many says that there are more."""
        key = (difference.file, difference.place)
        if key in self.by_place or self.full(difference.file):
            return
        self.counts[difference.file] += 1
        if self.full(difference.file):
            difference = Difference(difference.file, "", f"has more than {MOST_DIFFERENCES} differences")
        self.by_place[key] = difference


# ---------------------------------------------------------------------------------------- steps 1 and 2: reading


class FormError(Exception):
    """A file, or a line of it, has not the form that it must have."""

    def __init__(self, reason: str, place: Path_ = ()) -> None:
        super().__init__(reason)
        self.place = place


class Unreadable:
    """Stands for a value that strict parsing refuses; no schema has a place for it, so validation tells where it is."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return self.what


def read_bytes(path: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes; nothing else is opened, or waited for.

    Raises:
        FormError: it is missing, something else, too large, empty or not to be read.
    """
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind != stat.S_IFREG:
            raise FormError(f"is {kinds.get(kind, 'something else')}, not a regular file")
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise FormError("is missing") from None
    except OSError as error:
        raise FormError(f"cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise FormError(f"is larger than {most} bytes")
    if not data:
        raise FormError("is empty")
    if data.count(b",") > MOST_COMMAS:
        raise FormError("holds too many values")
    return data


def decode(data: bytes) -> str:
    """Return the text of UTF-8 lines, each of which ends with LF.

    Raises:
        FormError: they are something else.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise FormError("begins with a byte order mark")
    if b"\r" in data:
        raise FormError(f"has a carriage return in line {data[: data.index(13)].count(10) + 1}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormError(f"is not UTF-8 at byte {error.start}") from None
    if not text.endswith("\n"):
        raise FormError("is cut off: its last line does not end")
    return text


LONGEST_NUMBER = 25  # characters of the longest shortest form of a float, -2.2250738585072014e-308, and to spare


def read_integer(text: str) -> int | Unreadable:
    """Return the integer that a JSON number without fraction gives."""
    return int(text) if len(text) <= LONGEST_NUMBER else Unreadable(f"an integer of {len(text)} characters")


def read_float(text: str) -> float | Unreadable:
    """Return the double that a JSON number with a fraction or exponent gives."""
    if len(text) > LONGEST_NUMBER:
        return Unreadable(f"a number of {len(text)} characters")
    number = float(text)
    return number if math.isfinite(number) else Unreadable(f"{text}, which no double can hold")


def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Unreadable:
    """Return an object none of whose keys stands twice."""
    items = dict(pairs)
    if len(items) == len(pairs):
        return items
    twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return Unreadable(f"an object with the key {shown(twice)} twice")


def parse_json(text: str) -> Any:
    """Parse strict JSON; a value that is none becomes `Unreadable`.

    Raises:
        FormError: the text is no JSON.
    """
    try:
        return json.loads(
            text,
            parse_int=read_integer,
            parse_float=read_float,
            parse_constant=lambda name: Unreadable(f"{name}, which is not JSON"),
            object_pairs_hook=read_object,
        )
    except json.JSONDecodeError as error:
        raise FormError(f"is not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None


Cell = Callable[[str], Any]  # reads a value; text that gives none is returned as it is, and the schema refuses it


def integer_cell(text: str) -> Any:
    """Read decimal digits without anything around them."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,19}", text, re.ASCII) else text


def float_cell(form: Callable[[float], str]) -> Cell:
    """Return a reader of finite doubles in exactly the given form."""

    def read(text: str) -> Any:
        try:
            number = float(text[: LONGEST_NUMBER + 1])
        except ValueError:
            return text
        return number if math.isfinite(number) and form(number) == text else text

    return read


def word_cell(words: Mapping[str, Any], otherwise: Cell = str) -> Cell:
    """Return a reader of the given words, and of what `otherwise` reads."""
    return lambda text: words[text] if text in words else otherwise(text)


CSV_BOOLEAN, CSV_FLOAT = word_cell({"True": True, "False": False}), float_cell(repr)
COLUMNS: dict[str, Cell] = {
    "seed": integer_cell,
    "scenario": str,
    "checkpoint_position": str,
    "exact_resume": CSV_BOOLEAN,
    "model_exact": CSV_BOOLEAN,
    "optimizer_exact": CSV_BOOLEAN,
    "scheduler_exact": CSV_BOOLEAN,
    "stream_exact": CSV_BOOLEAN,
    "rng_exact": CSV_BOOLEAN,
    "gradients_exact": CSV_BOOLEAN,
    "next_batch_match": CSV_BOOLEAN,
    "max_parameter_abs_error": CSV_FLOAT,
    "max_optimizer_tensor_abs_error": CSV_FLOAT,
    "learning_rate_error": CSV_FLOAT,
    "first_divergent_optimizer_step": word_cell({"": None}, integer_cell),
    "interrupt_optimizer_step": integer_cell,
    "interrupt_microstep_in_accumulation": integer_cell,
    "reference_final_model_hash": str,
    "resumed_final_model_hash": str,
}
SEVEN = [name for name, cell in COLUMNS.items() if cell is CSV_BOOLEAN][1:]  # of which `exact_resume` is the sum

LINE_BOOLEAN, LINE_FLOAT = word_cell({"true": True, "false": False}), float_cell("{:.9e}".format)
LINE: dict[str, tuple[str, Cell]] = {  # name in a line -> column that it repeats, and how it is written there
    "seed": ("seed", integer_cell),
    "scenario": ("scenario", str),
    "exact": ("exact_resume", LINE_BOOLEAN),
    "first_divergent_step": ("first_divergent_optimizer_step", word_cell({"None": None}, integer_cell)),
    "max_param_error": ("max_parameter_abs_error", LINE_FLOAT),
    "next_batch_match": ("next_batch_match", LINE_BOOLEAN),
    "lr_error": ("learning_rate_error", LINE_FLOAT),
}


def parse_csv(text: str) -> list[dict[str, Any]]:
    """Read rows of results; no value holds a comma, so none is quoted.

    Raises:
        FormError: the header is another, or a row has more or fewer columns.
    """
    header, *lines = text[:-1].split("\n")
    if header != ",".join(COLUMNS):
        raise FormError(f"has another header: {shown(header)}")
    rows = []
    for index, line in enumerate(lines):
        cells = line.split(",")
        if len(cells) != len(COLUMNS):
            raise FormError(f"has {len(cells)} columns, not {len(COLUMNS)}: {shown(line)}", (index,))
        rows.append({name: read(cell) for (name, read), cell in zip(COLUMNS.items(), cells, strict=True)})
    return rows


def parse_lines(text: str) -> list[dict[str, Any]]:
    """Read the lines that `run` prints.

    Raises:
        FormError: a line is no such line.
    """
    pattern = re.compile(" ".join(f"{name}=([^ =]*)" for name in LINE))
    rows = []
    for index, line in enumerate(text[:-1].split("\n")):
        match = pattern.fullmatch(line)
        if match is None:
            raise FormError(f"is no line of results: {shown(line)}", (index,))
        rows.append({name: read(cell) for (name, (_, read)), cell in zip(LINE.items(), match.groups(), strict=True)})
    return rows


def parse(name: str, data: bytes) -> Any:
    """Return the document that a file holds: the objects of its rows or lines, or its JSON value.

    Raises:
        FormError: it holds none.
    """
    parsers = {".csv": parse_csv, ".txt": parse_lines, ".json": parse_json}
    try:
        return parsers[Path(name).suffix](decode(data))
    except RecursionError:
        raise FormError("is nested too deeply") from None


def each_once(
    _validator: Any, unique: object, instance: object, _schema: object
) -> Iterator[jsonschema.ValidationError]:
    """`uniqueItems` in time proportional to the array, however mixed its items are."""
    if unique is True and isinstance(instance, list) and len(set(map(repr, instance))) < len(instance):
        yield jsonschema.ValidationError(f"{shown(instance)} holds an item twice")


def is_of_type(kind: type) -> Callable[[object, object], bool]:
    """Return a check for the very type: JSON Schema would let 1.0 pass for an integer, and 1 for a float."""
    return lambda _checker, instance: type(instance) is kind


StrictValidator: Any = extend(  # type: ignore[no-untyped-call]  # untyped in jsonschema's stubs
    jsonschema.Draft202012Validator,
    {"uniqueItems": each_once},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": is_of_type(int), "number": is_of_type(float)}
    ),
)


def inlined(schema: Any, resolver: Any) -> Any:
    """Return a schema with what it refers to in place of the references, which are slow to follow for every value."""
    if isinstance(schema, list):
        return [inlined(item, resolver) for item in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: inlined(value, resolver) for key, value in schema.items() if key not in {"$ref", "$defs", "$id"}}
    if "$ref" not in schema:
        return own
    target = resolver.lookup(schema["$ref"])
    return {**inlined(target.contents, target.resolver), **own}


def load_validators(directory: Path) -> dict[str, Any]:
    """Return, by the name of each file, the validator that its schema makes.

    Raises:
        CannotJudgeError: a schema is missing or broken.
    """
    names = [f"{Path(name).stem}.schema.json" for name in FILES]
    schemas = {}
    for name in [*names, "scenario-result.schema.json"]:
        try:
            schemas[name] = parse_json(decode(read_bytes(directory / name, MIB)))
            if directory.resolve() != SCHEMAS:  # the tests check the project's own
                jsonschema.Draft202012Validator.check_schema(schemas[name])
        except FormError as error:
            raise CannotJudgeError(f"schema {str(directory / name)!r} {error}") from None
        except (jsonschema.SchemaError, RecursionError) as error:
            reason = error.message if isinstance(error, jsonschema.SchemaError) else "it is nested too deeply"
            raise CannotJudgeError(f"schema {str(directory / name)!r} is no schema: {reason}") from None
    validators = {}
    for file, name in zip(FILES, names, strict=True):
        try:
            registry = referencing.Registry().with_resources(
                (key, referencing.jsonschema.DRAFT202012.create_resource(value)) for key, value in schemas.items()
            )
            validators[file] = StrictValidator(inlined(schemas[name], registry.resolver(base_uri=name)))
        except (referencing.exceptions.Unresolvable, RecursionError, AttributeError, TypeError) as error:
            raise CannotJudgeError(f"schema {str(directory / name)!r} refers to nothing: {error}") from None
    return validators


def violations(name: str, document: Any, validator: Any) -> Iterator[Difference]:
    """Yield what the schema refuses in a document, up to more than anybody counts."""
    unreadable = set()
    for error in itertools.islice(validator.iter_errors(document), MOST_DIFFERENCES + 1):
        place, reason = tuple(error.absolute_path), error.message
        if isinstance(error.instance, Unreadable):
            if place in unreadable:
                continue  # several keywords refuse it: one reason is enough
            unreadable.add(place)
            reason = f"cannot be read: {error.instance!r}"
        elif error.validator == "required":  # the place of a key that is missing is where it should be
            place += tuple(key for key in error.validator_value if reason == f"{key!r} is a required property")
        yield Difference(name, pointer(place), one_line(reason), run_at(document, place))


def run_of(row: object) -> str | None:
    """Return the seed and scenario of a row, where it has both."""
    if isinstance(row, dict) and type(row.get("seed")) is int and type(row.get("scenario")) is str:
        return one_line(f"seed={row['seed']} scenario={row['scenario']}")
    return None


def run_at(document: object, place: Path_) -> str | None:
    """Return the seed and scenario of the row that a place lies in."""
    if isinstance(document, list) and place and isinstance(place[0], int) and place[0] < len(document):
        return run_of(document[place[0]])
    return None


class Reader:
    """Reads sets by the schemas of one directory; the same bytes once, for most results are what is expected.

    Raises:
        CannotJudgeError: a schema is missing or broken.
    """

    def __init__(self, schemas: Path) -> None:
        self.validators = load_validators(schemas)
        self.read_document = functools.lru_cache(maxsize=2 * len(FILES))(self._read_document)

    def _read_document(self, name: str, data: bytes) -> tuple[Any, tuple[Difference, ...]]:
        """Return the document that a file holds, which nobody may change, and what its schema refuses in it.

        Raises:
            FormError: it holds none.
            CannotJudgeError: the schema cannot be applied.
        """
        document = parse(name, data)
        try:
            return document, tuple(violations(name, document, self.validators[name]))
        except RecursionError:
            raise FormError("is nested too deeply") from None
        except Exception as error:  # noqa: BLE001 -- whatever a broken schema makes the library raise
            schema = f"{Path(name).stem}.schema.json"
            raise CannotJudgeError(f"{schema} cannot be applied: {one_line(str(error))}") from None

    def read_set(self, directory: Path, findings: Findings) -> dict[str, Any]:
        """Return the documents of the files that are there and parse; add to the findings what is wrong with each.

        Raises:
            CannotJudgeError: there is no such directory, it cannot be listed, or a schema cannot be applied.
        """
        try:
            with os.scandir(directory) as entries:
                names = [entry.name for entry in itertools.islice(entries, MOST_DIFFERENCES)]
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise CannotJudgeError(f"cannot read the directory {str(directory)!r}: {reason}") from None
        for name in sorted(set(names) - set(FILES)):
            findings.add(Difference(one_line(name), "", "is not one of the six files"))
        documents = {}
        for name, most in FILES.items():
            try:
                documents[name], refused = self.read_document(name, read_bytes(directory / name, most))
            except FormError as error:
                findings.add(Difference(name, pointer(error.place), one_line(str(error))))
                continue
            for difference in refused:
                findings.add(difference)
        return documents


# ------------------------------------------------------------------------------------------- comparing documents

MISSING = Unreadable("nothing")


def same(left: object, right: object) -> bool:
    """Return whether two values are equal in type and in every bit: 1 is not 1.0 nor True, 0.0 is not -0.0."""
    return type(left) is type(right) and repr(left) == repr(right)


@dataclass
class Comparison:
    """Compares documents of one file; `bitwise` or with `rtol` for what another platform may change."""

    file: str
    findings: Findings
    bitwise: bool = True
    rtol: float = 0.0
    reason: str = "differs"
    values: int = 0

    def differ(self, place: Path_, run: str | None, expected: object, actual: object) -> None:
        """Record that two values differ."""
        if self.findings.full(self.file):
            return
        self.findings.add(Difference(self.file, pointer(place), self.reason, run, shown(expected), shown(actual)))

    def rows(self, actual: Sequence[Any], expected: Sequence[Any]) -> None:
        """Compare rows by their runs, so that one that is missing does not shift the others."""
        for index, other in self.pairs(actual, expected):
            self.value((index,), actual[index], expected[other], run_of(expected[other]))

    def pairs(self, actual: Sequence[Any], expected: Sequence[Any]) -> list[tuple[int, int]]:
        """Pair the indices of rows of the same run, or of the same place; record what is left over or out of order."""
        runs, wanted = list(map(run_of, actual)), list(map(run_of, expected))
        found = {n: n for n, (run, other) in enumerate(zip(runs, wanted, strict=False)) if run == other}
        at = {run: n for n, run in enumerate(wanted) if n not in found}
        for n, run in enumerate(runs):
            if n not in found and run in at:
                found[n] = at.pop(run)
        free = set(range(len(expected))) - set(found.values())
        for n in range(len(actual)):
            if n not in found and n in free:
                found[n] = n
                free.remove(n)
        known = set(wanted)
        for n, run in enumerate(runs):
            if n not in found:
                self.differ((n,), run, "no further row" if run not in known else "this run once", run)
        for n in sorted(free):
            self.differ((n,), wanted[n], wanted[n], MISSING)
        pairs = sorted(found.items())
        in_order = sorted(other for _, other in pairs)
        for (n, other), should in zip(pairs, in_order, strict=True):
            if other != should:
                self.differ((n,), runs[n], f"{wanted[should]} in this place", runs[n])
                break  # the first shows it; whatever follows is shifted by it
        return pairs

    def value(self, place: Path_, actual: Any, expected: Any, run: str | None = None) -> None:
        """Compare two values, keys and lengths both ways."""
        if isinstance(actual, dict) and isinstance(expected, dict):
            for key in [*expected, *(key for key in actual if key not in expected)]:
                self.value((*place, key), actual.get(key, MISSING), expected.get(key, MISSING), run)
        elif isinstance(actual, list) and isinstance(expected, list):
            for index, (item, other) in enumerate(itertools.zip_longest(actual, expected, fillvalue=MISSING)):
                self.value((*place, index), item, other, run)
        elif self.bitwise or not self.may_differ(place, actual, expected):
            self.values += 1
            if not same(actual, expected):
                self.differ(place, run, expected, actual)

    def may_differ(self, place: Path_, actual: object, expected: object) -> bool:
        """Return whether another numeric platform explains the difference of two values."""
        names = {step for step in place if isinstance(step, str)}
        if names & DIGESTS:
            return isinstance(actual, str) and isinstance(expected, str)
        if names & TOLERATED and isinstance(actual, float) and isinstance(expected, float) and expected != 0:
            self.values += 1
            return abs(actual - expected) <= self.rtol * abs(expected)
        return False


# --------------------------------------------------------------------------- step 3: agreement of a set with itself


def check_agreement(documents: Mapping[str, Any], findings: Findings) -> None:
    """Check that rows, lines, traces and summary tell one story; all six files have the right form."""
    summary, rows = documents["run-summary.json"], documents["results.csv"]
    runs = [{"seed": seed, "scenario": name} for seed in summary["seeds"] for name in summary["scenarios"]]
    index: dict[str, dict[int, int]] = {}
    for file in ("results.csv", "raw-output.txt", "step-traces.json"):
        comparison = Comparison(file, findings, reason="is not the run that the summary names")
        index[file] = {other: n for n, other in comparison.pairs(documents[file], runs)}
        for other, n in index[file].items():
            for name, wanted in runs[other].items():
                comparison.value((n, name), documents[file][n][name], wanted, run_of(runs[other]))
    references: dict[tuple[object, ...], object] = {}
    for number in range(len(runs)):
        if all(number in where for where in index.values()):
            n, line, trace = (index[file][number] for file in index)
            row = rows[n]
            story = RunStory(findings, summary["configuration"], row, references)
            story.check_row(n)
            story.check_line(line, documents["raw-output.txt"][line])
            story.check_trace(n, trace, documents["step-traces.json"][trace]["step_trace"])
    check_summary(summary, rows, findings)


@dataclass
class RunStory:
    """What the files say of one run, a seed and scenario.

    `references` holds what earlier runs said of the uninterrupted training of the same seed, which is one training.
    """

    findings: Findings
    configuration: Mapping[str, Any]
    row: Mapping[str, Any]
    references: dict[tuple[object, ...], object]

    def require(self, file: str, place: Path_, reason: str, actual: object, expected: object) -> None:
        """Record a value that is not what the rest of the set makes it."""
        Comparison(file, self.findings, reason=reason).value(place, actual, expected, run_of(self.row))

    def require_reference(self, file: str, place: Path_, about: tuple[object, ...], actual: object) -> None:
        """Record a value of the uninterrupted training that another run of the seed gives differently."""
        wanted = self.references.setdefault((self.row["seed"], *about), actual)
        self.require(file, place, "is not what another run says of the same uninterrupted training", actual, wanted)

    @property
    def middle(self) -> bool:
        """Whether the run was interrupted inside an accumulation window."""
        return bool(self.row["checkpoint_position"] == MID_ACCUMULATION)

    def check_row(self, n: int) -> None:
        """Check a row against the configuration and itself."""
        row, configuration = self.row, self.configuration
        step = configuration["mid_interrupt_completed_steps" if self.middle else "boundary_interrupt_step"]
        microstep = configuration["mid_interrupt_microsteps"] if self.middle else 0
        facts = {
            "interrupt_optimizer_step": ("is not the configured one", step),
            "interrupt_microstep_in_accumulation": ("is not the configured one", microstep),
            "model_exact": (
                "does not say whether the two digests are equal",
                row["reference_final_model_hash"] == row["resumed_final_model_hash"],
            ),
        }
        if row["model_exact"]:
            facts["max_parameter_abs_error"] = ("is not 0 where the model is exact", 0.0)
        if row["optimizer_exact"]:
            facts["max_optimizer_tensor_abs_error"] = ("is not 0 where the optimizer is exact", 0.0)
            facts["learning_rate_error"] = ("is not 0 where the optimizer is exact", 0.0)
        if row["stream_exact"]:
            facts["next_batch_match"] = ("is not true where the stream is exact", True)
        for name, (reason, wanted) in facts.items():
            self.require("results.csv", (n, name), reason, row[name], wanted)
        place = (n, "reference_final_model_hash")
        self.require_reference("results.csv", place, ("hash",), row["reference_final_model_hash"])

    def check_line(self, n: int, line: Mapping[str, Any]) -> None:
        """Check that a line says what the row says, rounded."""
        for name, (column, read) in LINE.items():
            wanted = self.row[column]
            wanted = read(f"{wanted:.9e}") if isinstance(wanted, float) else wanted
            self.require("raw-output.txt", (n, name), f"is not what {column} of the row gives", line[name], wanted)

    def check_trace(self, n: int, trace: int, steps: Sequence[Mapping[str, Any]]) -> None:
        """Check each update of a trace against itself and the configuration, and the row against the whole."""
        row, configuration = self.row, self.configuration
        first = row["interrupt_optimizer_step"] + 1
        start = row["interrupt_optimizer_step"] if row["scenario"] == WITHOUT_COUNTERS else 0
        place: Path_ = (trace, "step_trace")
        file = "step-traces.json"
        wanted = list(range(first, configuration["total_optimizer_steps"] + 1))
        if len(steps) != len(wanted):
            reason = f"has {len(steps)} updates where the configuration leaves {len(wanted)} after the resume"
            self.findings.add(Difference(file, pointer(place), reason, run_of(row)))
        for k, (step, number) in enumerate(zip(steps, itertools.count(first), strict=False)):
            batch, reference = step["last_batch_ids"], step["expected_last_batch_ids"]
            facts = {
                "logical_step": ("does not follow the one before", number),
                "actual_optimizer_step_counter": ("is not the resumed training's count", number - start),
                "learning_rate_error": (
                    "is not the difference of the two learning rates",
                    abs(step["actual_learning_rate"] - step["expected_learning_rate"]),
                ),
                "batch_match": ("does not say whether the two batches are the same", batch == reference),
            }
            if step["model_exact"]:
                facts["max_parameter_abs_error"] = ("is not 0 where the model is exact", 0.0)
            for name, (reason, value) in facts.items():
                self.require(file, (*place, k, name), reason, step[name], value)
            for name in ("last_batch_ids", "expected_last_batch_ids"):
                if len(step[name]) != configuration["batch_size"] or max(step[name]) >= configuration["num_examples"]:
                    what = f"is no batch of {configuration['batch_size']} of {configuration['num_examples']} examples"
                    self.findings.add(Difference(file, pointer((*place, k, name)), what, run_of(row)))
            self.require_reference(file, (*place, k, "expected_last_batch_ids"), ("batch", number), reference)
            rate = step["expected_learning_rate"]
            self.require_reference(file, (*place, k, "expected_learning_rate"), ("rate", number), rate)
        self.check_end(n, steps)

    def check_end(self, n: int, steps: Sequence[Mapping[str, Any]]) -> None:
        """Check the row against the trace: its last update, its first divergent one, and what they add up to."""
        row = self.row
        diverged = next((step["logical_step"] for step in steps if not step["model_exact"]), None)
        facts: dict[str, tuple[str, object]] = {
            "first_divergent_optimizer_step": ("is not the trace's first update with another model", diverged)
        }
        counted = row["scenario"] != WITHOUT_COUNTERS or row["interrupt_optimizer_step"] == 0
        if steps:
            for name in ("model_exact", "max_parameter_abs_error", "learning_rate_error"):
                facts[name] = ("is not that of the trace's last update", steps[-1][name])
        exact = all(row[name] for name in SEVEN) and counted
        # Gradients that are lost and all zero leave no mark at the end, but the state at the resume was another.
        if row["exact_resume"] or row["scenario"] != WITHOUT_GRADIENTS:
            facts["exact_resume"] = ("is not what the seven comparisons and the counters add up to", exact)
        for name, (reason, wanted) in facts.items():
            self.require("results.csv", (n, name), reason, row[name], wanted)


def check_summary(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], findings: Findings) -> None:
    """Check counts, minima, medians, maxima, acceptance checks and status against the rows."""
    by_scenario: dict[str, list[Mapping[str, Any]]] = {name: [] for name in summary["scenarios"]}
    for row in rows:
        by_scenario.get(row["scenario"], []).append(row)
    entries, checks = {}, {}
    for name, runs in by_scenario.items():
        exact = sum(row["exact_resume"] for row in runs)
        errors = [row["max_parameter_abs_error"] for row in runs] or [0.0]
        entries[name] = {
            "runs": len(runs),
            "exact_runs": exact,
            "exact_rate": exact / max(len(runs), 1),
            "max_parameter_abs_error_min": min(errors),
            "max_parameter_abs_error_median": statistics.median(errors),
            "max_parameter_abs_error_max": max(errors),
            "first_divergent_steps": [row["first_divergent_optimizer_step"] for row in runs],
            "all_next_batch_match": all(row["next_batch_match"] for row in runs),
        }
        must_be_exact = name in EXACT_SCENARIOS
        checks[f"{name}_all_{'exact' if must_be_exact else 'fail'}"] = exact == (len(runs) if must_be_exact else 0)
    wanted = {
        "scenario_summary": entries,
        "acceptance_checks": checks,
        "status": "PASS" if all(checks.values()) else "FAIL",
        "run_count": len(summary["seeds"]) * len(summary["scenarios"]),
    }
    comparison = Comparison("run-summary.json", findings, reason="is not what the rows of results.csv give")
    for name, value in wanted.items():
        comparison.value((name,), summary[name], value)


# ------------------------------------------------------------------------ step 4: agreement with the expected set


def compare_environments(actual: Mapping[str, Any], expected: Mapping[str, Any], verdict: Verdict) -> None:
    """Note what differs: it may explain other numbers, and is no fault in itself."""
    notes = Findings()
    comparison = Comparison("environment.json", notes)
    comparison.value((), actual, expected)
    verdict.notes = list(notes.by_place.values())
    verdict.values += comparison.values
    verdict.other_operations = sorted(
        note.place.rpartition("/")[2] for note in verdict.notes if note.place.startswith("/numeric_fingerprint/")
    )


def compare_with_expected(
    documents: Mapping[str, Any],
    expected: Mapping[str, Any],
    verdict: Verdict,
    findings: Findings,
    require_bitwise: bool,  # noqa: FBT001 -- a setting handed on
) -> None:
    """Compare every file that was read with the one expected."""
    environment = documents.get("environment.json")
    if isinstance(environment, dict):
        compare_environments(environment, expected["environment.json"], verdict)
    bitwise = require_bitwise or not (isinstance(environment, dict) and verdict.other_operations)
    for name, document in documents.items():
        if name == "environment.json":
            continue
        comparison = Comparison(name, findings, bitwise, verdict.rtol, "is not the expected value")
        if Path(name).suffix != ".json" or name == "step-traces.json":
            if isinstance(document, list):
                comparison.rows(document, expected[name])
        else:
            comparison.value((), document, expected[name])
        verdict.values += comparison.values
    if require_bitwise:
        for note in verdict.notes:
            if note.place.startswith("/numeric_fingerprint/"):
                findings.add(note)


def count_values(document: object) -> int:
    """Count the leaves of a document, one level after the other."""
    level, leaves = [document], 0
    while level:
        children: list[object] = []
        for item in level:
            if isinstance(item, dict | list):
                children.extend(item.values() if isinstance(item, dict) else item)
            else:
                leaves += 1
        level = children
    return leaves


def verify(
    results_dir: str | os.PathLike[str],
    expected_dir: str | os.PathLike[str] | None,
    schemas_dir: str | os.PathLike[str],
    rtol: float = 1e-4,
    require_bitwise: bool = False,  # noqa: FBT001, FBT002 -- the order is part of the contract
) -> Verdict:
    """Judge a directory of results.

    Args:
        results_dir: holds the six files of a run; nothing in it is believed, or changed.
        expected_dir: holds the six files to compare with; `None`: the set is only compared with itself.
        schemas_dir: holds the seven schemas.
        rtol: bound of a float's difference relative to the expected value, where numeric fingerprints differ.
        require_bitwise: whether other fingerprints, and so other bits, are a failure.

    Raises:
        CannotJudgeError: a directory, schema or expected file is missing or broken.
        ValueError: `rtol` is not from 0 to below 1.
    """
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol must be from 0 to below 1, not {rtol!r}")
    reader = Reader(Path(schemas_dir))
    findings, verdict = Findings(), Verdict(float(rtol))
    documents = reader.read_set(Path(results_dir), findings)
    if not findings.by_place:
        try:
            check_agreement(documents, findings)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CannotJudgeError(f"the schemas admit what has no meaning: {error!r}") from None
    if expected_dir is None:
        verdict.values = sum(map(count_values, documents.values()))
    else:
        faults = Findings()
        expected = reader.read_set(Path(expected_dir), faults)
        for fault in faults.by_place.values():
            raise CannotJudgeError(f"the expected set {os.fspath(expected_dir)!r} is broken: {fault}")
        compare_with_expected(documents, expected, verdict, findings, require_bitwise)
    verdict.differences = list(findings.by_place.values())
    if not verdict.differences:
        verdict.outcome = (
            "consistent" if expected_dir is None else "tolerance" if verdict.other_operations else "bitwise"
        )
    return verdict


# ------------------------------------------------------------------------------------------------ command line


class Parser(argparse.ArgumentParser):
    """Answers bad input with one line."""

    def error(self, message: str) -> NoReturn:
        """Name the culprit and exit with status 2."""
        self.exit(2, f"verify.py: error: {one_line(message)}\n")


def tolerance(text: str) -> float:
    """Return the number that a command line gives as tolerance."""
    number = float(text)
    if not 0 <= number < 1:
        raise ValueError
    return number


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        SystemExit: with status 2 and one line on standard error for bad input, with 0 for `--help`.
    """
    parser = Parser(
        prog="verify.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("results_dir", metavar="RESULTS_DIR", help="what is judged")
    against = parser.add_mutually_exclusive_group()
    against.add_argument("--expected", metavar="DIR", default=EXPECTED, help="what it must be (default: expected/)")
    against.add_argument("--no-expected", action="store_true", help="compare the set with itself alone")
    parser.add_argument("--schemas", metavar="DIR", default=SCHEMAS, help="what it may be (default: schemas/)")
    parser.add_argument("--rtol", type=tolerance, default=1e-4, help="from 0 to below 1 (default: %(default)s)")
    parser.add_argument("--require-bitwise", action="store_true", help="fail where numeric fingerprints differ")
    parser.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    args = parser.parse_args(argv)
    if args.no_expected and args.require_bitwise:
        parser.error("--require-bitwise needs an expected set to compare with")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Judge, print, and return the exit status given in the module's docstring."""
    args = parse_args(argv)
    try:
        expected = None if args.no_expected else args.expected
        verdict = verify(args.results_dir, expected, args.schemas, args.rtol, args.require_bitwise)
    except CannotJudgeError as error:
        sys.stderr.write(f"verify.py: error: {one_line(str(error))}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    text = verdict.to_json() if args.json else verdict.report()
    try:  # names of files need not be characters, and a terminal need not have all of these
        sys.stdout.buffer.write(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is left in the buffer
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(f"verify.py: error: cannot write to standard output: {error.strerror}\n")
        return 2
    return verdict.exit_status


if __name__ == "__main__":
    sys.exit(main())
