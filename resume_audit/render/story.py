"""What a report says, as sentences that know nothing of how they will be shown."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from resume_audit.kinds import KINDS
from resume_audit.render.words import (
    INDEX,
    LONGEST_LIST,
    Code,
    Report,
    Sentence,
    counted,
    families,
    interrupted,
    listed,
    names,
    number,
    pattern,
    patterns,
    short,
    spans,
    visible,
)

MOST_GUESSES: Final = 2  # kinds of state to give advice on where nothing is proven
SAVING: Final = (
    "saving",
    "Let the save only read: draw no random number, step and reset nothing, and put back what it has to change.",
)

# --- the audit as a whole -----------------------------------------------------------------------------------


def command(report: Report) -> str:
    """Return the command line that asks for the same audit."""
    options = report["options"]
    target, _, factory = report["job"].rpartition(":")
    words = ["resume-audit"]
    if target.endswith(".py"):
        words += [target] + (["--factory", factory] if factory != "make_job" else [])
    else:
        words += [report["job"]]
    words += ["--seed", str(report["seed"]), "--steps", str(report["steps"])]
    if options["interrupt"] is not None:
        words += ["--interrupt", ",".join(map(str, options["interrupt"]))]
    words += [f"--{flag}" for flag in ("every", "chain", "matrix", "fresh") if options[flag]]
    return visible(shlex.join(words))


def headline(report: Report) -> Sentence:
    """Return what was found, the lost thing first, in one sentence."""
    verdict = report["verdict"]
    if verdict == "EXACT":
        resumes = len(report["resumes"])
        subject = {1: "The resume is", 2: "Both resumes are"}.get(resumes, f"All {resumes} resumes are")
        return (f"{subject} bit for bit the uninterrupted run, to its end.",)
    if verdict == "ABSTAIN":
        return ("The job does not repeat itself: nothing can be said of its resume.",)
    if verdict == "ERROR":
        return error_sentence(report["error"])
    found = findings(report)
    return found[0].headline if found else ("Some resume differs.",)


def error_sentence(error: dict[str, Any]) -> Sentence:
    """Return phase, step and the exception's own words."""
    during = {
        "usage": "Wrong usage",
        "import": "Importing the job failed",
        "factory": "The factory failed",
        "baseline": "The uninterrupted run failed",
        "save": "Saving failed",
        "load": "Loading failed",
        "resume": "The resumed run failed",
        "compare": "Comparing failed",
        "diagnosis": "The diagnosis failed",
        "matrix": "The omission matrix failed",
    }[error["phase"]]
    after = error["phase"] in ("save", "load")
    where = "" if error["step"] is None else f"{' after' if after else ' at'} step {error['step']}"
    said = ("",) if not error["message"] else (": ", Code(error["message"]))
    return (f"{during}{where}: ", Code(error["type"]), *said)


def what_was_run(report: Report) -> list[Sentence]:
    """Return job, components, interruption points with their reasons, and versions."""
    versions = {name: visible(version) for name, version in report["versions"].items()}
    lines: list[Sentence] = [(Code(report["job"]), f", seed {report['seed']}, {counted(report['steps'], 'step')}")]
    if report["components"]:
        lines.append(("components ", *names(report["components"], most=12)))
    reasons: dict[str, list[int]] = {}
    for point in report["interruptions"]:
        reasons.setdefault(point["why"], []).append(point["after"])
    if reasons:
        points = [(f"{spans(steps)} ({visible(why)})",) for why, steps in reasons.items()]
        how = "interruption points, in a chain: " if report["options"]["chain"] else "interruption points: "
        lines.append((how, *listed(points)))
    lines.append((f"Python {versions['python']}, torch {versions['torch']}, NumPy {versions['numpy']}",))
    return lines


