"""Draw a directory of results: one page that needs nothing else, and its figures as files.

    python report.py                                   # results/ becomes report/index.html
    python report.py RESULTS_DIR --output-dir DIR      # another set, elsewhere

Results are drawn when they have the form that the schemas want and agree with themselves (steps 1 to 3 of
`verify.py`), whether they say PASS or FAIL; others are refused with the verdict. The same results give the same bytes.
What is drawn comes from the six files alone: nothing is trained here, and torch is not needed.

Exit status: 0 drawn; 1 the results are refused, and an earlier report is left as it was; 2 there is nothing to draw, or
nowhere to write; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import html
import io
import itertools
import math
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any, NoReturn
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import Affine2D, Bbox

import verify

HERE = Path(__file__).resolve().parent

# ------------------------------------------------------------------------------------------------- what is drawn

Row = Mapping[str, Any]
Box = tuple[float, float, float, float]  # left, top, width and height in pixels


@dataclass(frozen=True)
class Claim:
    """What one scenario is there to show.

    Attributes:
        number: its name in the claims table, `C1` to `C7`.
        text: the claim, as a sentence.
        omitted: which list of checkpoint-schema.json, and which of its entries (all: `None`), the checkpoint lacks.
    """

    number: str
    text: str
    omitted: tuple[str, str | None] | None = None


BOUNDARY_ABLATIONS = "independently_ablated_boundary_fields"
CLAIMS = {
    "full_boundary": Claim("C1", "A full checkpoint, taken between two updates, resumes bit for bit."),
    "full_mid_accumulation": Claim(
        "C2", "A full checkpoint with the gradients so far, taken inside an accumulation window, resumes bit for bit."
    ),
    "model_optimizer_only": Claim(
        "C3",
        "Model and optimizer alone are not enough: without scheduler, RNG, stream and counters the training diverges.",
        ("combined_anti_control_omissions", None),
    ),
    "omit_rng": Claim(
        "C4", "Without the states of the random generators the training diverges.", (BOUNDARY_ABLATIONS, "rng")
    ),
    "omit_stream": Claim(
        "C5", "Without the place in the data stream the training diverges.", (BOUNDARY_ABLATIONS, "stream")
    ),
    "omit_scheduler": Claim("C6", "Without the scheduler the training diverges.", (BOUNDARY_ABLATIONS, "scheduler")),
    "mid_without_gradients": Claim(
        "C7",
        "Without the gradients so far, a checkpoint taken inside an accumulation window diverges.",
        ("independently_ablated_mid_accumulation_fields", "gradients"),
    ),
}


@dataclass(frozen=True)
class Results:
    """The six files of a run, parsed.

    Attributes:
        verdict: what verification said, one line.
        rows: the rows of results.csv, by seed and scenario.
        traces: the updates after each resume, likewise.
        summary, environment, checkpoint: the JSON objects of the same names.
    """

    verdict: str
    rows: Mapping[tuple[int, str], Row]
    traces: Mapping[tuple[int, str], Sequence[Row]]
    summary: Mapping[str, Any]
    environment: Mapping[str, Any]
    checkpoint: Mapping[str, Sequence[str]]

    @property
    def seeds(self) -> Sequence[int]:
        """In the order of the run."""
        return self.summary["seeds"]  # type: ignore[no-any-return]  # the schema has made sure

    @property
    def scenarios(self) -> Sequence[str]:
        """In the order of the run."""
        return self.summary["scenarios"]  # type: ignore[no-any-return]  # likewise

    @cached_property
    def checks(self) -> dict[str, tuple[str, bool]]:
        """Name and outcome of the acceptance check of each scenario, in the order of the claims."""
        found = {name.rpartition("_all_")[0]: (name, held) for name, held in self.summary["acceptance_checks"].items()}
        return {scenario: found[scenario] for scenario in CLAIMS if scenario in found}

    def must_be_exact(self, scenario: str) -> bool:
        """Whether the scenario's acceptance check wants every run exact; else it wants none exact."""
        return self.checks[scenario][0].endswith("_all_exact")

    def runs(self, scenario: str) -> list[Row]:
        """The rows of a scenario, in the order of the seeds."""
        return [self.rows[seed, scenario] for seed in self.seeds]

    def omitted(self, scenario: str) -> Sequence[str]:
        """The components that the scenario's checkpoint lacks and would need."""
        claim = CLAIMS[scenario].omitted
        if claim is None:
            return ()
        source, only = claim
        return [name for name in self.checkpoint[source] if only in (None, name)]

    def needed(self, scenario: str) -> Sequence[str]:
        """The components that a full checkpoint at the scenario's position holds."""
        between = self.checkpoint["successful_boundary_payload_fields"]
        within = self.checkpoint["successful_mid_accumulation_additional_fields"]
        position = self.rows[self.seeds[0], scenario]["checkpoint_position"]
        return [*between, *within] if position == verify.MID_ACCUMULATION else between

    def parted(self, same: Callable[[Row], bool]) -> list[str]:
        """The scenarios in whose traces some update is not the same in the resumed training as in the control."""
        return [
            scenario
            for scenario in self.scenarios
            if not all(same(step) for seed in self.seeds for step in self.traces[seed, scenario])
        ]


class RefusedError(Exception):
    """The results did not pass verification; `verdict` says why."""

    def __init__(self, verdict: verify.Verdict) -> None:
        super().__init__(verdict.headline)
        self.verdict = verdict


def read_results(directory: Path, schemas: Path) -> Results:
    """Verify a directory of results on its own and read it.

    Raises:
        RefusedError: it did not pass.
        verify.CannotJudgeError: there is no such directory, or no schemas.
    """
    verdict = verify.verify(directory, None, schemas)
    if not verdict.passed:
        raise RefusedError(verdict)
    documents = {
        name: verify.parse(name, verify.read_bytes(directory / name, most)) for name, most in verify.FILES.items()
    }

    def by_run(rows: Iterable[Row]) -> dict[tuple[int, str], Row]:
        return {(row["seed"], row["scenario"]): row for row in rows}

    return Results(
        verdict=verdict.headline,
        rows=by_run(documents["results.csv"]),
        traces={run: row["step_trace"] for run, row in by_run(documents["step-traces.json"]).items()},
        summary=documents["run-summary.json"],
        environment=documents["environment.json"],
        checkpoint=documents["checkpoint-schema.json"],
    )


# ------------------------------------------------------------------------------------------------------ in words


def listed(names: Iterable[object], otherwise: str = "nothing") -> str:
    """Return names with commas between them."""
    return ", ".join(map(str, names)) or otherwise


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def error_text(error: float) -> str:
    """Return an error in four significant digits; only 0 itself is written as 0."""
    return f"{error:.3e}" if error else "0"


def outcome(row: Row) -> tuple[str, str]:
    """Return the outcome of a run in two short lines: exact, or from where on and in the end how far it differs."""
    if row["exact_resume"]:
        return "exact", "0"
    if row["first_divergent_optimizer_step"] is None:
        return "differs", "model same"
    return f"from {row['first_divergent_optimizer_step']}", f"{row['max_parameter_abs_error']:.1e}"


