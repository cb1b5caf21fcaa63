"""Which processors agree on every bit of the results, and which pin makes them agree: measured on emulated processors.

    python tools/portability.py                         # the whole table: every processor, every pin taken away in turn
    python tools/portability.py --pinned Nehalem        # all pins in force, on one processor

With all three pins in force, the results on each processor must be the expected ones, bit for bit. Then each pin is
taken away in turn; the digests of results.csv show which processors disagree. A `*` stands where a numeric fingerprint
differs from the expected one.

Exit status: 0 every processor gives the expected bits with all pins in force; 1 one does not; 2 it could not be tried.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

import verify  # noqa: E402 -- found beside this folder

EMULATOR = "qemu-x86_64"
NATIVE = "this machine"
PROCESSORS = ("Nehalem", "Haswell", "EPYC")  # SSE4.2 alone; Intel with AVX2 and FMA; AMD with AVX2 and FMA
VARIABLES = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}
FUSED = "fused AdamW"
PINS = (FUSED, *VARIABLES)


def run_experiment(without: str, output_dir: str) -> None:
    """Run the experiment in this process, without one of the pins, by a change in this process alone.

    experiment.py sets the variables before it imports torch; where torch is there already, it leaves them as they are.
    """
    os.environ.update({name: value for name, value in VARIABLES.items() if name != without})
    os.environ.pop(without, None)
    import torch  # noqa: PLC0415 -- once the variables are set

    fused = torch.optim.AdamW

    def default_adamw(*args: Any, **settings: Any) -> torch.optim.AdamW:  # noqa: ANN401 -- whatever AdamW takes
        return fused(*args, **{**settings, "fused": False})

    if without == FUSED:
        torch.optim.AdamW = default_adamw  # type: ignore[assignment,misc]  # instead of a switch in the experiment
    sys.argv = ["experiment.py", "run", "--output-dir", output_dir]
    runpy.run_path(str(PROJECT / "experiment.py"), run_name="__main__")


@dataclass(frozen=True)
class Cell:
    """What came out on a processor: the digest of results.csv, marked where a numeric fingerprint differs."""

    text: str
    as_expected: bool


def measure(processor: str, without: str) -> Cell:
    """Run the experiment on a processor without a pin (or with all), judge what comes out, and print a line about it.

    Raises:
        RuntimeError: the run failed.
    """
    emulator = [] if processor == NATIVE else [EMULATOR, "-cpu", processor]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    with tempfile.TemporaryDirectory() as directory:
        started = time.monotonic()
        command = [*emulator, sys.executable, str(Path(__file__)), "--child", directory, "--without", without]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - started
        if done.returncode:
            reason = (done.stderr.splitlines() or ["no message"])[-1]
            raise RuntimeError(f"the run on {processor} ended with status {done.returncode}: {reason}")
        verdict = verify.verify(directory, verify.EXPECTED, verify.SCHEMAS, require_bitwise=True)
        digest = hashlib.sha256(Path(directory, "results.csv").read_bytes()).hexdigest()[:4]
    text = digest + ("*" if verdict.other_operations else "")
    pins = f"without {without}" if without else "all pins"
    print(f"{processor}, {pins}: {text} in {seconds:.0f} s, {verdict.headline}", flush=True)
    return Cell(text, verdict.passed)


def print_table(cells: Mapping[tuple[str, str], Cell], processors: Sequence[str], rows: Sequence[str]) -> None:
    """Print the digests as a Markdown table: a row for each pin taken away, a column for each processor."""
    print("| " + " | ".join([*PINS, *processors, "all agree"]) + " |")
    print("|---" * (len(PINS) + len(processors) + 1) + "|")
    for without in rows:
        texts = [cells[processor, without].text for processor in processors]
        pins = ["no" if pin == without else "yes" for pin in PINS]
        print("| " + " | ".join([*pins, *texts, "yes" if len(set(texts)) == 1 else "no"]) + " |")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; return the exit status given in the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR", help=f"of {EMULATOR} -cpu help; default: three")
    parser.add_argument("--pinned", action="store_true", help="with all pins in force only")
    parser.add_argument("--child", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--without", default="", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        run_experiment(args.without, args.child)
    if shutil.which(EMULATOR) is None:
        sys.stderr.write(f"portability: {EMULATOR} is missing; on Debian or Ubuntu: apt-get install qemu-user\n")
        return 2
    processors = [NATIVE, *(args.processors or PROCESSORS)]
    rows = ["", *([] if args.pinned else PINS)]
    try:
        cells = {(name, without): measure(name, without) for without in rows for name in processors}
    except (RuntimeError, verify.CannotJudgeError) as error:
        sys.stderr.write(f"portability: {error}\n")
        return 2
    print_table(cells, processors, rows)
    return 0 if all(cells[name, ""].as_expected for name in processors) else 1


if __name__ == "__main__":
    sys.exit(main())
