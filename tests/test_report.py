"""The report: it holds the numbers of the files, needs nothing outside itself, and draws whatever verifies."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import html5lib
import matplotlib as mpl
import pytest
from html5lib.html5parser import ParseError
from PIL import Image
from test_environment import Machine

import experiment
import report
import verify

ROOT = Path(__file__).resolve().parent.parent
EXPECTED, SCHEMAS = ROOT / "expected", ROOT / "schemas"

Files = Mapping[str, bytes]
Small = experiment.ExperimentConfig


def parsed(page: bytes) -> ET.Element:
    """Return the tree of a page; the parser is strict, so a page with any error is none."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree: ET.Element = parser.parse(page.decode())
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"
    return tree


def text_of(element: ET.Element) -> str:
    """Return the text in an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def by_id(tree: ET.Element) -> dict[str, ET.Element]:
    """Return the elements that have an id."""
    return {element.attrib["id"]: element for element in tree.iter() if "id" in element.attrib}


def drawn_from(directory: Path) -> tuple[report.Results, Files, ET.Element]:
    """Return results, the report's files, and the page's tree."""
    results = report.read_results(directory, SCHEMAS)
    files = report.make_report(results)
    return results, files, parsed(files["index.html"])


@pytest.fixture(scope="module")
def drawn() -> tuple[report.Results, Files, ET.Element]:
    """The report of the expected set."""
    return drawn_from(EXPECTED)


@pytest.fixture(scope="module")
def results(drawn: tuple[report.Results, Files, ET.Element]) -> report.Results:
    """The expected set."""
    return drawn[0]


@pytest.fixture(scope="module")
def files(drawn: tuple[report.Results, Files, ET.Element]) -> Files:
    """What `report/` holds for the expected set."""
    return drawn[1]


@pytest.fixture(scope="module")
def page(drawn: tuple[report.Results, Files, ET.Element]) -> ET.Element:
    """The page for the expected set."""
    return drawn[2]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> ET.Element:
    """The page for an experiment that never restores a generator."""
    directory = tmp_path_factory.mktemp("failing") / "results"
    table = tuple(replace(c, restore=lambda _job, _held: None) if c.name == "rng" else c for c in experiment.COMPONENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "COMPONENTS", table)
        with pytest.raises(experiment.AcceptanceError):
            experiment.run_experiment(directory, [11])
    return drawn_from(directory)[2]


class TestPage:
    """index.html."""

    def test_it_is_valid(self, page: ET.Element) -> None:
        """A parser of HTML finds no error, and knows what an error is."""
        assert page.find("body/main/section/h1") is not None
        with pytest.raises(ParseError):
            parsed(b"<!DOCTYPE html><title>t</title><p><table></p></table>")

    def test_it_refers_to_nothing_outside_itself(self, page: ET.Element, files: Files) -> None:
        """No script, no frame, no address, no import: every reference is to a place on the page."""
        targets = set(by_id(page))

        for element in page.iter():
            assert element.tag not in {"script", "iframe", "object", "embed", "img", "base", "form", "a"}
            for name, value in element.attrib.items():
                assert not name.startswith("on")
                if name.rpartition("}")[2] in {"href", "src", "srcset", "data", "poster", "action"}:
                    assert value == "data:," or value.removeprefix("#") in targets
                for reference in re.findall(r"url\(([^)]*)\)", value):
                    assert reference.removeprefix("#") in targets
        assert not re.search(rb"://|@import|url\((?!#)", files["index.html"])

    def test_ids_are_unique_and_labels_exist(self, page: ET.Element) -> None:
        """No id stands twice, and whatever is named as a label is there."""
        ids = [element.attrib["id"] for element in page.iter() if "id" in element.attrib]
        labels = [
            element.attrib[key].split() for element in page.iter() for key in element.attrib if "labelledby" in key
        ]

        assert len(ids) == len(set(ids))
        assert set(itertools.chain(*labels)) <= set(ids)

    def test_each_figure_has_words_and_a_table(self, page: ET.Element) -> None:
        """Title, description and caption stand in for each figure, in both its forms, and a table has its numbers."""
        sections = [section for section in page.iter("section") if section.find("figure") is not None]

        figures = [figure for section in sections for figure in section.findall("figure")]
        assert [figure.get("id") for figure in figures] == [f"figure-{name}" for name in report.DRAWINGS]
        for figure in figures:
            assert figure.find("figcaption") is not None
            assert [svg.get("class") for svg in figure.findall("svg")] == ["wide", "narrow"]
            for svg in figure.findall("svg"):
                assert svg.get("role") == "img"
                title, description = (by_id(figure)[id_] for id_ in svg.attrib["aria-labelledby"].split())
                assert (title.tag, description.tag) == ("title", "desc")
                assert min(len(text_of(title)), len(text_of(description))) > 20
        for section in sections:
            assert len(section.findall("details")) == len(section.findall("figure"))
            assert all(details.find(".//td") is not None for details in section.findall("details"))

    def test_its_parts_stand_in_order(self, page: ET.Element) -> None:
        """Verdict, matrix, divergence, learning rates and batches, checkpoints, environment."""
        parts = [[element.get("id", element.tag) for element in section] for section in page.iter("section")]

        assert parts[0][:3] == ["h1", "p", "div"]
        assert [part[1] for part in parts[1:]] == [
            "figure-matrix",
            "figure-divergence",
            "figure-learning-rates",
            "figure-checkpoints",
            "p",
        ]
        assert "figure-batches" in parts[3]
        assert text_of(page.findall(".//section")[5]).startswith("Environment")

    def test_every_color_has_one_for_dark(self, page: ET.Element) -> None:
        """The style sheet answers for each color of each figure, and no color stands for two things."""
        style = text_of(page.findall(".//style")[0])
        used = {
            svg_element.get(key) for svg in page.iter("svg") for svg_element in svg.iter() for key in ("fill", "stroke")
        }

        assert len(set(report.DARK.values())) == len(set(report.LIGHT.values())) == len(report.PALETTE)
        for color in used - {None, "none"}:
            assert color in report.LIGHT.values()
            assert f'[fill="{color}"]{{' in style
            assert f'[stroke="{color}"]{{' in style

    def test_no_seed_is_told_by_color_alone(self) -> None:
        """Any two of thirty seeds differ in marker or dashes, if they are not more than a whole round apart."""
        styles = [report.series_style(n) for n in range(30)]

        for n, m in itertools.combinations(range(30), 2):
            if m - n < len(report.MARKERS) * len(report.DASHES):
                assert (styles[n]["marker"], styles[n]["linestyle"]) != (styles[m]["marker"], styles[m]["linestyle"])


class TestWords:
    """What the page says."""

    def test_the_first_line_is_the_verdict(self, page: ET.Element, failed: ET.Element) -> None:
        """Title and heading begin with PASS or FAIL, and a failure names the checks."""
        lines = [text for text in map(str.strip, failed.itertext()) if text]
        assert lines[0] == "FAIL: checkpoint-resume equivalence"
        assert text_of(failed.findall(".//h1")[0]) == (
            "FAIL: 2 of 7 acceptance checks failed: full_boundary_all_exact, full_mid_accumulation_all_exact"
        )
        assert text_of(page.findall(".//title")[0]) == "PASS: checkpoint-resume equivalence"
        assert text_of(page.findall(".//h1")[0]) == "PASS: all 7 acceptance checks hold"

    def test_each_claim_has_evidence_and_result(self, page: ET.Element, failed: ET.Element) -> None:
        """C1 to C7 stand in the first table with counts, updates and errors of the files, and fail where they fail."""
        rows = [
            [text_of(cell) for cell in row] for row in page.findall(".//section/div/table[@class='claims']/tbody/tr")
        ]
        results = [text_of(row[-1]) for row in failed.findall(".//section/div/table[@class='claims']/tbody/tr")]

        assert [row[0] for row in rows] == [f"C{n}" for n in range(1, 8)]
        assert [row[3] for row in rows] == ["✓ holds"] * 7
        assert rows[0][2] == (
            "5 of 5 runs exact; largest final parameter difference exactly 0 "
            "(full_boundary_all_exact in run-summary.json)"
        )
        assert rows[5][2] == (
            "0 of 5 runs exact; the model first differs after update 9; largest final parameter difference "
            "5.801e-03 to 6.065e-03 (omit_scheduler_all_fail in run-summary.json)"
        )
        assert results == ["✗ FAILS"] * 2 + ["✓ holds"] * 5

    def test_an_unexpected_outcome_says_so(self, failed: ET.Element) -> None:
        """Its cell in the matrix has the word for it, and no other cell has."""
        cells = by_id(failed)

        said = {s: text_of(cells[f"matrix-{s}-11-error"]) == "unexpected" for s in experiment.SCENARIOS}
        assert {scenario for scenario, unexpected in said.items() if unexpected} == {
            "full_boundary",
            "full_mid_accumulation",
        }

    def test_environment_and_configuration_are_complete(self, results: report.Results, page: ET.Element) -> None:
        """Each value of environment.json and of the configuration stands in the last section."""
        cells = [text_of(cell) for cell in page.findall(".//section")[5].iter("td")]

        pins, prints = results.environment["numeric_pins"], results.environment["numeric_fingerprint"]
        plain = [v for k, v in results.environment.items() if k not in {"numeric_pins", "numeric_fingerprint"}]
        values = [*plain, *pins.values(), *prints.values(), *results.summary["configuration"].values()]
        assert cells == [str(value) for value in values]

    def test_the_commands_run_it_again(self, results: report.Results, page: ET.Element) -> None:
        """They name the seeds and scenarios, and the experiment takes them."""
        command = text_of(page.findall(".//pre")[0]).replace("\\ ", "").partition(" python ")[0].split()

        assert command[:3] == ["python", "experiment.py", "run"]
        args = experiment.parse_args(command[2:])
        assert tuple(args.seeds) == tuple(results.seeds)
        assert tuple(args.scenarios) == tuple(results.scenarios)


def markers(figure: ET.Element, id_: str) -> list[tuple[float, float, str]]:
    """Return place and words of each marker of a series."""
    group = by_id(figure)[id_]
    return [(float(use.attrib["x"]), float(use.attrib["y"]), text_of(use)) for use in group.iter("use")]


@pytest.mark.parametrize("form", ["", "-narrow"], ids=["wide", "narrow"])
class TestNumbers:
    """What the figures hold, read back."""

    def test_the_matrix(self, results: report.Results, page: ET.Element, form: str) -> None:
        """Each cell says what the row of results.csv says."""
        cells = by_id(page)

        for (seed, scenario), row in results.rows.items():
            first, error = (text_of(cells[f"matrix{form}-{scenario}-{seed}{part}"]) for part in ("", "-error"))
            assert first == ("exact" if row["exact_resume"] else f"from {row['first_divergent_optimizer_step']}")
            assert float(error) == float(f"{row['max_parameter_abs_error']:.1e}")

    def test_divergence(self, results: report.Results, page: ET.Element, form: str) -> None:
        """A marker for each update names the exact error and stands at its logarithm, zeros in the band below."""
        figure = next(
            svg for svg in page.iter("svg") if svg.get("aria-labelledby", "").startswith(f"divergence{form}-")
        )
        lines = by_id(figure)
        places: dict[str, dict[float, list[float]]] = {scenario: {} for scenario in results.scenarios}

        for (seed, scenario), trace in results.traces.items():
            found = markers(figure, f"divergence{form}-{scenario}-{seed}")
            said = [f"seed {seed}, after update {s['logical_step']}: {s['max_parameter_abs_error']!r}" for s in trace]
            assert [words for _, _, words in found] == said
            for (_, y, _), step in zip(found, trace, strict=True):
                places[scenario].setdefault(step["max_parameter_abs_error"], []).append(y)
            steps = {b[0] - a[0] for a, b in itertools.pairwise(found)}
            assert max(steps) - min(steps) < 0.03

        for scenario, found_at in places.items():
            tenth, hundredth = (
                float(next(lines[f"divergence{form}-{scenario}-1e{power}"].iter("path")).attrib["d"].split()[2])
                for power in (-1, -2)
            )
            zeros = found_at.pop(0.0, [])
            for error, ys in found_at.items():
                assert ys == pytest.approx([tenth + (hundredth - tenth) * (-1 - math.log10(error))] * len(ys), abs=0.03)
            for y in zeros:
                assert all(y > other + 10 for ys in found_at.values() for other in [*ys, hundredth])

    def test_the_interruption_stands_where_it_was(self, results: report.Results, page: ET.Element, form: str) -> None:
        """Between two updates at the last one before it, in a window by its micro-steps after that."""
        accumulation = results.summary["configuration"]["accumulation_steps"]

        for scenario in results.scenarios:
            row = results.rows[11, scenario]
            path = by_id(page)[f"divergence{form}-{scenario}-interruption"].find("path")
            (first, _, _), (second, _, _) = markers(page, f"divergence{form}-{scenario}-11")[:2]
            assert path is not None
            x = float(path.attrib["d"].split()[1])
            done = row["interrupt_optimizer_step"] + row["interrupt_microstep_in_accumulation"] / accumulation
            assert (first - x) / (second - first) == pytest.approx(6 - done, abs=0.01)

    def test_learning_rates(self, results: report.Results, page: ET.Element, form: str) -> None:
        """Control and resumed markers name the rates of the traces, in the two scenarios where they part."""
        drawn = {id_ for id_ in by_id(page) if re.fullmatch(rf"learning-rates{form}-(?!narrow).*-control", id_)}

        assert drawn == {f"learning-rates{form}-{s}-control" for s in ("model_optimizer_only", "omit_scheduler")}
        for scenario in ("model_optimizer_only", "omit_scheduler"):
            heights: dict[float, set[float]] = {}
            for who, key in (("control", "expected_learning_rate"), ("resumed-1", "actual_learning_rate")):
                found = markers(page, f"learning-rates{form}-{scenario}-{who}")
                trace = results.traces[11, scenario]
                assert [w for _, _, w in found] == [f"after update {s['logical_step']}: {s[key]!r}" for s in trace]
                for (_, y, _), step in zip(found, trace, strict=True):
                    heights.setdefault(step[key], set()).add(y)
            assert all(len(ys) == 1 for ys in heights.values())
            assert sorted(heights, reverse=True) == sorted(heights, key=lambda rate: min(heights[rate]))

    def test_batches(self, results: report.Results, page: ET.Element, form: str) -> None:
        """Each cell holds the ids of the batch, in both scenarios where batches part."""
        cells = by_id(page)

        for scenario in ("model_optimizer_only", "omit_stream"):
            for seed in results.seeds:
                for step in results.traces[seed, scenario]:
                    gid = f"batches{form}-{scenario}-{seed}-{step['logical_step']}"
                    for part, key in (("", "expected_last_batch_ids"), ("-resumed", "last_batch_ids")):
                        lines = [text_of(cells[f"{gid}{part}-{n}"]) for n in (1, 2)]
                        assert " ".join(lines) == " ".join(map(str, step[key]))

    def test_what_it_cost(self, results: report.Results, page: ET.Element, form: str) -> None:
        """Beside each checkpoint stands the final error of each seed, further right where it is larger, 0 leftmost."""
        places: dict[float, list[float]] = {}

        for (seed, scenario), row in results.rows.items():
            [(x, _, words)] = markers(page, f"checkpoints{form}-{scenario}-{seed}")
            assert words == f"seed {seed}: {row['max_parameter_abs_error']!r}"
            places.setdefault(row["max_parameter_abs_error"], []).append(x)
        assert all(max(places[a]) <= min(places[b]) + 0.02 for a, b in itertools.pairwise(sorted(places)))


class TestCheckpoints:
    """What each checkpoint held."""

    @pytest.mark.parametrize("scenario", experiment.SCENARIOS)
    def test_it_is_what_the_experiment_saves(self, results: report.Results, scenario: str) -> None:
        """A component is shown as held when the payload has it; only gradients between updates are not needed."""
        payload = experiment.evaluate_scenario(11, scenario)["payload_keys"]

        for component in (c.name for c in experiment.COMPONENTS):
            state = report.held(results, scenario, component)
            assert (state == "held") == (component in payload)
            assert (state == "not needed") == (
                component == "gradients" and not scenario.endswith(("mid_accumulation", "gradients"))
            )


class TestFiles:
    """The figures as files."""

    def test_there_is_an_svg_and_a_png_of_each(self, files: Files) -> None:
        """Beside the page stand two files for each figure, and nothing else."""
        assert set(files) == {"index.html"} | {f"{n}{suffix}" for n in report.DRAWINGS for suffix in (".svg", ".png")}

    @pytest.mark.parametrize("name", report.DRAWINGS)
    def test_an_svg_stands_alone(self, files: Files, name: str) -> None:
        """It is XML with its own ground, colors for dark, and no reference to elsewhere."""
        text = files[f"{name}.svg"].decode()
        root = ET.fromstring(text)  # noqa: S314 -- the project's own

        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme:dark" in text
        assert text.replace("http://www.w3.org/2000/svg", "").find("://") == -1
        ground = [root[3].attrib[key] for key in ("x", "y", "width", "height", "fill")]
        assert ground == [*root.attrib["viewBox"].split(), report.LIGHT["paper"]]

    @pytest.mark.parametrize("name", report.DRAWINGS)
    def test_a_png_has_the_same_shape(self, files: Files, name: str) -> None:
        """It has two pixels for each of the SVG, and more than one color."""
        root = ET.fromstring(files[f"{name}.svg"].decode())  # noqa: S314 -- the project's own
        with Image.open(io.BytesIO(files[f"{name}.png"])) as picture:
            size, colors = picture.size, picture.convert("RGB").getcolors(10**6) or []

        assert list(size) == pytest.approx([2 * float(root.attrib[key]) for key in ("width", "height")], abs=1)
        assert len(colors) > 5

    @pytest.mark.parametrize("name", ["matrix", "divergence"])
    def test_the_pictures_of_the_readme_are_current(self, files: Files, name: str) -> None:
        """docs/ holds what the report of expected/ draws; `make pictures` renews it."""
        assert (ROOT / "docs" / f"{name}.svg").read_bytes() == files[f"{name}.svg"]


RUNS: dict[str, tuple[list[int], list[str], experiment.ExperimentConfig]] = {
    "one seed and one scenario": ([2**32 - 1], ["omit_scheduler"], Small()),
    "everything exact": ([3], ["full_mid_accumulation", "full_boundary"], Small()),
    "no update after the resume": ([3], ["full_boundary"], Small(total_optimizer_steps=6, boundary_interrupt_step=6)),
    "many seeds": (list(range(11)), ["omit_stream"], Small(total_optimizer_steps=7)),
    "many updates and rates, large batches": (
        [1],
        ["omit_stream", "model_optimizer_only"],
        Small(total_optimizer_steps=34, boundary_interrupt_step=2, batch_size=16, scheduler_step_size=2),
    ),
    "a rate of 0": ([1], ["model_optimizer_only"], Small(learning_rate=0.0)),
}


@pytest.mark.parametrize("name", RUNS)
def test_other_results_are_drawn_as_well(tmp_path: Path, name: str) -> None:
    """Other seeds, scenarios and configurations give a valid page with a cell for each run."""
    seeds, scenarios, cfg = RUNS[name]
    try:
        experiment.run_experiment(tmp_path / "results", seeds, scenarios, cfg)
    except experiment.AcceptanceError:
        status = "FAIL"
    else:
        status = "PASS"

    _, files, page = drawn_from(tmp_path / "results")

    assert text_of(page.findall(".//h1")[0]).startswith(f"{status}: ")
    assert {f"matrix-{scenario}-{seed}" for scenario in scenarios for seed in seeds} <= set(by_id(page))
    assert {"matrix.svg", "divergence.png", "checkpoints.svg"} <= set(files)


class TestScale:
    """The axis of errors."""

    @pytest.mark.parametrize("errors", [[], [0.0], [1e-9], [1e-300, 1e300, 0.0], [0.1, 0.2]])
    def test_zero_is_below_everything_and_nothing_is_outside(self, errors: list[float]) -> None:
        """Places grow with the errors and lie on the axis, those of 0 in the band; at most eight ticks are shown."""
        scale = report.ErrorScale(errors)
        places = [scale.place(error) for error in sorted([0.0, *errors])]

        assert places == sorted(places)
        assert all(scale.bottom < scale.place(0.0, lane) < scale.edge < scale.low for lane in (0.0, 0.5, 1.0))
        assert all(scale.bottom < place < scale.top for place in places)
        assert 2 <= len(scale.ticks()) <= 8


class TestCommandLine:
    """`python report.py`."""

    def test_the_same_results_give_the_same_bytes_without_torch(self, tmp_path: Path, files: Files) -> None:
        """Another process, hash seed, time zone and directory: same files, and neither torch nor the experiment."""
        shutil.copytree(EXPECTED, tmp_path / "results")
        code = (
            "import sys, report; status = report.main([]); "
            "sys.exit(status or 10 * bool({'torch', 'experiment'} & set(sys.modules)))"
        )
        environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}

        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env=environment | {"MPLCONFIGDIR": mpl.get_configdir()},
            capture_output=True,
            text=True,
            check=False,
        )

        assert (done.returncode, done.stdout, done.stderr) == (0, "report/index.html\n", "")
        assert {path.name: path.read_bytes() for path in (tmp_path / "report").iterdir()} == files

    def test_results_that_do_not_verify_are_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The verdict is shown, the status is 1, and an earlier report stays as it was."""
        spoilt = Path(shutil.copytree(EXPECTED, tmp_path / "results"))
        summary = json.loads((spoilt / "run-summary.json").read_text(encoding="utf-8"))
        summary["scenario_summary"]["omit_rng"]["exact_runs"] = 1
        (spoilt / "run-summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        (tmp_path / "report").mkdir()
        (tmp_path / "report" / "index.html").write_text("earlier", encoding="utf-8")

        status = report.main([str(spoilt), "--output-dir", str(tmp_path / "report")])

        out, error = capsys.readouterr()
        lines = error.splitlines()
        assert (status, out) == (1, "")
        assert "run-summary.json /scenario_summary/omit_rng/exact_runs" in error
        assert lines[-1].startswith("report.py: error: ")
        assert lines[-2].startswith("FAILED: ")
        assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]
        assert (tmp_path / "report" / "index.html").read_text(encoding="utf-8") == "earlier"

    @pytest.mark.parametrize("name", verify.FILES)
    def test_a_missing_file_is_a_refusal(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
        """Whichever it is, it is named, and nothing is drawn."""
        spoilt = Path(shutil.copytree(EXPECTED, tmp_path / "results"))
        (spoilt / name).unlink()

        assert report.main([str(spoilt), "--output-dir", str(tmp_path / "report")]) == 1
        assert f"{name}: is missing" in capsys.readouterr().err.replace(f"{name} :", f"{name}:")
        assert not (tmp_path / "report").exists()

    def test_what_cannot_be_read_or_written_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """No results, no schemas, one directory for both, a file in the way of the report: one line, and status 2."""
        (tmp_path / "in the way").touch()
        bad = {
            "no-such": [str(tmp_path / "no-such")],
            "no-schemas": [str(EXPECTED), "--schemas", str(tmp_path / "no-schemas")],
            "share": [str(EXPECTED), "--output-dir", f"{EXPECTED}/../expected"],
            "in the way": [str(EXPECTED), "--output-dir", str(tmp_path / "in the way")],
        }

        for culprit, args in bad.items():
            status = report.main(args)
            out, error = capsys.readouterr()
            assert (status, out, error.count("\n")) == (2, "", 1)
            assert error.startswith("report.py: error: ")
            assert culprit in error

    def test_an_unknown_option_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        """One line on standard error, and status 2."""
        with pytest.raises(SystemExit) as stop:
            report.main(["--color"])

        assert stop.value.code == 2
        assert capsys.readouterr().err == "report.py: error: unrecognized arguments: --color\n"

    def test_a_figure_that_no_longer_exists_goes(self, tmp_path: Path) -> None:
        """A report without batches to show leaves none of an earlier one, and nothing of anybody else's is touched."""
        for name in ("batches.svg", "notes.txt"):
            (tmp_path / name).write_text("earlier", encoding="utf-8")

        report.write_report(tmp_path, {"index.html": b"page"})

        assert {path.name for path in tmp_path.iterdir()} == {"index.html", "notes.txt"}


class TestMake:
    """`make report`, with a stand-in for Python."""

    @pytest.fixture
    def machine(self, tmp_path: Path) -> Machine:
        """A machine that is set up."""
        machine = Machine(tmp_path)
        machine.make("setup")
        machine.asked()
        return machine

    def test_results_are_made_when_missing(self, machine: Machine) -> None:
        """They are drawn after the experiment ran, even if it says FAIL, and drawn alone when there are some."""
        run, draw = "experiment.py run --output-dir results", "report.py results"

        assert machine.make("report", failing="experiment.py").returncode == 0
        assert machine.asked() == [run, draw]
        (machine.project / "results").mkdir()
        (machine.project / "results" / "run-summary.json").touch()
        assert machine.make("report").returncode == 0
        assert machine.asked() == [draw]

    def test_other_results_are_drawn_when_named(self, machine: Machine) -> None:
        """RESULTS= names them, ARGS= hands on, and nothing is run."""
        machine.make("report", "RESULTS=some where", "ARGS=--output-dir there")

        assert machine.asked() == ["report.py some where --output-dir there"]

    def test_a_refusal_is_handed_on(self, machine: Machine) -> None:
        """The status of the target is that of the report."""
        assert machine.make("report", failing="report.py").returncode != 0
