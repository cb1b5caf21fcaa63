"""Audit the experiment's fixture, whole, and hold the audit and the experiment against each other.

    python tools/audit_fixture.py [--jobs N] [--seed N] [--json FILE]

The audit interrupts at every micro-step, 0 to 36, and resumes with everything and without each component in turn. The
full checkpoint must be exact everywhere. Where the experiment leaves out the same component at the same point, both
must see the lack for the first time at the same update. What the two share is the fixture alone: neither knows what
the other calls equal.

Exit status: 0 they agree, 1 they do not, 2 the audit or the experiment could not be completed.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {
    "omit_rng": "rng",
    "omit_stream": "stream",
    "omit_scheduler": "scheduler",
    "mid_without_gradients": "gradients",
}
"""The one component that a scenario leaves out, by the name it has in `examples/experiment_job.py`."""


def run(*command: str) -> None:
    """Run a program of the project's to its end; what it prints goes to standard error.

    Raises:
        SystemExit: with status 2, where it could not be completed.
    """
    status = subprocess.run([sys.executable, *command], cwd=ROOT, check=False, stdout=sys.stderr).returncode
    if status not in {0, 1}:
        sys.stderr.write(f"audit_fixture: {' '.join(command[:3])} ended with status {status}\n")
        raise SystemExit(2)


def first_update(component: str, microstep: int, accumulation: int) -> int:
    """Return the first update, counted from 1, that goes wrong where a micro-step first shows a lack.

    The audit looks at what a micro-step leaves behind, the experiment at what an update is made of. The two differ for
    the schedule alone: a wrong learning rate is left behind by one update and is the next one's.
    """
    update = -(-microstep // accumulation)
    return update + 1 if component == "scheduler" and microstep % accumulation == 0 else update


def disagreements(audit: dict[str, Any], results: list[dict[str, str]], accumulation: int) -> Iterator[str]:
    """Yield a sentence for everything that is not as it must be.

    Args:
        audit: the audit's report, as in `schemas/audit.schema.json`.
        results: the rows of the experiment's `results.csv` for the same seed.
        accumulation: micro-steps to an update.
    """
    every_point = list(range(audit["steps"] + 1))
    if audit["verdict"] != "EXACT":
        yield f"the audit's verdict is {audit['verdict']}, not EXACT"
    exact = [resume["interrupted_after"] for resume in audit["resumes"] if resume["verdict"] == "EXACT"]
    if exact != [[point] for point in every_point]:
        yield f"full checkpoints are exact after {exact}, not after each of 0 to {audit['steps']}"
    cells = {(cell["component"], cell["interrupted_after"]): cell for cell in audit["matrix"]}
    if set(cells) != {(component, point) for component in audit["components"] for point in every_point}:
        yield f"the matrix has {len(cells)} cells, not one for each component and point"
        return
    for point in every_point:
        needed = cells["gradients", point]["outcome"] != "inert"
        if needed != (point % accumulation != 0):
            yield f"gradients are {'' if needed else 'not '}needed after micro-step {point}"
    compared = {row["scenario"]: row for row in results if row["scenario"] in LEFT_OUT}
    if set(compared) != set(LEFT_OUT):
        yield f"the experiment has results for {sorted(compared)}, not for {sorted(LEFT_OUT)}"
    for scenario, row in compared.items():
        component = LEFT_OUT[scenario]
        point = int(row["interrupt_optimizer_step"]) * accumulation + int(row["interrupt_microstep_in_accumulation"])
        cell, expected = cells[component, point], int(row["first_divergent_optimizer_step"])
        if cell["outcome"] != "diverges":
            yield f"{component} left out after micro-step {point}: {cell['outcome']}, but the experiment diverges"
            continue
        seen = first_update(component, cell["first_step"], accumulation)
        agree = "as in the experiment" if seen == expected else f"but in the experiment at update {expected}"
        told = f"{component} left out after micro-step {point} shows at update {seen}, {agree}"
        if seen == expected:
            print(told)
        else:
            yield told


def main() -> int:
    """Run both, compare them, and print what holds or what does not; return the exit status."""
    parser = argparse.ArgumentParser(description="Hold the audit of the fixture against the experiment's results.")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default: 2)")
    parser.add_argument("--seed", type=int, default=11, help="seed of the fixture (default: 11)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the audit's report")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report = (options.json or Path(name) / "audit.json").resolve()
        start = time.perf_counter()
        run(
            "-m", "resume_audit", "examples/experiment_job.py", "--seed", str(options.seed), "--matrix",
            "--jobs", str(options.jobs), "--json", str(report),
        )  # fmt: skip
        taken = time.perf_counter() - start
        run("experiment.py", "run", "--seeds", str(options.seed), "--output-dir", name + "/results")
        audit = json.loads(report.read_text(encoding="utf-8"))
        with (Path(name) / "results" / "results.csv").open(encoding="utf-8", newline="") as rows:
            results = list(csv.DictReader(rows))
        summary = json.loads((Path(name) / "results" / "run-summary.json").read_text(encoding="utf-8"))
    wrong = list(disagreements(audit, results, summary["configuration"]["accumulation_steps"]))
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    if not wrong:
        print(f"PASS: {len(audit['resumes'])} points, {len(audit['matrix'])} omissions; the audit took {taken:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