def abstention(report: Report) -> list[Sentence]:
    """Return what the two uninterrupted runs differ in."""
    first = report["baseline"]["first_difference"]
    if first is None:
        return []
    moment = "before the first step" if first["step"] == 0 else f"at step {first['step']}"
    lines: list[Sentence] = [
        (f"Two uninterrupted runs first differ {moment}, in ", *names(first["outcomes"]), "."),
    ]
    if first["state"]:
        lines.append(("The state that differs first: ", *names(patterns(first["state"])), "."))
    causes = (
        "One of them was observed at every step, and their hash seeds differ: look for the order of a set, "
        "the clock, a generator that nobody seeds, a sum over threads, or a state_dict() that changes things."
    )
    return [*lines, (causes,)]


# --- one finding --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What one or several resumes have lost alike, told at the first of them."""

    resumes: tuple[dict[str, Any], ...]
    headline: Sentence
    sentences: tuple[Sentence, ...]
    asides: tuple[Sentence, ...]
    advice: tuple[tuple[str, str], ...]


def findings(report: Report) -> list[Finding]:
    """Group the resumes that are not exact by what they have lost, in the report's order."""
    groups: dict[object, list[dict[str, Any]]] = {}
    for resume in report["resumes"]:
        if resume["verdict"] != "EXACT":
            groups.setdefault(signature(resume), []).append(resume)
    return [finding(group) for group in groups.values()]


def signature(resume: dict[str, Any]) -> object:
    """Return what makes two resumes one finding: the same proven set, else the same suspects."""
    diagnosis = resume["diagnosis"]
    vacuous = tuple(item["what"] for item in resume["vacuous"])
    if diagnosis is None:
        return (vacuous, resume["saving_disturbs"], resume["verdict"], None)
    lost = diagnosis["proven"] or diagnosis["suspects"] or diagnosis["out_of_reach"]
    aliased = tuple(tuple(item["paths"]) for item in diagnosis["aliasing"])
    return (
        vacuous,
        resume["saving_disturbs"],
        bool(diagnosis["proven"]),
        tuple(e["path"] for e in lost),
        aliased,
    )


def suspects(diagnosis: dict[str, Any]) -> list[dict[str, str]]:
    """Return the suspects, gradients last: most are left over from the last update and about to be dropped."""
    return sorted(diagnosis["suspects"], key=lambda entry: entry["kind"] == "gradients")


def only_saving(resume: dict[str, Any]) -> bool:
    """Tell whether the resume is right and the save alone has changed the run that went on after it."""
    return resume["saving_disturbs"] and resume["moments"] is None


def with_values(
    entries: Sequence[dict[str, str]], told: Collection[str] = (), *, event: str = "the resume"
) -> list[Sentence]:
    """Return paths with their two values: `ema.updates` (0 after the resume, 5 before); a family with its first ones.

    Args:
        entries: Proven or suspected state.
        told: Paths that are told with what they share, which says it all.
        event: What lies between the two values.
    """
    lines: list[Sentence] = []
    grouped = families([e["path"] for e in entries], [(e["kind"], e["path"] in told, e.get("where")) for e in entries])
    for family in grouped:
        first = entries[family[0]]
        name = pattern([entries[n]["path"] for n in family])
        if first["path"] in told:
            lines.append((name,))
            continue
        size = f"{len(family)} entries, the first " if family[1:] else ""
        resumed, uninterrupted = short(first["resumed"]), short(first["uninterrupted"])
        values: Sentence = (resumed, f" after {event}, ", uninterrupted, " before")
        if resumed == uninterrupted:  # of another type, or different where the values are cut
            values = ("not the same, though both are shown as ", resumed)
        where = ("; seen in ", Code(first["where"])) if "where" in first else ()
        lines.append((name, f" ({size}", *values, *where, ")"))
    return lines


def finding(group: list[dict[str, Any]]) -> Finding:
    """Tell one group of resumes."""
    first = group[0]
    diagnosis = first["diagnosis"]
    asides: list[Sentence] = []
    kinds: list[str] = []
    if diagnosis:
        lost = diagnosis["proven"] or suspects(diagnosis)
        kinds += list(dict.fromkeys(entry["kind"] for entry in lost))[: None if diagnosis["proven"] else MOST_GUESSES]
        kinds += ["aliasing"] * bool(diagnosis["aliasing"])
        asides = apart(diagnosis)
    advice = [(KINDS[kind].title, KINDS[kind].remedy) for kind in dict.fromkeys(kinds)]
    return Finding(
        resumes=tuple(group),
        headline=finding_headline(first),
        sentences=(*proof(first), *course(first), *alike(group)),
        asides=tuple(asides),
        advice=(SAVING,) if only_saving(first) else tuple(advice),
    )


