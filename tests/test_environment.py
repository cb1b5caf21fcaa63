"""The environment: lock files, Makefile and set-up script, with stand-ins for interpreters and package indexes."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ["requirements.txt", "requirements-dev.txt"]
PYTHONS = ["3.11", "3.12", "3.13"]
PLATFORMS = ["linux", "darwin"]
# What an enclosing `make test` hands down, and what chooses interpreters and indexes.
INHERITED = r"MAKE.*|MFLAGS|GNUMAKEFLAGS|ARGS|PYTHON.*|TORCH_INDEX|PIP_.*|UV_.*|VIRTUAL_ENV"


def environment(**variables: object) -> dict[str, str]:
    """Return this process's environment without what would steer make, Python, pip or uv, plus `variables`."""
    kept = {name: value for name, value in os.environ.items() if not re.fullmatch(INHERITED, name)}
    return kept | {name: str(value) for name, value in variables.items()}


def entries(lock: Path) -> dict[Requirement, set[str]]:
    """Return the entries of a lock file, each with its SHA-256 digests."""
    text = re.sub(r"^ *#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", "").splitlines()
    return {
        Requirement(line.partition(" --hash=")[0]): set(re.findall(r" --hash=sha256:([0-9a-f]{64})(?= |$)", line))
        for line in lines
    }


def applicable(lock: Path, python: str, platform: str) -> dict[str, str]:
    """Return name and version of each entry that such a Python on such a platform installs."""
    where = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": platform}
    return {
        canonicalize_name(entry.name): str(entry.specifier).removeprefix("==")
        for entry in entries(lock)
        if entry.marker is None or entry.marker.evaluate(where)
    }


