"""The report shown on the terminal, as Markdown and as a page."""

import copy
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import html5lib
import jsonschema
import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from resume_audit.graph.difference import Suspect
from resume_audit.graph.nodes import Label
from resume_audit.kinds import KINDS, classify, kind_of
from resume_audit.render import to_html, to_markdown
from resume_audit.render.grid import matrix_rows
from resume_audit.render.terminal import MOST_COLUMNS, write
from resume_audit.render.words import families, patterns, visible

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "audit.schema.json").read_text(encoding="utf-8"))
HOSTILE = '<img src=x onerror="alert(1)">`*_[x](http://evil.example)\n\x1b[2J\u202e|</code>\ud800\x00'
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def on_terminal(report: reports.Report, *, width: int = 100, colour: bool = False) -> str:
    """Return what a terminal of that width would get."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    write(report, console)
    return out.getvalue()


def prose(text: str) -> str:
    """Return text without the line breaks of a narrow terminal."""
    return " ".join(text.split())


def parsed(page: str) -> ET.Element:
    """Return a page's tree; a page that is not valid HTML fails here."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), strict=True)
    tree: ET.Element = parser.parse(page)
    return tree


def one(tree: ET.Element, path: str) -> ET.Element:
    """Return what is first found at a path; nothing fails here."""
    found = tree.find(path)
    assert found is not None
    return found