def finding_headline(resume: dict[str, Any]) -> Sentence:
    """Return the lost thing."""
    diagnosis = resume["diagnosis"]
    if resume["verdict"] == "ERROR":
        return (f"The resume {interrupted(resume['interrupted_after'])} could not be completed.",)
    if diagnosis and diagnosis["proven"]:
        return ("Lost: ", *names(patterns(entry["path"] for entry in diagnosis["proven"])), ", proven.")
    if resume["vacuous"]:
        return (visible(resume["vacuous"][0]["message"]),)
    where = interrupted(resume["interrupted_after"])
    if only_saving(resume):
        changed = patterns(entry["path"] for entry in suspects(diagnosis)) if diagnosis else []
        return (f"Saving {where} changes ", *(names(changed, most=3) if changed else ("the run",)), ".")
    if diagnosis:
        closest = [("not proven", suspects(diagnosis)), ("out of reach", diagnosis["out_of_reach"])]
        if all(entry["kind"] == "gradients" for entry in diagnosis["suspects"]):
            closest.reverse()  # gradients left over from the last update tell less than what nobody could look into
        for label, entries in closest:
            if entries:
                return (f"Lost, {label}: ", *names(patterns(entry["path"] for entry in entries), most=3), ".")
    unexplained = ", and nothing that was found explains it" if diagnosis else ""
    return (f"The resume {where} differs{unexplained}.",)


def proof(resume: dict[str, Any]) -> list[Sentence]:
    """Return what is proven of the loss, or why nothing is."""
    diagnosis = resume["diagnosis"]
    messages: list[Sentence] = [(visible(item["message"]),) for item in resume["vacuous"]]
    lines = messages if diagnosis and diagnosis["proven"] else messages[1:]  # else the first is the headline
    if resume["saving_disturbs"]:
        lines.append(("A run that goes on after its own save differs from one that never saved.",))
    if only_saving(resume):
        first = resume["first_divergence"]
        lines.append((f"First visible at step {first['step']}, in ", *names(first["outcomes"]), "."))
        if diagnosis and diagnosis["suspects"]:
            changed = with_values(suspects(diagnosis), event="the save")
            lines.append(("The save changes ", *listed(changed), "."))
        return lines
    if not diagnosis:
        return lines
    if diagnosis["proven"]:
        shared = {item["paths"][0] for item in diagnosis["aliasing"]}
        together = " together" if len(diagnosis["proven"]) > 1 else ""
        restored = listed(with_values(diagnosis["proven"], shared))
        lines.append(("Restoring ", *restored, f"{together} makes the resumed run exact."))
        if together and diagnosis["minimal"]:
            lines.append(("No proper part of these does.",))
        elif not diagnosis["minimal"]:
            lines.append(("The search was cut short: perhaps not all of these are needed.",))
    else:
        lines.append((f"Nothing is proven: {visible(diagnosis['unproven'])}",))
        if diagnosis["suspects"]:
            lines.append(("Suspects: ", *listed(with_values(suspects(diagnosis))), "."))
    return lines + sharing(diagnosis)


def sharing(diagnosis: dict[str, Any]) -> list[Sentence]:
    """Return what is one thing in one run and several in the other."""
    items = diagnosis["aliasing"]
    entries = {entry["path"]: entry for entry in (*diagnosis["proven"], *diagnosis["suspects"])}
    told = [sharing_of(item, entries.get(item["paths"][0])) for item in items]
    skeletons = [tuple(INDEX.sub("*", path) for path in item["paths"]) for item in items]
    grouped = families([item["paths"][0] for item in items], list(zip(skeletons, told, strict=True)))
    lines: list[Sentence] = []
    for family in grouped[:LONGEST_LIST]:
        places = zip(*(items[n]["paths"] for n in family), strict=True)
        where = names(pattern(paths) for paths in places)
        before, after = told[family[0]]
        size = f", in {len(family)} places," if family[1:] else ""
        lines.append((*where, f"{size} {before} in the uninterrupted run and {after} in the resumed one."))
    if (more := len(grouped) - LONGEST_LIST) > 0:
        lines.append((f"{counted(more, 'more finding')} of this sort.",))
    return lines