def copy_project(directory: Path) -> Path:
    """Copy what makes the environment, and nothing that runs in it, into a new directory with spaces in its name."""
    project = directory / "a path with spaces"
    project.mkdir()
    for name in ["Makefile", "pyproject.toml", *LOCKS, *(lock.replace(".txt", ".in") for lock in LOCKS)]:
        shutil.copy(ROOT / name, project)
    shutil.copytree(ROOT / "tools", project / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    return project


@pytest.mark.parametrize("lock", LOCKS)
class TestLockFile:
    """requirements.txt and requirements-dev.txt."""

    def test_every_entry_is_exact_and_hashed(self, lock: str) -> None:
        """Each entry names one version and at least one digest."""
        for entry, digests in entries(ROOT / lock).items():
            assert re.fullmatch(r"==[^,*]+", str(entry.specifier)), entry
            assert digests, entry

    def test_torch_is_only_ever_a_listed_cpu_wheel(self, lock: str) -> None:
        """The digests of torch are those of the list: of the `+cpu` wheels off macOS, of the plain ones on it."""
        wheels = (ROOT / "tools" / "torch-cpu-wheels.sha256").read_text(encoding="ascii").splitlines()

        torch = {str(entry): digests for entry, digests in entries(ROOT / lock).items() if entry.name == "torch"}

        assert torch == {
            'torch==2.13.0+cpu; sys_platform != "darwin"': {w.split()[0] for w in wheels if "linux" in w},
            'torch==2.13.0; sys_platform == "darwin"': {w.split()[0] for w in wheels if "macosx" in w},
        }

    def test_no_accelerator_package_is_locked(self, lock: str) -> None:
        """Nothing of what the plain Linux build of torch depends on is there."""
        names = {entry.name for entry in entries(ROOT / lock)}

        assert not {name for name in names if re.search("nvidia|cuda|triton|cudnn|cublas", name)}

    @pytest.mark.parametrize("python", PYTHONS)
    @pytest.mark.parametrize("platform", PLATFORMS)
    def test_each_python_and_platform_gets_each_package_once(self, lock: str, python: str, platform: str) -> None:
        """Markers never leave two versions of one package, and every package asked for is among the entries."""
        where = {"python_version": python, "sys_platform": platform}
        chosen = [e.name for e in entries(ROOT / lock) if e.marker is None or e.marker.evaluate(where)]
        source = (ROOT / lock).with_suffix(".in").read_text(encoding="utf-8")

        assert len(chosen) == len(set(chosen))
        assert set(re.findall(r"^[a-z]\S*?(?==|\s)", source, flags=re.MULTILINE)) <= set(chosen)

    def test_it_is_complete_here(self, lock: str) -> None:
        """What is locked is installed, and so is, in the locked version, all that it needs."""
        locked = applicable(ROOT / lock, "{}.{}".format(*sys.version_info), sys.platform)

        for name, version in locked.items():
            assert importlib.metadata.version(name) == version
            for text in importlib.metadata.requires(name) or []:
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                    assert needed.specifier.contains(locked[canonicalize_name(needed.name)]), f"{name}: {needed}"

    def test_it_names_no_index_and_no_directory(self, lock: str) -> None:
        """It says what to install, and leaves it to the machine where from."""
        assert "/" not in (ROOT / lock).read_text(encoding="utf-8")


def test_what_runs_is_what_is_tested() -> None:
    """requirements-dev.txt holds every entry of requirements.txt, digest for digest."""
    small, large = (entries(ROOT / lock) for lock in LOCKS)

    assert small.items() <= large.items()


def test_the_resolver_is_told_the_true_dependencies_of_torch() -> None:
    """The dependencies in pyproject.toml are those in the metadata of the installed wheel."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        [told] = tomllib.load(file)["tool"]["uv"]["dependency-metadata"]

    true = {Requirement(text) for text in importlib.metadata.requires("torch") or []}

    assert {Requirement(text) for text in told["requires-dist"]} == {r for r in true if "extra" not in str(r.marker)}


class TestMakeLock:
    """tools/lock.py, with a local stand-in for the package index."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        """A copy of the project without lock files, beside an index with an empty wheel of each locked package."""
        project = copy_project(tmp_path)
        for entry in entries(ROOT / "requirements-dev.txt"):
            self.publish(tmp_path, entry.name, str(entry.specifier).removeprefix("=="))
        self.publish(tmp_path, "torch", "2.13.0", "Requires-Dist: nvidia-cublas\n")
        for lock in LOCKS:
            (project / lock).unlink()
        return project

    @staticmethod
    def publish(directory: Path, name: str, version: str, metadata: str = "") -> None:
        """Add a wheel that holds nothing but its metadata to the index."""
        page = directory / "index" / name
        page.mkdir(parents=True, exist_ok=True)
        stem = f"{name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(page / f"{stem}-py3-none-any.whl", "w") as wheel:
            about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
            wheel.writestr(zipfile.ZipInfo(f"{stem}.dist-info/METADATA"), about)
            kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(zipfile.ZipInfo(f"{stem}.dist-info/WHEEL"), kind)
            wheel.writestr(zipfile.ZipInfo(f"{stem}.dist-info/RECORD"), "")
        links = [f'<a href="{file.name.replace("+", "%2B")}">{file.name}</a>' for file in page.glob("*.whl")]
        (page / "index.html").write_text("\n".join(sorted(links)), encoding="utf-8")

    @staticmethod
    def lock(project: Path, *options: str) -> dict[str, dict[Requirement, set[str]]]:
        """Compile both lock files from the stand-in alone and return what they hold."""
        index = (project.parent / "index").as_uri()
        variables = environment(UV_DEFAULT_INDEX=index, UV_CACHE_DIR=project.parent / "cache")
        command = [sys.executable, "tools/lock.py", *options]
        subprocess.run(command, cwd=project, env=variables, check=True, timeout=60)
        return {lock: entries(project / lock) for lock in LOCKS}

    def test_torch_comes_from_the_list_and_nowhere_else(self, project: Path) -> None:
        """Its digests are the listed ones, and the dependencies of the wheel on the package index play no part."""
        locked = self.lock(project)

        for lock in LOCKS:
            names = {entry.name for entry in locked[lock]}
            real = entries(ROOT / lock)
            assert {"filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy"} <= names
            assert "nvidia-cublas" not in names
            assert {e: d for e, d in locked[lock].items() if e.name == "torch"} == {
                e: d for e, d in real.items() if e.name == "torch"
            }

    def test_a_second_time_changes_nothing_though_newer_versions_came_out(self, project: Path) -> None:
        """A locked version is kept until an upgrade is asked for, and an unchanged file keeps its time for make."""
        first = self.lock(project)
        times = [(project / lock).stat().st_mtime_ns for lock in LOCKS]
        for name in ["filelock", "hypothesis"]:
            self.publish(project.parent, name, "9999.1")

        again = self.lock(project)
        times_again = [(project / lock).stat().st_mtime_ns for lock in LOCKS]
        upgraded = self.lock(project, "--upgrade")

        newer = [{entry.name for entry in upgraded[lock] if str(entry.specifier) == "==9999.1"} for lock in LOCKS]
        assert again == first
        assert times_again == times
        assert all((project / lock).stat().st_mtime_ns > time for lock, time in zip(LOCKS, times, strict=True))
        assert newer == [{"filelock"}, {"filelock", "hypothesis"}]

    def test_a_corrected_list_of_torch_wheels_takes_effect(self, project: Path) -> None:
        """The digests of torch follow the list though its version is locked."""
        self.lock(project)
        wheels = project / "tools" / "torch-cpu-wheels.sha256"
        wheels.write_text(re.sub("^[0-9a-f]{64}", "0" * 64, wheels.read_text(encoding="ascii")), encoding="ascii")

        locked = self.lock(project)

        for lock in LOCKS:
            assert any("0" * 64 in digests for digests in locked[lock].values())


class Machine:
    """A copy of the project, and a stand-in for Python that notes what it is asked to run instead of running it."""

    def __init__(self, directory: Path) -> None:
        self.project = copy_project(directory)
        self.stamp = self.project / ".venv" / "made-with"
        self.python = self.interpreter(directory, "python")
        self.log = directory / "log"
        self.torch = directory / "torch"

    @staticmethod
    def interpreter(directory: Path, name: str) -> Path:
        """Write a stand-in: `-c` really runs, `-m venv` copies the stand-in, a name in $FAILING fails."""
        path = directory / name
        path.write_text(
            f"""#!/bin/sh
            [ "$1" != -c ] || exec "{sys.executable}" "$@"
            [ "$1" != -VV ] || exec "{sys.executable}" "$@"
            printf '%s\\n' "$*" >>"$LOG"
            case $* in
            '-m venv --clear '*) rm -rf "$4" && mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
            *' -r /dev/stdin') cat >"$TORCH" ;;
            esac
            case $* in *"$FAILING"*) exit 1 ;; esac
            """,
            encoding="utf-8",
        )
        path.chmod(0o755)
        return path

    def make(self, *arguments: str, failing: str = "nothing", **variables: object) -> subprocess.CompletedProcess[str]:
        """Run make from a directory that is not the project's."""
        command = ["make", "-C", str(self.project), *arguments]
        known = environment(LOG=self.log, TORCH=self.torch, FAILING=failing, PATH=self.path(), **variables)
        return subprocess.run(
            command,
            cwd="/",
            env=known,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )

    def path(self) -> str:
        """Return a search path on which `python3` is the stand-in."""
        binaries = self.project.parent / "bin"
        binaries.mkdir(exist_ok=True)
        (binaries / "python3").unlink(missing_ok=True)
        (binaries / "python3").symlink_to(self.python)
        return f"{binaries}:{os.environ['PATH']}"

    def asked(self) -> list[str]:
        """Return what the stand-in was asked to run since the last call."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with make, a shell and a stand-in for Python."""
    return Machine(tmp_path)