def evidence(results: Results, scenario: str) -> str:
    """Return what the runs of a scenario showed, as one sentence."""
    runs = results.runs(scenario)
    exact = sum(row["exact_resume"] for row in runs)
    firsts = sorted({row["first_divergent_optimizer_step"] or 0 for row in runs if not row["exact_resume"]} - {0})
    errors = [row["max_parameter_abs_error"] for row in runs]
    text = f"{exact} of {counted(len(runs), 'run')} exact"
    if firsts:
        text += f"; the model first differs after update {listed(firsts)}"
    low, high = ("exactly 0" if error == 0 else error_text(error) for error in (min(errors), max(errors)))
    return f"{text}; largest final parameter difference {low if low == high else f'{low} to {high}'}"


# ----------------------------------------------------------------------------------------------------- figures

WIDE, NARROW = 960, 340  # widths in CSS pixels: of the page's column, and of what a phone shows without scrolling
MARGIN = 16  # around a figure that stands alone, in CSS pixels
TALLEST_PNG = 30_000  # pixels; many seeds make tall figures, and a picture file has a limit

# name -> its colour on a light ground, which pictures have, and on a dark one. All differ, so that one can be told from
# the other in a finished SVG.
PALETTE = {
    "paper": ("#ffffff", "#15191e"),
    "ink": ("#1c232b", "#e6eaee"),
    "muted": ("#5a6672", "#9ba7b4"),
    "rule": ("#d4dae0", "#38414b"),
    "band": ("#eef2f5", "#20272f"),
    "exact": ("#e1f0e9", "#173529"),
    "exact edge": ("#1f7a57", "#6bc7a2"),
    "differs": ("#fbeadb", "#402c1a"),
    "differs edge": ("#a9510c", "#f1a765"),
    "alarm": ("#b21f35", "#ff8d93"),
    "series 1": ("#2c69ae", "#82b4ee"),
    "series 2": ("#bd5710", "#f0a05c"),
    "series 3": ("#22805a", "#62c599"),
    "series 4": ("#7a52b3", "#b99bef"),
    "series 5": ("#b23578", "#ef8cbc"),
    "series 6": ("#197d8d", "#5dc4d3"),
    "series 7": ("#7c5a2c", "#cca776"),
}
LIGHT = {name: light for name, (light, _) in PALETTE.items()}
DARK = {name: dark for name, (_, dark) in PALETTE.items()}
COLORS = [LIGHT[name] for name in PALETTE if name.startswith("series")]
MARKERS = ["o", "s", "^", "D", "v"]
DASHES = ["-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5))]
DARK_RULES = "".join(
    f'[{what}="{LIGHT[name]}"]{{{what}:{DARK[name]}}}' for name in PALETTE for what in ("fill", "stroke")
)
STYLE: Any = {  # which keys there are, matplotlib knows
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10,
    "svg.fonttype": "none",  # text stays text, to be read, searched and copied
    "svg.hashsalt": "report",
    "text.parse_math": False,
}


def series_style(index: int) -> dict[str, Any]:
    """Return colour, marker and dashes of a series: three signs, of which each alone tells neighbours apart."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.4,
        "markersize": 6,
        "markeredgewidth": 0.8,
        "markeredgecolor": LIGHT["paper"],
        "clip_on": False,
    }


class Sheet:
    """A figure measured in CSS pixels from its upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="none")
        self.titles: dict[str, list[str]] = {}  # id of a series -> what each of its markers says when pointed at

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return axes with two quiet lines for a frame."""
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, facecolor="none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LIGHT["rule"])
        axes.tick_params(color=LIGHT["rule"], labelcolor=LIGHT["muted"], labelsize=9, length=3)
        return axes

    def canvas(self, top: float = 0, height: float | None = None) -> Axes:
        """Return bare axes over the whole width, whose units are pixels and whose y grows downwards."""
        height = self.height - top if height is None else height
        axes = self.axes(0, top, self.width, height)
        axes.set(xlim=(0, self.width), ylim=(height, 0))
        axes.axis("off")
        return axes

    def text(self, x: float, y: float, words: str, **options: Any) -> None:
        """Write words with their baseline at a place."""
        options = {"color": LIGHT["ink"], "fontsize": 10, **options}
        self.figure.text(x / self.width, 1 - y / self.height, words, **options)

    def legend(self, top: float, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Draw labels with their styles from left to right, in as many lines as they need."""
        axes, width = self.canvas(), entry_width(entries)
        for index, (label, style) in enumerate(entries):
            x, y = legend_place(index, width, self.width)
            axes.plot([x + 2, x + 15, x + 28], [top + y] * 3, **(dict(style) | {"markevery": [1]}))
            axes.text(x + 34, top + y + 3.5, label, color=LIGHT["ink"], fontsize=10)

    def svg(self, name: str, title: str, description: str) -> ET.Element:
        """Return the figure as an SVG element for a page, which gives it its ground and its colors for dark.

        Args:
            name: begins each id, so that the figures of a page do not share any.
            title: what the figure is, for those who do not see it.
            description: what it shows.
        """
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None})
        root = tidied(ET.fromstring(buffer.getvalue()), name)  # noqa: S314 -- just made here
        for group in root.iter("g"):
            titles = self.titles.get(group.get("id", "").removeprefix(f"{name}-"), [])
            for marker, words in zip(group.iter("use"), titles, strict=False):
                ET.SubElement(marker, "title").text = words
        root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-description"}
        for tag, end, words in (("desc", "description", description), ("title", "title", title)):
            element = ET.Element(tag, id=f"{name}-{end}")
            element.text = words
            root.insert(0, element)
        return root

    def png(self) -> bytes:
        """Return the figure as a picture with two pixels for each of CSS."""
        buffer = io.BytesIO()
        dpi = 72 * min(2, TALLEST_PNG / (self.height + 2 * MARGIN))
        around = Bbox.from_extents(-MARGIN, -MARGIN, self.width + MARGIN, self.height + MARGIN)
        self.figure.savefig(
            buffer,
            format="png",
            dpi=dpi,
            facecolor=LIGHT["paper"],
            bbox_inches=around.transformed(Affine2D().scale(1 / 72)),
            metadata={"Software": None},
        )
        return buffer.getvalue()


def alone(svg: ET.Element) -> str:
    """Return an SVG element as a file of its own, with ground and colors for light and dark."""
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **svg.attrib})
    root.extend(svg)
    width, height = (float(svg.attrib[key]) + 2 * MARGIN for key in ("width", "height"))
    ground = {"x": f"{-MARGIN}", "y": f"{-MARGIN}", "width": f"{width:g}", "height": f"{height:g}"}
    root.attrib |= ground | {"viewBox": " ".join(ground.values())}
    del root.attrib["x"], root.attrib["y"]
    style = ET.Element("style")
    style.text = f"@media (prefers-color-scheme:dark){{{DARK_RULES}}}"
    root[2:2] = [style, ET.Element("rect", ground, fill=LIGHT["paper"])]
    return ET.tostring(root, encoding="unicode") + "\n"