def sharing_of(item: dict[str, Any], entry: dict[str, str] | None) -> tuple[str, str]:
    """Return what an aliasing is in the uninterrupted run and in the resumed one."""
    of_storage = entry is not None and "the storage of" in entry["uninterrupted"] + entry["resumed"]
    words = {"shared": "share their storage" if of_storage else "are one object", "separate": "are separate"}
    return words[item["uninterrupted"]], words[item["resumed"]]


def course(resume: dict[str, Any]) -> list[Sentence]:
    """Return both moments, and how far apart the runs are in the end."""
    moments, drift, first = resume["moments"], resume["drift"], resume["first_divergence"]
    lines: list[Sentence] = []
    if moments:
        chain = resume["interrupted_after"]
        at = f"Lost at the load {interrupted([moments['lost_after']])}"
        if len(chain) > 1:
            at = f"Interrupted {interrupted(chain)}: lost at the load {interrupted([moments['lost_after']])}"
        if seen := moments["first_visible"]:
            lines.append((f"{at}, first visible at step {seen['step']}, in ", *names(seen["outcomes"]), "."))
        else:
            lines.append((f"{at}; no later step shows it.",))
        if first and first["step"] == 0:
            differ = "already differ" if first["outcomes"][1:] else "already differs"
            lines.append(("Right after loading, ", *names(first["outcomes"]), f" {differ}."))
    if resume["healed_after"] is not None:
        lines.append((f"It heals: after step {resume['healed_after']} all outcomes agree again.",))
    elif drift:
        gaps: list[Sentence] = []
        if drift["parameters"]:
            gaps.append(("the parameters differ by up to ", number(drift["parameters"])))
        for name, value in drift["metrics"].items():
            if value:
                gaps.append((Code(name), " by " if gaps else " differs by ", number(value)))
        if gaps:
            lines.append(("At the end ", *listed(gaps), "."))
        else:
            lines.append(("At the end neither parameters nor metrics differ.",))
    return lines


def alike(group: list[dict[str, Any]]) -> list[Sentence]:
    """Return which other resumes have lost the same."""
    if len(group) == 1:
        return []
    others = [resume["interrupted_after"] for resume in group[1:]]
    if all(len(after) == 1 for after in others):
        what = "interruptions after steps" if others[1:] else "the interruption after step"
        return [(f"The same holds for {what} {spans(after[0] for after in others)}.",)]
    what = "interruptions" if others[1:] else "the interruption"
    return [(f"The same holds for {what} ", *listed([(interrupted(after),) for after in others]), ".")]


def apart(diagnosis: dict[str, Any]) -> list[Sentence]:
    """Return what is told apart: suspects beside a proof, what has no effect, what is out of reach."""
    lines: list[Sentence] = []
    if diagnosis["suspects"] and diagnosis["proven"]:
        lines.append(("Undone in consequence: ", *listed(with_values(diagnosis["suspects"])), "."))
    if diagnosis["without_effect"]:
        lines.append(("Differs too, without effect: ", *names(patterns(diagnosis["without_effect"])), "."))
    lines += [
        ("Out of reach: ", Code(entry["path"]), f", {visible(entry['why'])}")
        for entry in diagnosis["out_of_reach"][:LONGEST_LIST]
    ]
    if (more := len(diagnosis["out_of_reach"]) - LONGEST_LIST) > 0:
        lines.append((f"Out of reach: {more} more.",))
    return lines


def traceback_of(report: Report) -> str:
    """Return the job's own traceback, lines kept, or nothing."""
    error = report["error"]
    return visible(error["traceback"], keep="\n\t").strip("\n") if error else ""