class TestHelp:
    """A bare `make`."""

    def test_every_target_is_listed_with_one_line(self, machine: Machine) -> None:
        """The list and the Makefile's own targets are the same, and making the list makes nothing else."""
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = [
            name for line in re.findall(r"^\.PHONY: ([a-z -]+)$", makefile, re.MULTILINE) for name in line.split()
        ]

        done = machine.make()

        listed = re.findall(r"^  ([a-z-]+) +\S.*$", done.stdout, re.MULTILINE)
        assert sorted(listed) == sorted(targets)
        assert {"setup", "run", "test", "lint", "bench", "lock", "clean"} <= set(listed)
        assert done.returncode == 0
        assert machine.asked() == []


class TestSetup:
    """`make setup`, alone and on behalf of other targets."""

    def test_torch_alone_is_sought_on_its_index(self, machine: Machine) -> None:
        """One call for torch names the index; the other has the whole lock file and does not."""
        machine.make("setup", "TORCH_INDEX=https://example.org/cpu")

        venv, torch, everything, check = machine.asked()
        assert venv == "-m venv --clear .venv"
        assert "--extra-index-url https://example.org/cpu" in torch
        assert set(entries(machine.torch)) == {
            entry for entry in entries(ROOT / "requirements-dev.txt") if entry.name == "torch"
        }
        assert "example.org" not in everything
        assert everything.endswith("-r requirements-dev.txt")
        assert check.startswith("-m pip check")

    def test_nothing_is_installed_unhashed(self, machine: Machine) -> None:
        """Every call of the installer demands hashes and wheels, and resolves nothing by itself."""
        machine.make("setup")

        installs = [line for line in machine.asked() if line.startswith("-m pip install ")]
        assert len(installs) == 2
        for line in installs:
            assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(line.split())

    def test_it_runs_once(self, machine: Machine) -> None:
        """A second `make setup` asks Python for nothing."""
        assert machine.make("setup").returncode == 0
        machine.asked()

        assert machine.make("setup").returncode == 0
        assert machine.asked() == []

    @pytest.mark.parametrize("lock", LOCKS)
    def test_a_changed_lock_file_is_installed(self, machine: Machine, lock: str) -> None:
        """A lock file newer than the environment makes it anew."""
        machine.make("setup")
        machine.asked()
        later = machine.stamp.stat().st_mtime + 10
        os.utime(machine.project / lock, (later, later))

        machine.make("setup")

        assert "-m venv --clear .venv" in machine.asked()

    def test_a_python_named_later_is_used(self, machine: Machine) -> None:
        """PYTHON= replaces an environment made with another interpreter, and without it that one stays in use."""
        other = machine.interpreter(machine.project.parent, "other python")
        machine.make("setup")
        machine.asked()

        machine.make("setup", f"PYTHON={other}")
        remade = machine.asked()
        machine.make("setup", f"PYTHON={other}")
        machine.make("setup")
        untouched = machine.asked()

        assert "-m venv --clear .venv" in remade
        assert untouched == []

    @pytest.mark.parametrize("step", ["/dev/stdin", "-r requirements-dev.txt", "pip check"])
    def test_a_failure_is_not_taken_for_done(self, machine: Machine, step: str) -> None:
        """When any step fails, so does make, and the next make begins again."""
        failed = machine.make("run", failing=step)
        asked = machine.asked()
        machine.make("setup")

        assert failed.returncode == 2
        assert not any("experiment.py" in line for line in asked)
        assert "-m venv --clear .venv" in machine.asked()

    def test_a_missing_torch_is_explained(self, machine: Machine) -> None:
        """Where no CPU build is to be had, the message says how to name another place."""
        failed = machine.make("setup", failing="/dev/stdin")

        assert re.search(r"^setup: no CPU build of torch; .*TORCH_INDEX=.*PIP_FIND_LINKS=", failed.stderr, re.MULTILINE)


