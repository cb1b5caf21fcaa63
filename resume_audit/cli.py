"""The command line: `resume-audit JOB [options]`."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from resume_audit.options import JOBS, Options, refuse_unwritable

EPILOG = """\
examples:
  resume-audit --example > train_job.py         a commented job to start from
  resume-audit train_job.py                     factory make_job in that file
  resume-audit mypackage.training:make_job --every --matrix --jobs 8 --json audit.json
  resume-audit train_job.py --factory make_fixed --steps 12 --interrupt 4,8 --chain

exit status: 0 EXACT, 1 DIVERGES, 2 ERROR or wrong usage, 3 ABSTAIN
"""
USAGE = 2
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "resume-audit",
        description="Does a training job resume exactly, and if not, what was lost: proven.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("job", nargs="?", help="FILE.py, FILE.py:factory, package.module or package.module:factory")
    made.add_argument(
        "--factory", metavar="NAME", help="the function that builds the job from a seed (default: make_job)"
    )
    made.add_argument("--seed", type=int, default=0, help="what the factory is called with (default: 0)")
    made.add_argument(
        "--steps", type=int, metavar="N", help="length of the uninterrupted run (default: the module's STEPS)"
    )
    made.add_argument(
        "--interrupt",
        type=_points,
        metavar="K,...",
        help="steps after which to interrupt (default: INTERRUPT, else five chosen)",
    )
    made.add_argument("--every", action="store_true", help="interrupt after every step, from 0 to the last")
    made.add_argument("--chain", action="store_true", default=None, help="interrupt the resumed run again")
    made.add_argument("--matrix", action="store_true", help="resume without each component in turn")
    made.add_argument("--no-diagnosis", action="store_true", help="tell where a resume differs, and not what was lost")
    made.add_argument("--fresh", action="store_true", help="a whole new interpreter for every run, instead of a fork")
    made.add_argument(
        "--jobs", type=int, default=JOBS, metavar="N", help="runs side by side (default: the processors, at most 4)"
    )
    made.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="seconds that one run may take (default: 600)"
    )
    made.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write everything, by schemas/audit.schema.json; - for standard output",
    )
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write what one pastes into an issue")
    made.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained page")
    made.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    made.add_argument("--example", action="store_true", help="print a commented job to start from")
    return made


def _version() -> str:
    try:
        return metadata.version("resume-audit")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _points(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of steps such as 1,7,8") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit a job as the arguments say and show the report; the exit status."""
    options = parser().parse_args(arguments)
    if options.example:
        sys.stdout.write((Path(__file__).parent / "example_job.py").read_text(encoding="utf-8"))
        return 0
    if options.job is None:
        parser().error("which job? give FILE.py or package.module, or --example for one to start from")
    try:
        files = {name: getattr(options, name) for name in ("json", "markdown", "html")}
        refuse_unwritable(options.job, (file for file in files.values() if file is not None and str(file) != "-"))
        asked = asked_for(options)
        with _ended_by_signals():
            return _audit(options.job, options.factory, asked, files)
    except KeyboardInterrupt:
        sys.stderr.write("resume-audit: interrupted\n")
        return INTERRUPTED
    except (ValueError, OSError) as error:
        sys.stderr.write(f"resume-audit: {error}\n")
        return USAGE


def asked_for(options: argparse.Namespace) -> Options:
    """The options of the command line as the audit takes them. Raises UsageError."""
    return Options(
        options.seed, options.steps, options.interrupt, options.every, options.chain, options.matrix,
        not options.no_diagnosis, options.fresh, options.jobs, options.timeout,
    )  # fmt: skip


def _audit(job: str, factory: str | None, options: Options, files: dict[str, Path | None]) -> int:
    from resume_audit.process import source  # noqa: PLC0415 -- no usage error should wait for imports
    from resume_audit.process.launcher import keep_servers  # noqa: PLC0415 -- likewise

    with contextlib.nullcontext() if options.fresh else keep_servers(), progress_bar() as progress:
        from resume_audit.auditor import audit_source  # noqa: PLC0415 -- imports torch, while the servers do so too

        report = audit_source(source.parse(job, factory), options, None, progress)
    text = {"json": report.to_json, "markdown": report.to_markdown, "html": report.to_html}
    for name, file in files.items():
        if file is not None and str(file) != "-":
            _write(file, text[name]())
    if any(str(file) == "-" for file in files.values()):
        for name, file in files.items():
            if str(file) == "-":
                sys.stdout.write(text[name]())
    else:
        show(report.to_dict())
    return report.exit_status


def show(report: dict[str, Any]) -> None:
    """The report on one screen, on standard output."""
    from rich.console import Console  # noqa: PLC0415 -- see above

    from resume_audit.render.terminal import write  # noqa: PLC0415 -- see above

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    try:
        write(report, console)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def progress_bar() -> Iterator[Any]:
    """What to tell the progress to: a bar on standard error where that is a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 -- see above
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 -- see above

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("importing", total=1)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a request to end come as the interrupt from the keyboard does, so that nothing stays behind."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    requests = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupt) for number in requests}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(file: Path, text: str) -> None:
    """Write a file whole or leave the one that is there."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