def made_hostile(value: Any) -> Any:
    """Return a report in which every text that may come from the job is hostile."""
    kept = {"verdict", "kind", "outcome", "what", "phase", "uninterrupted", "resumed", "job"}
    if isinstance(value, dict):
        return {
            HOSTILE if key == "loss" else key: item if key in kept and item else made_hostile(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [made_hostile(item) for item in value]
    return HOSTILE if isinstance(value, str) and value != "inf" else value


every_report = pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL.keys())


class TestSchema:
    """`schemas/audit.schema.json`."""

    @every_report
    def test_admits_what_a_report_can_say(self, report: reports.Report) -> None:
        """Each of the reports that are rendered here is a report."""
        jsonschema.Draft202012Validator(SCHEMA).validate(report)

    def test_is_a_schema(self) -> None:
        """The schema keeps to draft 2020-12."""
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_closes_and_describes_every_object(self) -> None:
        """No object takes a property that the schema does not describe."""
        open_or_mute = []

        def visit(schema: object, path: str) -> None:
            if isinstance(schema, list):
                for number, item in enumerate(schema):
                    visit(item, f"{path}/{number}")
            elif isinstance(schema, dict):
                if "description" in schema and schema.get("type") == "object" and "required" in schema:
                    described = all("description" in item or "$ref" in item for item in schema["properties"].values())
                    if schema.get("additionalProperties") is not False or not described:
                        open_or_mute.append(path)
                    if not {"where"} >= set(schema["properties"]) - set(schema["required"]):
                        open_or_mute.append(f"{path} (optional properties)")
                for key, item in schema.items():
                    visit(item, f"{path}/{key}")

        visit(SCHEMA, "#")

        assert open_or_mute == []

    @pytest.mark.parametrize(
        ("of", "change"),
        [
            ("exact", {"error": {"phase": "save"}}),
            ("exact", {"resumes": []}),
            ("exact", {"extra": 1}),
            ("exact", {"verdict": "DIVERGES"}),
            ("diverges", {"verdict": "EXACT"}),
            ("error", {"error": None}),
            ("abstain", {"baseline": {"repeatable": True, "first_difference": None}}),
        ],
    )
    def test_refuses_a_report_at_odds_with_its_verdict(self, of: str, change: dict[str, Any]) -> None:
        """A verdict and what carries it belong together."""
        report = reports.ALL[of] | change

        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(report)


class TestTerminal:
    """The report on one screen."""

    @every_report
    def test_begins_with_the_verdict(self, report: reports.Report) -> None:
        """The first word on the screen is the verdict."""
        assert on_terminal(report).startswith(report["verdict"])

    @every_report
    def test_fits_one_screen(self, report: reports.Report) -> None:
        """A report takes no more lines than a terminal of 100 columns shows at once."""
        assert len(on_terminal(report).splitlines()) <= 40

    def test_tells_the_proof(self) -> None:
        """The lost thing, its two values, both moments and the drift are said in sentences."""
        text = prose(on_terminal(reports.DIVERGES))

        assert "Restoring ema.updates (0 after the resume, 5 before) makes the resumed run exact." in text
        assert "Lost at the load after step 5, first visible at step 7, in model and metrics.loss." in text
        assert "the parameters differ by up to 0.1 and loss by 0.00321" in text
        assert prose(KINDS["ema"].remedy) in text

    def test_says_why_nothing_is_proven(self) -> None:
        """Without a proof the reason and the suspects stand in its place."""
        text = prose(on_terminal(reports.SUSPECTED))

        assert "Nothing is proven: `loader` is suspended" in text
        assert "loader.cursor (0 after the resume, 20 before)" in text
        assert "share their storage in the uninterrupted run and are separate in the resumed one" in text
        assert "It heals: after step 7" in text

    def test_suspects_gradients_last(self) -> None:
        """Left-over gradients, which differ after nearly every resume, never lead the headline."""
        gradient = {"path": "model.weight.grad", "kind": "gradients", "uninterrupted": "[1.0]", "resumed": "None"}
        found = reports.diagnosis(suspects=[gradient, reports.CURSOR])
        report = reports.report(verdict="DIVERGES", resumes=[reports.diverging(5, diagnosis=found)])

        assert "Lost, not proven: loader.cursor and model.weight.grad." in prose(on_terminal(report))

    def test_leads_with_what_is_out_of_reach_where_only_gradients_differ(self) -> None:
        """Gradients explain less than what nobody could look into."""
        gradient = {"path": "model.weight.grad", "kind": "gradients", "uninterrupted": "[1.0]", "resumed": "None"}
        beyond = [{"path": "rows", "why": "an object of a C extension, which a walk cannot enter."}]
        for suspects in ([], [gradient]):
            found = reports.diagnosis(suspects=suspects, out_of_reach=beyond)
            report = reports.report(verdict="DIVERGES", resumes=[reports.diverging(5, diagnosis=found)])

            assert on_terminal(report).startswith("DIVERGES  Lost, out of reach: rows.\n")

    def test_says_that_nothing_explains_it(self) -> None:
        """Where neither a suspect nor anything out of reach is known, the headline says so."""
        text = prose(on_terminal(reports.UNEXPLAINED))

        assert text.startswith("DIVERGES The resume after step 5 differs, and nothing that was found explains it.")

    def test_leads_with_the_proof_beside_an_empty_load(self) -> None:
        """What is proven says more than that the load changed nothing; both are told."""
        text = prose(on_terminal(reports.BESIDE_PROOF))

        assert text.startswith("DIVERGES Lost: ema.updates, proven.")
        assert text.count("The load left every component as the factory made it.") == 1
        assert prose(on_terminal(reports.VACUOUS)).count("The load left every component as the factory made it.") == 1

    def test_draws_a_family_together(self) -> None:
        """Paths that differ in their indices alone are told once, with their number and the values of the first."""
        text = prose(on_terminal(reports.FAMILIES))
        values = f"{reports.moment('')['resumed']} after the resume, {reports.moment('')['uninterrupted']} before"

        assert "Lost: opt_g.state[gen.*].exp_avg, opt_g.state[gen.*].exp_avg_sq, opt_d.state[disc.*].exp_avg" in text
        assert f"Restoring opt_g.state[gen.*].exp_avg (4 entries, the first {values}), opt_g" in text
        assert (
            "opt_d.state[disc.*].exp_avg, opt_d.state[disc.*].exp_avg_sq and opt_d.state[disc.*].step together" in text
        )
        assert "Differs too, without effect: gen.*.weight.grad." in text
        assert len(on_terminal(reports.FAMILIES).splitlines()) <= 40

    def test_tells_what_a_save_changes(self) -> None:
        """A save that disturbs is no loss at a load: what it changes leads, with the values around the save."""
        text = prose(on_terminal(reports.DISTURBED))

        assert text.startswith("DIVERGES Saving after step 5 changes rng[random].")
        assert "First visible at step 6, in rng." in text
        assert "The save changes rng[random] (state 2 after the save, state 1 before)." in text
        assert "What to do (saving): Let the save only read" in text
        assert "Lost" not in text
        assert "before the save" in [cell.text for cell in parsed(to_html(reports.DISTURBED)).iter(f"{XHTML}th")]

    def test_does_not_show_one_value_twice(self) -> None:
        """Where both values read alike, as a list and a deque do, that they differ is said in words."""
        entry = {"path": "guard.recent", "kind": "other", "uninterrupted": "[0.5, 0.25]", "resumed": "[0.5, 0.25]"}
        lost = reports.diverging(5, diagnosis=reports.diagnosis(proven=[entry]))
        text = prose(on_terminal(reports.report(verdict="DIVERGES", resumes=[lost])))

        assert "Restoring guard.recent (not the same, though both are shown as [0.5, 0.25]) makes" in text

    def test_tells_an_object_from_a_storage(self) -> None:
        """Tensors share a storage; lists, dicts and other objects are one."""
        pair = {"paths": ["ranks[1].stats", "ranks[0].stats"], "uninterrupted": "separate", "resumed": "shared"}
        entry = reports.one_object("ranks[1].stats", "ranks[0].stats")
        lost = reports.diverging(5, diagnosis=reports.diagnosis(proven=[entry], aliasing=[pair]))
        text = prose(on_terminal(reports.report(verdict="DIVERGES", resumes=[lost])))

        assert "Restoring ranks[1].stats makes the resumed run exact." in text
        one = (
            "ranks[1].stats and ranks[0].stats are separate in the uninterrupted run and are one object in the resumed"
        )
        assert one in text
        assert "opt_d.state[disc.*].step and opt_g.state[gen.*].step, in 4 places, are separate" in prose(
            on_terminal(reports.FAMILIES)
        )

    @every_report
    @pytest.mark.parametrize("colour", [False, True])
    @pytest.mark.parametrize("width", [40, 100])
    def test_leaves_no_blanks_at_the_ends_of_lines(self, report: reports.Report, width: int, colour: bool) -> None:
        """What is written to a file has no trailing blanks, wherever its lines break."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(report, width=width, colour=colour))

        assert [line for line in text.splitlines() if line != line.rstrip()] == []

    def test_tells_a_chain(self) -> None:
        """A chain names all its interruptions, and the load at which something was lost."""
        chains = [reports.diverging(k, moments=None) for k in (1,)] + [
            reports.diverging(*c) for c in ((1, 3), (1, 3, 5))
        ]
        text = prose(on_terminal(reports.report(verdict="DIVERGES", resumes=chains)))

        assert "The same holds for interruptions after steps 1 and then 3 and after steps 1, 3 and then 5." in text
        alone = prose(on_terminal(reports.report(verdict="DIVERGES", resumes=chains[1:])))
        assert "Interrupted after steps 1 and then 3: lost at the load after step 3, first visible at step 5" in alone
        assert "The same holds for the interruption after steps 1, 3 and then 5." in alone

    @pytest.mark.parametrize(
        ("outcomes", "told"), [(["model"], "model already differs."), (["a", "b"], "a and b already differ.")]
    )
    def test_says_what_differs_right_after_loading(self, outcomes: list[str], told: str) -> None:
        """One thing differs, several differ."""
        lost = reports.diverging(5, first_divergence={"step": 0, "outcomes": outcomes})

        assert f"Right after loading, {told}" in prose(on_terminal(reports.report(verdict="DIVERGES", resumes=[lost])))

    def test_lists_apart_what_has_no_effect_and_what_is_out_of_reach(self) -> None:
        """State that differs to no effect is told, but not among the lost."""
        text = prose(on_terminal(reports.DIVERGES))

        assert "without effect: loader.started_at." in text
        assert "Out of reach: lock, a lock cannot be entered." in text

    def test_shows_the_matrix(self) -> None:
        """Each component has a row with the step at which its omission first shows."""
        rows = {line.split("  ")[0]: line.split() for line in on_terminal(reports.DIVERGES).splitlines()}

        assert rows["model"] == ["model", "2", "6"]
        assert rows["optimizer"] == ["optimizer", "3", "heals", "2", "error"]
        assert rows["ema"] == ["ema", "inert", "7"]

    def test_draws_a_wide_matrix_together(self) -> None:
        """A matrix of many interruption points has one character for each, and their key."""
        points = range(1, MOST_COLUMNS + 2)
        cells = [reports.cell("model", p, "inert" if p == 1 else "diverges", first_step=p + 1) for p in points]
        wide = reports.report(matrix=cells, resumes=[reports.resume(p) for p in points])

        text = on_terminal(wide)

        assert f"·{'1' * MOST_COLUMNS}" in text
        assert "=" * len(points) in text
        assert "1 to 9 = first shows that many steps after the interruption" in prose(text)

    def test_says_once_what_many_interruptions_have_lost_alike(self) -> None:
        """Resumes that lost the same are one finding."""
        report = reports.report(verdict="DIVERGES", resumes=[reports.diverging(k) for k in (1, 2, 3, 5)])

        text = prose(on_terminal(report))

        assert text.count("Restoring") == 1
        assert "The same holds for interruptions after steps 2, 3 and 5." in text

    def test_ends_with_the_jobs_own_traceback(self) -> None:
        """Of an error the job's own traceback is the last thing on the screen."""
        assert on_terminal(reports.ERROR).endswith(reports.ERROR["error"]["traceback"])

    def test_tells_which_resumes_failed(self) -> None:
        """A resume that raised is told with the point at which it was interrupted."""
        text = prose(on_terminal(reports.FAILED))

        assert "The resume after step 1 could not be completed." in text
        assert "The same holds for the interruption after step 5." in text

    def test_colour_changes_no_word(self) -> None:
        """With colour a terminal gets the same words."""
        coloured = on_terminal(reports.DIVERGES, colour=True)

        assert coloured != on_terminal(reports.DIVERGES)
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == on_terminal(reports.DIVERGES)


class TestMarkdown:
    """What one pastes into an issue."""

    @every_report
    def test_begins_with_the_verdict(self, report: reports.Report) -> None:
        """The heading has the verdict."""
        assert to_markdown(report).startswith(f"### resume_audit: {report['verdict']}\n")

    def test_tells_the_proof_and_how_to_see_it_again(self) -> None:
        """The sentence of the proof and a command to repeat it are in it."""
        text = to_markdown(reports.DIVERGES)

        assert "Restoring `ema.updates` (`0` after the resume, `5` before) makes the resumed run exact." in text
        assert "\n```\nresume-audit train_job.py --seed 11 --steps 8 --interrupt 1,5\n```\n" in text

    def test_has_the_matrix_as_a_table(self) -> None:
        """All rows of the table have the same number of cells."""
        rows = [line for line in to_markdown(reports.DIVERGES).splitlines() if line.startswith("|")]

        assert "| `optimizer` | 3 heals 2 | error |" in rows
        assert {row.count("|") for row in rows} == {4}


class TestPage:
    """The self-contained page."""

    @every_report
    def test_is_valid_html(self, report: reports.Report) -> None:
        """A parser that forgives nothing takes it."""
        assert one(parsed(to_html(report)), f".//{XHTML}h1").text == report["verdict"]

    @every_report
    def test_needs_nothing_else(self, report: reports.Report) -> None:
        """No script, and no reference to anything outside of it."""
        page = to_html(report)
        tree = parsed(page)

        assert {e.tag.rpartition("}")[2] for e in tree.iter()}.isdisjoint({"script", "link", "img", "iframe", "use"})
        assert not [n for e in tree.iter() for n in e.attrib if n in ("src", "href", "style") or n.startswith("on")]
        assert "url(" not in page
        assert "@import" not in page

    def test_says_in_words_what_colour_says(self) -> None:
        """Every cell of the heat map has its meaning as text and as a title."""
        cells = parsed(to_html(reports.DIVERGES)).findall(f".//{XHTML}table[@class='heat']//{XHTML}td")

        assert [(c.get("class"), c.text) for c in cells if c.get("class") == "heals"] == [("heals", "3 heals 2")]
        assert len(cells) == 8
        assert all(cell.text and cell.get("title") for cell in cells)

    def test_draws_divergence_with_zero_as_zero(self) -> None:
        """The plot has a line for exact zero, on which the points before the divergence lie."""
        svg = one(parsed(to_html(reports.DIVERGES)), f".//{SVG}svg")
        axis = [text for text in svg.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
        labels = {text.text: float(text.get("y", "nan")) for text in axis}
        heights = [float(dot.get("cy", "nan")) for dot in svg.iter(f"{SVG}circle")]

        assert heights[:2] == [labels["0"] - 4] * 2
        assert len(heights) == 4
        assert heights[3] == labels["1e-1"] - 4
        assert heights[2] > heights[3]

    def test_describes_the_plot_in_words(self) -> None:
        """The plot is an image with a title, a description and its numbers as a table."""
        tree = parsed(to_html(reports.DIVERGES))
        svg = one(tree, f".//{SVG}svg")
        named = svg.get("aria-labelledby", "").split()

        assert svg.get("role") == "img"
        assert [one(svg, f".//*[@id='{name}']").tag for name in named] == [f"{SVG}title", f"{SVG}desc"]
        assert "after step 5: 0.01 at step 7, 0.1 at step 8" in "".join(one(svg, f"{SVG}desc").itertext())
        assert len(list(one(tree, f".//{XHTML}details//{XHTML}tbody"))) == 4

    def test_shows_what_cannot_be_subtracted(self) -> None:
        """A difference of `inf` lies on a line of its own."""
        broken = reports.diverging(5)
        broken["trace"][-1]["parameters"] = "inf"
        page = to_html(reports.report(verdict="DIVERGES", resumes=[broken]))

        assert "not comparable" in [text.text for text in parsed(page).iter(f"{SVG}text")]

    def test_gives_both_values_of_each_suspect(self) -> None:
        """Proof and suspects stand in a table with both values in full."""
        page = parsed(to_html(reports.SUSPECTED))
        rows = [["".join(cell.itertext()) for cell in row] for row in page.iter(f"{XHTML}tr")]

        assert ["loader.cursor", "suspect", "20", "0"] in rows

    def test_says_where_two_runs_were_compared(self) -> None:
        """State that is compared elsewhere than right after loading is told with the place."""
        entry = reports.UPDATES | {"where": "train() started anew"}
        lost = reports.diverging(5, diagnosis=reports.diagnosis(proven=[entry]))
        report = reports.report(verdict="DIVERGES", resumes=[lost])
        cells = ["".join(cell.itertext()) for cell in parsed(to_html(report)).iter(f"{XHTML}td")]

        assert "proven, seen in train() started anew" in cells
        assert "(0 after the resume, 5 before; seen in train() started anew)" in prose(on_terminal(report))

    def test_is_light_and_dark(self) -> None:
        """The page follows the reader's preference."""
        assert "color-scheme: light dark" in to_html(reports.EXACT)
        assert "prefers-color-scheme: dark" in to_html(reports.EXACT)


class TestHostileNames:
    """A job's names and values are data, wherever they come out."""

    @every_report
    def test_cannot_become_markup(self, report: reports.Report) -> None:
        """The page has the same elements, whatever the job's names are."""

        def tags(page: str) -> set[str]:
            return {element.tag for element in parsed(page).iter()}

        assert tags(to_html(made_hostile(report))) == tags(to_html(report))

    @every_report
    def test_cannot_steer_a_terminal(self, report: reports.Report) -> None:
        """No control character reaches the terminal but the line breaks of the report."""
        text = on_terminal(made_hostile(report))

        assert all(c.isprintable() or c == "\n" for c in text)

    @every_report
    def test_cannot_end_a_line_of_markdown(self, report: reports.Report) -> None:
        """Hostile names leave the report's own lines and tables as they are, but for the traceback's."""
        lines = [line for line in to_markdown(made_hostile(report)).splitlines() if line.startswith("|")]

        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} <= {4}
        assert "\n[2J" not in to_markdown(made_hostile(report))

    @every_report
    def test_can_be_written_to_a_file(self, report: reports.Report) -> None:
        """Lone surrogates do not keep a report from being encoded."""
        hostile = made_hostile(report)

        assert to_html(hostile).encode()
        assert to_markdown(hostile).encode()

    def test_stay_readable(self) -> None:
        """What is made visible is written as Python writes it; other scripts stay as they are."""
        assert visible("a\nb\x1b\u202e größe 数") == "a\\nb\\x1b\\u202e größe 数"


class TestRendering:
    """All renderers alike."""

    @pytest.mark.parametrize("render", [to_html, to_markdown, on_terminal])
    @every_report
    def test_is_repeatable_and_changes_nothing(
        self, report: reports.Report, render: Callable[[reports.Report], str]
    ) -> None:
        """The same report gives the same text, and is the same afterwards."""
        before = copy.deepcopy(report)

        assert render(report) == render(report)
        assert report == before

    def test_rows_of_the_matrix_begin_with_nothing_left_out(self) -> None:
        """The full checkpoint is the row to hold the others against."""
        points, rows = matrix_rows(reports.DIVERGES)

        assert points == [1, 5]
        assert rows[0][0] == "(nothing left out)"
        assert [cell.word for cell in rows[0][1] if cell] == ["exact", "7"]


class TestFamilies:
    """Paths that differ in their indices alone."""

    @pytest.mark.parametrize(
        ("paths", "told"),
        [
            (["a.b"], ["a.b"]),
            (["a[0]", "a[1]"], ["a[0]", "a[1]"]),
            (["a[0]", "a[1]", "a[2]"], ["a[*]"]),
            (["s[m.0.w].x", "s[m.0.b].x", "s[m.2.w].x"], ["s[m.*].x"]),
            (["s[m.0.w].x", "t", "s[m.0.b].x", "s[m.0.c].x"], ["s[m.0.*].x", "t"]),
            (["m.0.w", "m.1.w", "m.2.w", "m.2.b"], ["m.*.w", "m.2.b"]),
            (["m.0.w[1]", "m.1.w[1]", "m.2.w[1]"], ["m.*.w[1]"]),
            (["k['a.0']", "k['a.1']", "k['a.2']"], ["k[*]"]),
            (["a", "a", "a"], ["a"]),
        ],
    )
    def test_have_one_name(self, paths: list[str], told: list[str]) -> None:
        """Three or more are told by what they have in common, with a star for the rest."""
        assert patterns(paths) == told

    @given(st.lists(st.text("ab.0[]'*\\", max_size=9)))
    def test_lose_no_path(self, paths: list[str]) -> None:
        """Every path is in one family."""
        assert sorted(n for family in families(paths) for n in family) == list(range(len(paths)))
        assert len(patterns(paths)) <= len(set(paths))


class TestAdvice:
    """Kinds of state."""

    def test_covers_the_kinds_of_the_schema(self) -> None:
        """For every kind that a report can name there is advice, and for no other."""
        assert set(KINDS) == set(SCHEMA["$defs"]["kind"]["enum"])

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("ema.updates", "ema"),
            ("trainer.updates", "counter"),
            ("optimizer.param_groups[0].lr", "scheduler"),
            ("optimizer.state[model.0.weight].exp_avg", "optimizer"),
            ("optimizer.state[model.0.weight].step", "optimizer"),
            ("loader.sampler.epoch", "data_order"),
            ("train_loader.epoch", "data_order"),
            ("model.0.weight.grad", "gradients"),
            ("model.0.weight", "model"),
            ("model.1.num_batches_tracked", "model"),
            ("scheduler.last_epoch", "scheduler"),
            ("stopper.bad_evals", "early_stopping"),
            ("scaler._growth_tracker", "loss_scaler"),
            ("random.getstate()", "generator"),
            ("dataset.rng", "generator"),
            ("FEATURES_CACHE", "cache"),
            ("whatever", "other"),
            ("sched.T_cur", "scheduler"),
            ("scheduler._schedulers[1]._step_count", "scheduler"),
            ("runner.curriculum.stage", "other"),
            ("env.obs_rms.mean", "ema"),
            ("state.loss_ema", "ema"),
            ("ema.module.0.weight", "ema"),
            ("holder.agent.memory", "other"),
            ("model.0.weight.prev_grad", "model"),
            ("model.0.weight.requires_grad", "model"),
            ("ema.module.0.weight.grad", "gradients"),
            ("optimizer.param_groups[0].params[0]", "model"),
            ("optimizer.param_groups", "optimizer"),
            ("opt_g.state[gen.0.bias].exp_avg", "optimizer"),
            ("velocity[model.0.weight]", "other"),
            ("masks['0.weight']", "other"),
            ("loader.sampler.generator", "generator"),
            ("generator.0.weight", "model"),
            ("sampler.cache", "cache"),
            ("cache.sampler.seen", "data_order"),
            ("trainLoader.seen", "data_order"),
            ("model.rounds.count", "counter"),
            ("loop.iter(range(state['start_epoch'], 100))", "data_order"),
            ("loop.iter(torch.randperm(n, generator=generator).tolist())", "data_order"),
            ("loop.iter[2]", "data_order"),
            ("trainer.max_iter", "counter"),
            ("", "other"),
        ],
    )
    def test_is_chosen_by_the_words_of_a_path(self, path: str, kind: str) -> None:
        """A path betrays the kind of state by its words, by the last of them first."""
        assert classify(path) == kind

    @pytest.mark.parametrize(
        ("path", "holder", "kind"),
        [
            ("warm.position_in_cycle", ["torch.optim.lr_scheduler.StepLR"], "scheduler"),
            ("loader.inner.k", ["train.Prodigy", "torch.optim.optimizer.Optimizer"], "optimizer"),
            ("model.averaged.decay", ["torch.optim.swa_utils.AveragedModel"], "ema"),
            ("model.rounds", ["torch.utils.data.sampler.RandomSampler"], "data_order"),
            ("agent.memory.at", ["train.ReplayMemory"], "data_order"),
            ("flow.norm.initialized", ["train.ActNorm", "torch.nn.modules.module.Module"], "model"),
            ("flow.norm.calls", ["train.ActNorm", "torch.nn.modules.module.Module"], "counter"),
            ("optimizer.groups.lr", ["torch.optim.sgd.SGD"], "scheduler"),
            ("ema.shadow.size", ["torch.nn.modules.module.Module"], "ema"),
            ("thing.size", ["train.Thing"], "other"),
        ],
    )
    def test_is_chosen_by_the_class_that_holds_it(self, path: str, holder: list[str], kind: str) -> None:
        """The holder's class says more than the names further away, and less than the name of the piece itself."""
        assert classify(path, holder=holder) == kind

    @pytest.mark.parametrize(
        ("suspect", "kind"),
        [
            (Suspect("alias", "model.head.weight", 1, 1, "", ""), "aliasing"),
            (Suspect("content", "loader.state", 1, 1, "", "", sort="rng"), "generator"),
            (Suspect("part", "clip.at", 1, 1, "6", "0", label=Label("attr", "at"), sort="int"), "counter"),
            (Suspect("part", "clip.on", 1, 1, "True", "False", label=Label("attr", "on"), sort="bool"), "other"),
            (Suspect("part", "taken", 1, 1, "5", "0", label=Label("contents"), sort="int"), "variable"),
            (Suspect("part", "loop.lr", 1, 1, "5", "0", label=Label("local", "lr"), sort="int"), "scheduler"),
        ],
    )
    def test_is_chosen_by_what_differs(self, suspect: Suspect, kind: str) -> None:
        """An aliasing and a generator are told by what they are; a number of which nothing else is known counts."""
        assert kind_of(suspect) == kind

    @given(st.text(st.characters(exclude_characters="()[]")), st.text("abcz._", max_size=9))
    def test_of_an_iterator_is_the_order_of_the_data(self, source: str, holder: str) -> None:
        """An iterator is data in some order, whatever text it was made by."""
        assert classify(f"{holder}.iter({source})") == "data_order"

    @given(st.lists(st.sampled_from(["loader", "ema", "scheduler", "rng", "cache", "model[0]", "best", "iter(x)"])))
    def test_of_a_gradient_is_gradients(self, holders: list[str]) -> None:
        """What the piece itself is called decides, whatever holds it."""
        assert classify(".".join([*holders, "grad"])) == "gradients"

    @given(st.text())
    def test_can_be_told_of_any_path(self, path: str) -> None:
        """No path is too strange to be given advice on."""
        assert classify(path) in KINDS