class TestUnsuitablePython:
    """Interpreters that cannot make the environment."""

    @pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 14), (4, 0)])
    def test_another_version_is_refused(self, machine: Machine, tmp_path: Path, version: tuple[int, int]) -> None:
        """Below 3.11 and above 3.13, one line says what was found, what is needed and how to name it."""
        fake = f"import sys\nsys.version_info = ({version[0]}, {version[1]}, 0, 'final', 0)\n"
        (tmp_path / "sitecustomize.py").write_text(fake, encoding="utf-8")

        refused = machine.make("setup", PYTHONPATH=tmp_path)

        [line] = [line for line in refused.stderr.splitlines() if not line.startswith("make")]
        assert "'python3' is Python {}.{}, but 3.11, 3.12 or 3.13 is needed".format(*version) in line
        assert "apt install python3 python3-venv" in line
        assert "make setup PYTHON=python3.13" in line
        assert refused.returncode == 2
        assert not (machine.project / ".venv").exists()

    @pytest.mark.parametrize("module", ["ensurepip", "venv"])
    def test_a_python_without_venv_is_refused(self, machine: Machine, tmp_path: Path, module: str) -> None:
        """Debian ships Python without the module: one line names the package that has it."""
        (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules['{module}'] = None\n", encoding="utf-8")

        refused = machine.make("setup", PYTHONPATH=tmp_path)

        [line] = [line for line in refused.stderr.splitlines() if not line.startswith("make")]
        assert "'python3' has no venv" in line
        assert "apt install python{}.{}-venv".format(*sys.version_info) in line
        assert refused.returncode == 2
        assert not (machine.project / ".venv").exists()

    def test_a_python_that_is_not_there_is_named(self, machine: Machine) -> None:
        """One line says that no Python starts under the given name."""
        refused = machine.make("setup", "PYTHON=/no such/python")

        [line] = [line for line in refused.stderr.splitlines() if not line.startswith("make")]
        assert "no Python starts as '/no such/python'" in line
        assert refused.returncode == 2


class TestTargets:
    """What the other targets run."""

    @pytest.mark.parametrize(
        ("target", "commands"),
        [
            ("run", ["experiment.py run --output-dir results"]),
            ("test", ["-m pytest"]),
            ("lint", ["-m ruff check .", "-m ruff format --check .", "-m mypy"]),
            ("bench", ["tests/bench.py"]),
            ("lock", ["tools/lock.py"]),
        ],
    )
    def test_the_environment_is_made_first(self, machine: Machine, target: str, commands: list[str]) -> None:
        """On a fresh machine each target makes the environment, then runs its commands in it."""
        done = machine.make(target)

        asked = [line.strip() for line in machine.asked()]
        assert done.returncode == 0, done.stderr
        assert asked[0] == "-m venv --clear .venv"
        assert asked[4:] == commands

    def test_arguments_are_handed_on(self, machine: Machine) -> None:
        """ARGS= follows the target's own arguments, quoted as in a shell."""
        machine.make("run", "ARGS=--seeds 7 '8'")

        assert machine.asked()[-1] == "experiment.py run --output-dir results --seeds 7 8"

    @pytest.mark.parametrize("command", ["ruff check", "ruff format", "mypy"])
    def test_lint_fails_when_any_check_fails(self, machine: Machine, command: str) -> None:
        """No check hides the failure of another."""
        assert machine.make("lint", failing=command).returncode == 2

    def test_clean_leaves_what_it_found(self, machine: Machine) -> None:
        """Afterwards the directory holds what it held before anything was made."""
        before = sorted(machine.project.rglob("*"))
        machine.make("setup")
        for name in [
            "results",
            "report",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".hypothesis",
            "tools/__pycache__",
        ]:
            (machine.project / name).mkdir()
            (machine.project / name / "file").touch()

        assert machine.make("clean").returncode == 0
        assert sorted(machine.project.rglob("*")) == before


class TestContinuousIntegration:
    """.ci/run."""

    TARGETS = ("test", "lint", "run", "verify", "image-ci", "portability")

    @pytest.mark.parametrize("failing", [*TARGETS, None])
    def test_it_makes_all_and_fails_when_any_fails(self, tmp_path: Path, failing: str | None) -> None:
        """Every target is tried from the project's directory, and one failure is enough for a failing status."""
        make = tmp_path / "make"
        make.write_text(f'#!/bin/sh\necho "$1" >>"{tmp_path}/log"\n[ -f Makefile ] && [ "$1" != "{failing}" ]\n')
        (tmp_path / "qemu-x86_64").write_text("#!/bin/sh\n")  # or the script would install it
        for stand_in in (make, tmp_path / "qemu-x86_64"):
            stand_in.chmod(0o755)
        variables = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")

        done = subprocess.run(
            ["bash", ROOT / ".ci" / "run"], cwd=tmp_path, env=variables, capture_output=True, check=False, timeout=60
        )

        assert (tmp_path / "log").read_text(encoding="utf-8").split() == [*self.TARGETS]
        assert done.returncode == (0 if failing is None else 1)