def legend_place(index: int, width: float, available: float) -> tuple[float, float]:
    """Return where an entry of a legend begins, and how far below the first line."""
    columns = max(1, int(available // width))
    return index % columns * width, index // columns * 18


def legend_height(entries: int, width: float, available: float) -> float:
    """Return the height of a legend."""
    return legend_place(entries - 1, width, available)[1] + 18


SVG_NAMESPACE, XLINK_NAMESPACE = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
INHERITED = {
    "stroke-linejoin": "round",
    "stroke-linecap": "butt",
    "font-family": "system-ui, 'DejaVu Sans', sans-serif",
}


COORDINATES = {"d", "x", "y"}
REFERENCES = {"href": re.compile("(?<=^#).+$"), "clip-path": re.compile(r"(?<=^url\(#).+(?=\)$)")}


def tidied(root: ET.Element, name: str) -> ET.Element:
    """Return matplotlib's SVG without what a page has no use for.

    An id remains where it was given on purpose (`@`) or is referred to, and begins with the name of the figure.
    """
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{SVG_NAMESPACE}metadata", f"{SVG_NAMESPACE}style"}:
                parent.remove(child)
    ids: dict[str, str] = {}
    for element in root.iter():
        plain_attributes(element)
        for key, pattern in REFERENCES.items():
            if found := pattern.search(element.get(key, "")):
                new = ids.setdefault(found[0], f"{name}-part-{len(ids) + 1}")
                element.set(key, element.attrib[key].replace(found[0], new))
    for element in root.iter():
        id_ = element.attrib.pop("id", "")
        if id_.startswith("@") or id_ in ids:
            element.set("id", f"{name}-{id_[1:]}" if id_.startswith("@") else ids[id_])
    width, height = (root.get(key, "").removesuffix("pt") for key in ("width", "height"))
    root.attrib.clear()
    root.attrib |= {"viewBox": f"0 0 {width} {height}", "width": width, "height": height} | INHERITED
    return root


def plain_attributes(element: ET.Element) -> None:
    """Make attributes of styles, so that a style sheet can override them and a program that knows none has them too.

    A hundredth of a pixel is as exact as coordinates need be.
    """
    element.tag = element.tag.removeprefix(SVG_NAMESPACE)
    element.text, element.tail = (element.text or "").strip() or None, None
    if reference := element.attrib.pop(f"{XLINK_NAMESPACE}href", None):
        element.set("href", reference)
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        key, value = (part.strip() for part in declaration.split(":", 1))
        if key != "font-family":
            element.set(key, value.removesuffix("px"))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for key in COORDINATES.intersection(element.attrib):
        short = re.sub(r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 2):g}", element.attrib[key])
        element.set(key, " ".join(short.split()))


class ErrorScale:
    """Places errors on an axis: by their decimal logarithm, and 0, which has none, in a band of its own below.

    Attributes:
        low, high: logarithms that enclose those of all positive errors; `low` is a whole number.
        bottom, top: ends of the axis; the band reaches from `bottom` to `edge`.
    """

    def __init__(self, errors: Iterable[float]) -> None:
        positive = [error for error in errors if error > 0]
        self.low = math.floor(math.log10(min(positive))) if positive else -3
        self.high = max(math.log10(max(positive)) if positive else 0, self.low + 1.0)
        span = self.high - self.low
        self.edge = self.low - 0.08 * span
        self.bottom = self.edge - 0.36 * span
        self.top = self.high + 0.06 * span

    def place(self, error: float, lane: float = 0.5) -> float:
        """Return the place of an error; zeros may be side by side in lanes from 0, on top, to 1."""
        if error > 0:
            return math.log10(error)
        return self.edge - (0.15 + 0.7 * lane) * (self.edge - self.bottom)

    def ticks(self) -> dict[float, str]:
        """Return places and labels: at most six powers of ten, and 0."""
        powers = range(self.low, math.floor(self.high) + 1)
        powers = powers[:: max(1, -(-len(powers) // 6))]
        return {(self.edge + self.bottom) / 2: "exactly 0"} | {power: f"10{superscript(power)}" for power in powers}


def superscript(number: int) -> str:
    """Return a number in raised digits."""
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def lanes(count: int) -> list[float]:
    """Return places from 0 to 1 for things that would else hide each other."""
    return [(index + 0.5) / count for index in range(count)]


INTERRUPTION: dict[str, Any] = {"color": LIGHT["muted"], "linewidth": 1, "linestyle": (0, (2, 2))}


def seed_legend(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the sign of each seed."""
    return [(f"seed {seed}", series_style(index)) for index, seed in enumerate(results.seeds)]


def entry_width(entries: Iterable[tuple[str, object]]) -> int:
    """Return a width that the longest label of a legend fits in."""
    return 46 + 7 * max(len(label) for label, _ in entries)


def panels(count: int, columns: int, width: float, gap: float) -> tuple[float, list[tuple[int, int]]]:
    """Return the width of a panel, and the column and line of each."""
    return (width - gap * (columns - 1)) / columns, [(n % columns, n // columns) for n in range(count)]


def interruption(row: Row, accumulation: int) -> float:
    """Return where a run was interrupted, in updates."""
    return float(row["interrupt_optimizer_step"] + row["interrupt_microstep_in_accumulation"] / accumulation)


def update_axis(axes: Axes, first: float, last: int) -> None:
    """Number the updates below a panel, leaving out as many as must be for the rest to be read."""
    numbers = range(math.ceil(first), last + 1)
    step = max(1, -(-len(numbers) // 9))
    axes.set_xlim(first - 0.35, last + 0.35)
    axes.set_xticks(numbers[(len(numbers) - 1) % step :: step])


def draw_divergence(results: Results, width: float) -> Sheet:
    """Draw the largest parameter difference after each update: a panel per scenario, a line per seed."""
    columns = min(4 if width == WIDE else 2, len(results.scenarios))
    panel, places = panels(len(results.scenarios), columns, width - 58, 16)
    height, head, stride = (160, 46, 250) if width == WIDE else (150, 56, 250)
    legend = [*seed_legend(results), ("interruption", INTERRUPTION)]
    top = legend_height(len(legend), entry_width(legend), width) + 36
    sheet = Sheet(width, top + stride * (places[-1][1] + 1) - 6)
    sheet.text(0, 12, "largest parameter difference from the uninterrupted training", color=LIGHT["muted"])
    sheet.legend(32, legend)
    configuration = results.summary["configuration"]
    starts = [interruption(row, configuration["accumulation_steps"]) for row in results.rows.values()]
    scale = ErrorScale(step["max_parameter_abs_error"] for trace in results.traces.values() for step in trace)
    for scenario, (column, line) in zip(results.scenarios, places, strict=True):
        left, above = 58 + column * (panel + 16), top + line * stride
        sheet.text(left, above + 16, scenario, fontweight="bold", fontsize=10 if width == WIDE else 8.5)
        for n, words_ in enumerate(textwrap.wrap(left_out(results, scenario), int(panel / 5))):
            sheet.text(left, above + 31 + 11 * n, words_, color=LIGHT["muted"], fontsize=9)
        axes = sheet.axes(left, above + head, panel, height)
        axes.axhspan(scale.bottom, scale.edge, color=LIGHT["band"], zorder=0, linewidth=0)
        for place in list(scale.ticks())[1:]:
            axes.axhline(place, color=LIGHT["rule"], linewidth=0.6, zorder=0, gid=f"@{scenario}-1e{place:g}")
        start = interruption(results.rows[results.seeds[0], scenario], configuration["accumulation_steps"])
        axes.axvline(start, gid=f"@{scenario}-interruption", **INTERRUPTION)
        update_axis(axes, min(starts), configuration["total_optimizer_steps"])
        axes.set_ylim(scale.bottom, scale.top)
        axes.set_yticks(list(scale.ticks()), list(scale.ticks().values()) if column == 0 else [])
        axes.set_xlabel("after update", color=LIGHT["muted"], fontsize=9)
        if not results.traces[results.seeds[0], scenario]:
            axes.text(0.5, 0.5, "no update followed", transform=axes.transAxes, ha="center", color=LIGHT["muted"])
        for index, (seed, lane) in enumerate(zip(results.seeds, lanes(len(results.seeds)), strict=True)):
            trace = results.traces[seed, scenario]
            gid = f"{scenario}-{seed}"
            every = -(-len(trace) // 20) or 1
            sheet.titles[gid] = [
                f"seed {seed}, after update {step['logical_step']}: {step['max_parameter_abs_error']!r}"
                for step in trace[::every]
            ]
            axes.plot(
                [step["logical_step"] for step in trace],
                [scale.place(step["max_parameter_abs_error"], lane) for step in trace],
                gid=f"@{gid}",
                markevery=every,
                **series_style(index),
            )
    return sheet


def left_out(results: Results, scenario: str) -> str:
    """Return what the scenario's checkpoint lacks, as a label."""
    return f"without {listed(results.omitted(scenario))}" if results.omitted(scenario) else "nothing left out"


def draw_matrix(results: Results, width: float) -> Sheet:
    """Draw a cell for each run: exact, or from which update on it differs, and by how much in the end."""
    label, per_block, cell_height, head = (218, 10, 40, 26) if width == WIDE else (120, 5, 36, 24)
    cell = min(150.0, (width - label) / min(per_block, len(results.seeds)))
    blocks = [results.seeds[n : n + per_block] for n in range(0, len(results.seeds), per_block)]
    block = head + cell_height * len(results.scenarios) + 12
    sheet = Sheet(width, block * len(blocks))
    axes = sheet.canvas()
    for number, seeds in enumerate(blocks):
        top = block * number + head
        for column, seed in enumerate(seeds):
            axes.text(
                label + cell * (column + 0.5),
                top - 8,
                f"seed {seed}" if 5.5 * len(f"seed {seed}") < cell else str(seed),
                ha="center",
                color=LIGHT["muted"],
                fontsize=10 if width == WIDE else 8.5,
            )
        for line, scenario in enumerate(results.scenarios):
            middle = top + cell_height * (line + 0.5)
            lift = 3 if width == WIDE else -3.5
            axes.text(
                0, middle - lift, scenario, color=LIGHT["ink"], fontsize=11 if width == WIDE else 9, fontweight="bold"
            )
            if width == WIDE:
                axes.text(0, middle + 12, left_out(results, scenario), color=LIGHT["muted"], fontsize=9)
            for column, seed in enumerate(seeds):
                row = results.rows[seed, scenario]
                box = (label + cell * column, top + cell_height * line, cell, cell_height)
                draw_cell(axes, box, row, expected=results.must_be_exact(scenario), wide=width == WIDE)
    return sheet


def draw_cell(axes: Axes, box: Box, row: Row, *, expected: bool, wide: bool) -> None:
    """Draw the cell of one run; one that is not as its acceptance check wants it has a heavy frame and says so."""
    kind = "exact" if row["exact_resume"] else "differs"
    left, top, width, height = box
    unexpected = row["exact_resume"] is not expected
    inset = 3.0 if unexpected else 1.5
    axes.add_patch(
        Rectangle(
            (left + inset, top + inset),
            width - 2 * inset,
            height - 2 * inset,
            facecolor=LIGHT[kind],
            edgecolor=LIGHT["alarm"] if unexpected else LIGHT[kind],
            linewidth=2.5 if unexpected else 0,
        )
    )
    first, second = outcome(row)
    second = "unexpected" if unexpected else second
    size_ = 11 if wide else 9
    middle = top + height / 2
    gid = f"@{row['scenario']}-{row['seed']}"
    options: dict[str, Any] = {"ha": "center", "color": LIGHT["alarm" if unexpected else f"{kind} edge"]}
    axes.text(left + width / 2, middle - 1, first, gid=gid, fontweight="bold", fontsize=size_, **options)
    axes.text(left + width / 2, middle + size_ + 1, second, gid=f"{gid}-error", fontsize=size_ - 2, **options)


def draw_learning_rates(results: Results, width: float) -> Sheet | None:
    """Draw the learning rate after each update, control and resumed, where they part; `None` where they never do."""
    scenarios = results.parted(lambda step: step["learning_rate_error"] == 0)
    if not scenarios:
        return None
    columns = min(2 if width == WIDE else 1, len(scenarios))
    panel, places = panels(len(scenarios), columns, width - 58, 24)
    head, height, stride = 42, 130, 216
    sheet = Sheet(width, 56 + stride * (places[-1][1] + 1) - 4)
    control, resumed = RATE_STYLES
    sheet.text(0, 12, "learning rate", color=LIGHT["muted"])
    sheet.legend(32, [("uninterrupted", control), ("resumed", resumed)])
    configuration = results.summary["configuration"]
    steps = [step for scenario in scenarios for seed in results.seeds for step in results.traces[seed, scenario]]
    rates = sorted({step[name] for step in steps for name in ("expected_learning_rate", "actual_learning_rate")})
    # The rates themselves, unless some are too close to each other to be told apart.
    crowded = any(b - a < (rates[-1] - rates[0]) / 10 for a, b in itertools.pairwise(rates))
    ticks = [rates[0], (rates[0] + rates[-1]) / 2, rates[-1]] if crowded else rates
    low, high = min(step["logical_step"] for step in steps), configuration["total_optimizer_steps"]
    for scenario, (column, line) in zip(scenarios, places, strict=True):
        left, above = 58 + column * (panel + 24), 56 + line * stride
        runs = [results.traces[seed, scenario] for seed in results.seeds]
        courses = {tuple(step["actual_learning_rate"] for step in run): run for run in reversed(runs)}
        sheet.text(left, above + 16, scenario, fontweight="bold")
        same = "all seeds alike" if len(courses) == 1 else f"{len(courses)} courses among {len(runs)} seeds"
        sheet.text(left, above + 31, f"{left_out(results, scenario)}; {same}", color=LIGHT["muted"], fontsize=9)
        axes = sheet.axes(left, above + head, panel, height)
        for rate in ticks:
            axes.axhline(rate, color=LIGHT["rule"], linewidth=0.6, zorder=0)
        numbers = [step["logical_step"] for step in runs[0]]
        wanted = [step["expected_learning_rate"] for step in runs[0]]
        axes.plot(numbers, wanted, gid=f"@{scenario}-control", drawstyle="steps-post", **control)
        sheet.titles[f"{scenario}-control"] = rate_titles(runs[0], "expected_learning_rate")
        for index, run in enumerate(reversed(courses.values())):
            gid = f"{scenario}-resumed-{index + 1}"
            rate = [step["actual_learning_rate"] for step in run]
            axes.fill_between(numbers, wanted, rate, step="post", color=LIGHT["differs"], zorder=0, linewidth=0)
            axes.plot(numbers, rate, gid=f"@{gid}", drawstyle="steps-post", **resumed)
            sheet.titles[gid] = rate_titles(run, "actual_learning_rate")
        update_axis(axes, low, high)
        margin = (rates[-1] - rates[0]) * 0.12 or 1
        axes.set_ylim(rates[0] - margin, rates[-1] + margin)
        axes.set_yticks(ticks, [f"{rate:.4g}" for rate in ticks] if column == 0 else [])
        axes.set_xlabel("after update", color=LIGHT["muted"], fontsize=9)
    return sheet


RATE_STYLES: tuple[dict[str, Any], dict[str, Any]] = (
    series_style(0) | {"marker": "o", "linestyle": "-", "markersize": 5},
    series_style(1)
    | {"marker": "s", "linestyle": (0, (4, 2)), "markersize": 6.5, "markerfacecolor": "none"}
    | {"markeredgecolor": COLORS[1], "markeredgewidth": 1.3},
)


def rate_titles(trace: Sequence[Row], name: str) -> list[str]:
    """Return what each marker of a learning rate says."""
    return [f"after update {step['logical_step']}: {step[name]!r}" for step in trace]


def draw_batches(results: Results, width: float) -> Sheet | None:
    """Draw the examples of each update's last batch, control above resumed, where they part; `None` where never."""
    scenarios = results.parted(lambda step: bool(step["batch_match"]))
    if not scenarios:
        return None
    columns = min(2 if width == WIDE else 1, len(scenarios))
    panel, places = panels(len(scenarios), columns, width, 40)
    cell_height, pair, head, foot = 25, 58, 50, 14
    stride = head + pair * len(results.seeds) + foot
    sheet = Sheet(width, stride * (places[-1][1] + 1))
    for scenario, (column, line) in zip(scenarios, places, strict=True):
        left, above = column * (panel + 40), line * stride
        sheet.text(left, above + 16, scenario, fontweight="bold")
        sheet.text(left, above + 31, left_out(results, scenario), color=LIGHT["muted"], fontsize=9)
        axes = sheet.canvas()
        label = 92 if width == WIDE else 66
        cell = (panel - label) / len(results.traces[results.seeds[0], scenario])
        for index, seed in enumerate(results.seeds):
            top = above + head + index * pair
            axes.text(left, top + 16, f"seed {seed}", color=LIGHT["ink"], fontsize=10 if width == WIDE else 9)
            for n, who in enumerate(("control", "resumed")):
                axes.text(
                    left + label - 6,
                    top + cell_height * (n + 0.5) + 3,
                    who if width == WIDE else who[0],
                    ha="right",
                    color=LIGHT["muted"],
                    fontsize=8.5,
                )
            for n, step in enumerate(results.traces[seed, scenario]):
                x, number = left + label + cell * n, str(step["logical_step"])
                if index == 0 and n % math.ceil(16 / cell) == 0:
                    axes.text(x + cell / 2, top - 4, number, ha="center", color=LIGHT["muted"], fontsize=8.5)
                gid = f"@{scenario}-{seed}-{number}"
                control, resumed = step["expected_last_batch_ids"], step["last_batch_ids"]
                draw_batch(axes, (x, top, cell, cell_height), control, gid, same=True)
                box = (x, top + cell_height, cell, cell_height)
                draw_batch(axes, box, resumed, f"{gid}-resumed", same=step["batch_match"])
    return sheet


def draw_batch(axes: Axes, box: Box, ids: Sequence[int], gid: str, *, same: bool) -> None:
    """Draw a batch as a cell: plain where it is the control's, framed where it is another; with the ids that fit."""
    left, top, width, height = box
    axes.add_patch(
        Rectangle(
            (left + 1, top + 1),
            width - 2,
            height - 2,
            facecolor=LIGHT["band"] if same else LIGHT["differs"],
            edgecolor=LIGHT["band"] if same else LIGHT["differs edge"],
            linewidth=0 if same else 1,
        )
    )
    in_line = int((width - 4) // 17)
    shown = [str(id_) for id_ in ids] if in_line else []
    if len(shown) > 2 * in_line:
        shown = [*shown[: 2 * in_line - 1], "…"]
    half = -(-len(shown) // 2)
    lines = [" ".join(part) for part in (shown[:half], shown[half:]) if part]
    for n, line in enumerate(lines):
        axes.text(
            left + width / 2,
            top + height / 2 + 3 + (n - (len(lines) - 1) / 2) * 9.5,
            line,
            gid=f"{gid}-{n + 1}",
            ha="center",
            color=LIGHT["muted"] if same else LIGHT["differs edge"],
            fontsize=8,
        )


def draw_checkpoints(results: Results, width: float) -> Sheet:
    """Draw what each checkpoint held, and beside it how far the training resumed from it is off in the end."""
    wide = width == WIDE
    components = [
        *results.checkpoint["successful_boundary_payload_fields"],
        *results.checkpoint["successful_mid_accumulation_additional_fields"],
    ]
    label, column = (178, 58) if wide else (4, 22)
    legend = seed_legend(results)
    above = legend_height(len(legend), entry_width(legend), width)
    line_height, head = (32, above + 44) if wide else (46, above + 78)
    sheet = Sheet(width, head + line_height * len(results.scenarios) + 44)
    sheet.legend(10, legend)
    axes = sheet.canvas()
    for n, component in enumerate(components):
        x = label + column * (n + 0.5)
        options: dict[str, Any] = (
            {"ha": "center"} if wide else {"rotation": 60, "ha": "left", "rotation_mode": "anchor"}
        )
        axes.text(x, head - 14, component, color=LIGHT["muted"], fontsize=9, **options)
    start = label + column * len(components) + (28 if wide else 22)
    costs = sheet.axes(start, head - 8, width - start - 12, line_height * len(results.scenarios) + 12)
    errors = {
        scenario: [row["max_parameter_abs_error"] for row in results.runs(scenario)] for scenario in results.scenarios
    }
    scale = ErrorScale(error for found in errors.values() for error in found)
    costs.axvspan(scale.bottom, scale.edge, color=LIGHT["band"], zorder=0, linewidth=0)
    costs.set(xlim=(scale.bottom, scale.top), ylim=(line_height * len(results.scenarios) + 4, -8))
    ticks = (
        scale.ticks() if wide else {place: "0" if place < scale.edge else text for place, text in scale.ticks().items()}
    )
    costs.set_xticks(list(ticks), list(ticks.values()))
    costs.set_yticks([])
    costs.spines["left"].set_visible(False)
    costs.set_xlabel(
        "largest parameter difference at the end" if wide else "difference at the end", color=LIGHT["muted"], fontsize=9
    )
    for place in list(ticks)[1:]:
        costs.axvline(place, color=LIGHT["rule"], linewidth=0.6, zorder=0)
    for n, scenario in enumerate(results.scenarios):
        if wide and n:
            axes.axhline(head + line_height * n, color=LIGHT["rule"], linewidth=0.6, xmax=(start - 12) / width)
        middle = head + line_height * (n + 0.5) + (0 if wide else 8)
        y = middle - head
        axes.text(0, middle + (3.5 if wide else -15), scenario, color=LIGHT["ink"], fontweight="bold", fontsize=10)
        for index, component in enumerate(components):
            draw_component(axes, label + column * (index + 0.5), middle, held(results, scenario, component))
        spread = lanes(len(errors[scenario]))
        for index, (seed, error) in enumerate(zip(results.seeds, errors[scenario], strict=True)):
            gid = f"{scenario}-{seed}"
            sheet.titles[gid] = [f"seed {seed}: {error!r}"]
            # Zeros lie side by side, as far as a third of the band from its middle.
            place = scale.place(error, 0.2 + 0.6 * spread[index])
            costs.plot([place], [y], gid=f"@{gid}", **(series_style(index) | {"linestyle": "none", "markersize": 7}))
    axes.axhline(head - 8, color=LIGHT["rule"], linewidth=0.8, xmax=(start - 12) / width)
    return sheet


def held(results: Results, scenario: str, component: str) -> str:
    """Return whether a checkpoint held a component: `held`, `left out`, or `not needed` at its position."""
    if component in results.omitted(scenario):
        return "left out"
    return "held" if component in results.needed(scenario) else "not needed"


def draw_component(axes: Axes, x: float, y: float, state: str) -> None:
    """Draw a full dot for what was held, a cross for what was left out, a dash for what is not needed."""
    if state == "not needed":
        axes.plot([x - 3, x + 3], [y, y], color=LIGHT["muted"], linewidth=1)
        return
    color = LIGHT["exact edge"] if state == "held" else LIGHT["differs edge"]
    axes.plot(
        [x], [y], marker="o" if state == "held" else "x", markersize=8 if state == "held" else 7, color=color, mew=2
    )


DRAWINGS: dict[str, Callable[[Results, float], Sheet | None]] = {
    "matrix": draw_matrix,
    "divergence": draw_divergence,
    "learning-rates": draw_learning_rates,
    "batches": draw_batches,
    "checkpoints": draw_checkpoints,
}


# -------------------------------------------------------------------------------------------------------- page

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$status: checkpoint-resume equivalence</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<style>
$style
</style>
</head>
<body>
<main>
$body
</main>
</body>
</html>
""")

STYLE_SHEET = Template("""\
:root { color-scheme: light dark; $light }
@media screen and (prefers-color-scheme: dark) { :root { $dark } $dark_figures }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: ${page}px; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 {
  font-size: 1.9rem;
  line-height: 1.2;
  font-weight: 650;
  letter-spacing: -.015em;
  margin: 0 0 .75rem;
  text-wrap: balance;
  overflow-wrap: anywhere;
}
h1 b {
  display: inline-block;
  margin-right: .35em;
  padding: .02em .4em;
  border: 2px solid;
  border-radius: .3em;
  font-weight: 750;
}
h1 b.pass { color: var(--exact-edge); }
h1 b.fail { color: var(--alarm); }
h2 {
  font-size: 1.25rem;
  line-height: 1.3;
  font-weight: 650;
  margin: 3.25rem 0 .4rem;
  padding-top: 1rem;
  border-top: 1px solid var(--rule);
}
h3 { font-size: 1rem; font-weight: 650; margin: 2rem 0 .25rem; }
p { max-width: 68ch; margin: 0 0 .75rem; }
.lead { font-size: 1.075rem; }
.quiet, figcaption, caption { color: var(--muted); font-size: .9rem; }
figure { margin: 1.25rem 0 .5rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg.narrow { display: none; }
figcaption { max-width: 76ch; margin-top: .6rem; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; min-width: 50%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--rule); }
thead th { color: var(--muted); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; }
td.number { white-space: nowrap; }
td strong { white-space: nowrap; }
td strong.good { color: var(--exact-edge); }
td strong.bad { color: var(--alarm); }
details { margin: .5rem 0 1rem; }
summary { cursor: pointer; color: var(--muted); font-size: .9rem; }
code, pre { font: .86em/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--band); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; }
@media screen and (max-width: 700px) {
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.45rem; }
  figure svg.wide { display: none; }
  figure svg.narrow { display: block; max-width: ${narrow_most}px; }
  .claims, .claims :is(caption, tbody, tr, th, td) { display: block; }
  .claims thead { display: none; }
  .claims tr { border-bottom: 1px solid var(--rule); padding: .6rem 0; }
  .claims :is(th, td) { border: 0; padding: .1rem 0; }
}
@media print {
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
  pre, .scroll { overflow: visible; }
  pre { white-space: pre-wrap; }
}""")


def element(tag: str, content: str, **attributes: str) -> str:
    """Return an element around content that is HTML already; `class_` is `class`, and `_` within a name is `-`."""
    given = "".join(f' {name.rstrip("_").replace("_", "-")}="{html.escape(text)}"' for name, text in attributes.items())
    return f"<{tag}{given}>{content}</{tag}>"


def words(text: object) -> str:
    """Return text as HTML."""
    return html.escape(str(text), quote=False)


def code(text: object) -> str:
    """Return text as HTML in the type of code."""
    return element("code", words(text))


def table(name: str, header: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> str:
    """Return a table of cells that are HTML already; the first of each row names it."""
    head = element("tr", "".join(element("th", words(cell), scope="col") for cell in header))
    lines = []
    for first, *others in rows:
        numbers = "".join(element("td", cell, **({"class_": "number"} if is_number(cell) else {})) for cell in others)
        lines.append(element("tr", element("th", first, scope="row") + numbers))
    attributes = {"class_": class_} if class_ else {}
    content = element("caption", words(name)) + element("thead", head) + element("tbody", "\n".join(lines))
    return element(
        "div", element("table", content, **attributes), class_="scroll", role="region", tabindex="0", aria_label=name
    )


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number and nothing to be broken into lines."""
    return re.fullmatch(r"[-+0-9.e]+", cell) is not None


def folded(summary: str, content: str) -> str:
    """Return content that is shown on demand."""
    return element("details", element("summary", words(summary)) + content)


@dataclass
class Report:
    """What `report/` is to hold, by file name; the page is put together while the figures are drawn."""

    results: Results
    files: dict[str, bytes] = field(default_factory=dict)

    def figure(self, name: str, title: str, description: str, caption: str) -> str:
        """Draw a figure, keep it as two files, and return it as part of the page, in a wide and a narrow form.

        An empty string stands for a figure that has nothing to show.
        """
        sheet = DRAWINGS[name](self.results, WIDE)
        narrow = DRAWINGS[name](self.results, NARROW)
        if sheet is None or narrow is None:
            return ""
        forms = {
            "wide": sheet.svg(name, title, description),
            "narrow": narrow.svg(f"{name}-narrow", title, description),
        }
        self.files[f"{name}.svg"] = alone(forms["wide"]).encode()
        self.files[f"{name}.png"] = sheet.png()
        for class_, svg in forms.items():
            svg.set("class", class_)
        drawn = [ET.tostring(svg, encoding="unicode", short_empty_elements=False) for svg in forms.values()]
        return element("figure", "".join(drawn) + element("figcaption", words(caption)), id=f"figure-{name}")

    def page(self) -> bytes:
        """Return the page."""
        light, dark = (
            "; ".join(f"--{name.replace(' ', '-')}: {color}" for name, color in colors.items())
            for colors in (LIGHT, DARK)
        )
        style = STYLE_SHEET.substitute(
            light=light, dark=dark, dark_figures=DARK_RULES, page=WIDE + 40, narrow_most=NARROW + 160
        )
        sections = (self.verdict, self.matrix, self.divergence, self.courses, self.checkpoints, self.environment)
        body = "\n".join(element("section", section()) for section in sections)
        return PAGE.substitute(status=self.results.summary["status"], style=style, body=body).encode()

    def verdict(self) -> str:
        """Return the verdict in words, and the claims table."""
        results = self.results
        status, checks = results.summary["status"], results.checks
        failed = [name for name, held in checks.values() if not held]
        says = (
            f"{len(failed)} of {counted(len(checks), 'acceptance check')} failed: {listed(failed)}"
            if failed
            else f"all {len(checks)} acceptance checks hold"
            if len(checks) > 1
            else f"the acceptance check {listed(name for name, _ in checks.values())} holds"
        )
        heading = element("b", f"{words(status)}:", class_=status.lower()) + words(f" {says}")
        seeds, scenarios = len(results.seeds), len(results.scenarios)
        lead = (
            f"{counted(seeds * scenarios, 'run')} ({counted(seeds, 'seed')}, {counted(scenarios, 'scenario')}): "
            "in each, a training is interrupted, resumed from a checkpoint, and compared after every update with the "
            "same training without interruption. Scenarios that leave something out of the checkpoint are there to "
            "diverge: such a claim holds when every run shows the loss."
        )
        rows = [
            (
                CLAIMS[scenario].number,
                words(CLAIMS[scenario].text),
                f"{words(evidence(results, scenario))} ({code(check)} in {code('run-summary.json')})",
                element("strong", "✓ holds" if held else "✗ FAILS", class_="good" if held else "bad"),
            )
            for scenario, (check, held) in checks.items()
        ]
        return "\n".join(
            [
                element("h1", heading),
                element("p", words(lead), class_="lead"),
                table(
                    "Claims, and what these results say of them", ("", "claim", "evidence", "result"), rows, "claims"
                ),
                element("p", words(results.summary["claim_boundary"]), class_="quiet"),
                element("p", f"The files agree with each other: {code(results.verdict)}.", class_="quiet"),
            ]
        )

    def matrix(self) -> str:
        """Return the matrix of seeds and scenarios."""
        results = self.results
        rows = [
            (
                code(scenario),
                words(left_out(results, scenario)),
                *(words(", ".join(outcome(row))) for row in results.runs(scenario)),
            )
            for scenario in results.scenarios
        ]
        header = ("scenario", "checkpoint", *(f"seed {seed}" for seed in results.seeds))
        summary = "; ".join(f"{scenario}: {evidence(results, scenario)}" for scenario in results.scenarios)
        return "\n".join(
            [
                element("h2", "Exact, or diverged, and from which update on"),
                self.figure(
                    "matrix",
                    "Outcome of each run, by scenario and seed",
                    summary,
                    "“exact”: every bit of the final state is that of the uninterrupted training, in all components. "
                    "“from 6”: the model first differs after update 6; below, the largest parameter difference in the "
                    "end. An outcome that its claim did not want has a heavy frame and says “unexpected”.",
                ),
                folded("The matrix as a table", table("Outcome of each run", header, rows)),
            ]
        )

    def divergence(self) -> str:
        """Return the parameter difference after each update."""
        results = self.results
        steps = sorted({step["logical_step"] for trace in results.traces.values() for step in trace})
        rows = []
        for scenario in results.scenarios:
            for seed in results.seeds:
                errors = {
                    step["logical_step"]: step["max_parameter_abs_error"] for step in results.traces[seed, scenario]
                }
                cells = (error_text(errors[step]) if step in errors else "" for step in steps)
                rows.append((code(scenario), str(seed), *cells))
        header = ("scenario", "seed", *(f"update {step}" for step in steps))
        return "\n".join(
            [
                element("h2", "How far the resumed training is off"),
                self.figure(
                    "divergence",
                    "Largest parameter difference after each update, by scenario and seed",
                    "Logarithmic, with a band for exactly 0. "
                    + "; ".join(f"{scenario}: {evidence(results, scenario)}" for scenario in results.scenarios),
                    "Largest absolute difference of any parameter from the uninterrupted training, after each update "
                    "since the interruption. A logarithmic axis has no place for 0, so zeros lie in a band of their "
                    "own, in a lane for each seed.",
                ),
                folded(
                    "The numbers of this figure", table("Largest parameter difference after each update", header, rows)
                ),
            ]
        )

    def courses(self) -> str:
        """Return learning rates and batches, where they part from the control's."""
        results = self.results
        rates = self.figure(
            "learning-rates",
            "Learning rate after each update, uninterrupted and resumed",
            "Scenarios in which they part: " + listed(results.parted(lambda step: step["learning_rate_error"] == 0)),
            "The learning rate that each update leaves in force for the next. Where a dot lies in a square, the two "
            "agree.",
        )
        batches = self.figure(
            "batches",
            "Examples in the last batch of each update, uninterrupted and resumed",
            "Scenarios in which they part: " + listed(results.parted(lambda step: bool(step["batch_match"]))),
            "Numbers of the examples in the last batch of each update: above the uninterrupted training (control, c), "
            "below the resumed one (r). A frame marks a batch that is another.",
        )
        return "\n".join(
            [
                element("h2", "Learning rates and batches, where they part"),
                rates or element("p", "In every run the learning rates are those of the uninterrupted training."),
                self.rate_table() if rates else "",
                batches or element("p", "In every run the batches are those of the uninterrupted training."),
                self.batch_table() if batches else "",
            ]
        )

    def rate_table(self) -> str:
        """Return the learning rates as a table."""
        rows = [
            (
                code(scenario),
                str(seed),
                str(step["logical_step"]),
                f"{step['expected_learning_rate']:.6g}",
                f"{step['actual_learning_rate']:.6g}",
            )
            for scenario in self.results.parted(lambda step: step["learning_rate_error"] == 0)
            for seed in self.results.seeds
            for step in self.results.traces[seed, scenario]
        ]
        header = ("scenario", "seed", "update", "uninterrupted", "resumed")
        return folded("The numbers of this figure", table("Learning rate after each update", header, rows))

    def batch_table(self) -> str:
        """Return the batches as a table."""
        rows = [
            (
                code(scenario),
                str(seed),
                str(step["logical_step"]),
                listed(step["expected_last_batch_ids"]),
                listed(step["last_batch_ids"]),
                "same" if step["batch_match"] else "another",
            )
            for scenario in self.results.parted(lambda step: bool(step["batch_match"]))
            for seed in self.results.seeds
            for step in self.results.traces[seed, scenario]
        ]
        header = ("scenario", "seed", "update", "uninterrupted", "resumed", "")
        return folded("The numbers of this figure", table("Last batch of each update", header, rows))

    def checkpoints(self) -> str:
        """Return what each checkpoint held, beside what that cost."""
        results = self.results
        rows = []
        for scenario in results.scenarios:
            runs = results.runs(scenario)
            entry = results.summary["scenario_summary"][scenario]
            names = ("min", "median", "max")
            errors = [error_text(entry[f"max_parameter_abs_error_{name}"]) for name in names]
            rate = max(row["learning_rate_error"] for row in runs)
            batch = "yes" if entry["all_next_batch_match"] else "no"
            missing = words(listed(results.omitted(scenario)))
            rows.append((code(scenario), missing, *errors, error_text(rate), batch))
        header = (
            "scenario",
            "left out",
            "smallest",
            "median",
            "largest",
            "learning rate off by",
            "next batch the same",
        )
        return "\n".join(
            [
                element("h2", "What each checkpoint held, and what that cost"),
                self.figure(
                    "checkpoints",
                    "Components in each checkpoint, beside the final parameter differences of the runs resumed from it",
                    "; ".join(
                        f"{scenario}, {left_out(results, scenario)}: {evidence(results, scenario)}"
                        for scenario in results.scenarios
                    ),
                    "Full dot: held. Cross: left out. Dash: not needed between two updates. On the right a sign for "
                    "each seed; exact zeros lie in a band of their own.",
                ),
                folded(
                    "The numbers of this figure",
                    table("Final parameter differences over the seeds, by what was left out", header, rows),
                ),
                element("p", f"Not claimed: {words(listed(results.checkpoint['not_claimed']))}.", class_="quiet"),
            ]
        )

    def environment(self) -> str:
        """Return environment, numeric fingerprint, configuration, and how to run all this again."""
        results = self.results
        nested = ("numeric_pins", "numeric_fingerprint")
        facts = [(words(key), code(value)) for key, value in results.environment.items() if key not in nested]
        pins = [
            (words(key), code("not set" if value is None else value))
            for key, value in results.environment[nested[0]].items()
        ]
        prints = [(words(key), code(value)) for key, value in results.environment[nested[1]].items()]
        settings = [(words(key), code(value)) for key, value in results.summary["configuration"].items()]
        again = (
            "python experiment.py run --output-dir results \\\n"
            f"    --seeds {' '.join(map(str, results.seeds))} \\\n"
            f"    --scenarios {' '.join(results.scenarios)}\n"
            "python verify.py results --no-expected\n"
            "python report.py results"
        )
        return "\n".join(
            [
                element("h2", "Environment, and how to run this again"),
                element(
                    "p",
                    "The same bits are to be expected wherever the numeric fingerprint is the same. The commands use "
                    "the default configuration; what these results were made with is listed last.",
                ),
                element("pre", code(again)),
                table("Environment of the run", ("", "value"), [*facts, *pins]),
                folded(
                    "Numeric fingerprint",
                    table("Digests of small fixed computations", ("operation", "SHA-256"), prints),
                ),
                folded("Configuration", table("Configuration of the training", ("setting", "value"), settings)),
            ]
        )


def make_report(results: Results) -> dict[str, bytes]:
    """Return the files of the report by name: each figure that has something to show as SVG and PNG, and the page."""
    with mpl.rc_context():
        mpl.rcdefaults()  # a matplotlibrc of the user's is for other figures
        mpl.rcParams.update(STYLE)
        report = Report(results)
        page = report.page()
    return report.files | {"index.html": page}


def write_report(directory: Path, files: Mapping[str, bytes]) -> None:
    """Put the files in place one by one, the page last; a figure that an earlier report had and this one has not goes.

    Raises:
        OSError: one cannot be written.
    """
    for name in (f"{figure}{suffix}" for figure in DRAWINGS for suffix in (".svg", ".png")):
        if name not in files:
            (directory / name).unlink(missing_ok=True)
    for name, data in files.items():
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(0o666 & ~UMASK)
            Path(temporary).replace(directory / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


UMASK = os.umask(0)  # the only way to ask for it is to set it
os.umask(UMASK)


# ------------------------------------------------------------------------------------------------ command line


class Parser(argparse.ArgumentParser):
    """Answers bad input with one line."""

    def error(self, message: str) -> NoReturn:
        """Name the culprit and exit with status 2."""
        self.exit(2, f"report.py: error: {verify.one_line(message)}\n")


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        SystemExit: with status 2 and one line on standard error for bad input, with 0 for `--help`.
    """
    parser = Parser(
        prog="report.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("results_dir", metavar="RESULTS_DIR", nargs="?", default="results", help="default: results")
    parser.add_argument("--output-dir", metavar="DIR", default="report", help="default: report")
    parser.add_argument(
        "--schemas", metavar="DIR", default=verify.SCHEMAS, help="what results may be (default: schemas/)"
    )
    return parser.parse_args(argv)


def complain(message: str) -> int:
    """Name the culprit in one line and return the exit status 2."""
    sys.stderr.write(f"report.py: error: {verify.one_line(message)}\n")
    return 2


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, name the page, and return the exit status given in the module's docstring."""
    args = parse_args(argv)
    source, target = Path(args.results_dir), Path(args.output_dir)
    if source.resolve() == target.resolve():
        return complain(f"results and report cannot share the directory {str(source)!r}")
    try:
        results = read_results(source, Path(args.schemas))
        target.mkdir(parents=True, exist_ok=True)  # before the work, should it not be possible
        write_report(target, make_report(results))
    except RefusedError as error:
        sys.stderr.write(f"{error.verdict.report()}\n")
        sys.stderr.write(f"report.py: error: {verify.one_line(str(source))!r} is not drawn: {error}\n")
        return 1
    except verify.CannotJudgeError as error:
        return complain(str(error))
    except OSError as error:
        return complain(f"cannot write to {str(target)!r}: {error.strerror}")
    except KeyboardInterrupt:
        return 130
    print(target / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
