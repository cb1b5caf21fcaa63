"""The container image, in a real engine: run by `make image-test`, and not collected by `make test`."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HOME = "/opt/checkpoint-resume"  # of the code, in the image
DOCKER = os.environ.get("DOCKER", "docker")
IMAGE = os.environ.get("IMAGE", "checkpoint-resume")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEFAULTS: dict[str, str] = dict(re.findall(r"^ARG (\w+)=(.+)$", DOCKERFILE, flags=re.MULTILINE))
BASE_IMAGE = os.environ.get("BASE_IMAGE", DEFAULTS["BASE_IMAGE"])
IMAGE_ARGS = os.environ.get("IMAGE_ARGS", "").split()
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
CONFINED = ["--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp"]  # noqa: S108 -- in the container
CONFINED += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
# Someone whom the image does not know; where only the caller's own files can be given away, the caller.
USER = 12345 if os.geteuid() == 0 else os.geteuid()
TRACE = ["trace", "--seed", "11", "--scenario", "omit_rng"]
ARTIFACTS = {"results.csv", "raw-output.txt", "step-traces.json", "run-summary.json", "environment.json"}
ARTIFACTS |= {"checkpoint-schema.json"}
COMMANDS = {"run", "one", "inspect", "matrix", "trace"}
SIGTERM_CAUGHT = 1 << 14  # in the mask of /proc/1/status

Finished = subprocess.CompletedProcess[str]


def command(*words: object, **variables: str) -> Finished:
    """Run a command in the project's folder, with more environment variables; return status, output and errors."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [str(word) for word in words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def engine(*words: object) -> str:
    """Return what the engine prints; a failure is an error, with the engine's own words."""
    result = command(DOCKER, *words)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def in_image(*words: object, options: tuple[object, ...] = ()) -> Finished:
    """Run the image's command line in a confined container."""
    return command(DOCKER, "run", *CONFINED, *options, IMAGE, *words)


def on_host(*words: str) -> Finished:
    """Run the program's command line here."""
    return command(sys.executable, "experiment.py", *words)


def find(image: str, *tests: object, user: str = "0:0") -> list[str]:
    """Return what `find` prints of an image's own file system, without what the engine mounts there."""
    options = ["--rm", "--network", "none", "--user", user, "--entrypoint", "find"]
    return command(DOCKER, "run", *options, image, "/", "-xdev", *tests).stdout.splitlines()


def beyond_base(*tests: object) -> set[str]:
    """Return the paths that pass the tests of `find` in the image and not in its base."""
    found = set(find(IMAGE, *tests))
    return found - set(find(BASE_IMAGE, *tests))


@pytest.fixture(scope="session", autouse=True)
def image() -> None:
    """Build the image, with the builder and on the base that the environment names."""
    subprocess.run(["make", "image"], cwd=ROOT, check=True)
    if command(DOCKER, "image", "inspect", BASE_IMAGE).returncode:  # a builder may keep its bases to itself
        engine("pull", BASE_IMAGE)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """Make a directory that belongs to `USER`."""
    directory = tmp_path / "a mounted directory"
    directory.mkdir()
    if os.geteuid() == 0:
        os.chown(directory, USER, USER)
    return directory


def as_user(mount: Path, mode: str = "z") -> tuple[object, ...]:
    """Return the options that run as `USER`, with the directory mounted as /results."""
    keep = ["--userns", "keep-id"] if "podman" in DOCKER and os.geteuid() else []
    return ("--user", f"{USER}:{USER}", *keep, "--volume", f"{mount}:/results:{mode}")


class TestCommands:
    """The image's command line is the program's."""

    @pytest.mark.parametrize(
        "words", [TRACE, ["one", *TRACE[1:]], ["matrix", "--seed", "11"]], ids=["trace", "one", "matrix"]
    )
    def test_prints_the_same_bytes_as_on_the_host(self, words: list[str]) -> None:
        """Nothing of the container shows in what is computed."""
        here, there = on_host(*words), in_image(*words)

        assert (there.returncode, there.stderr) == (0, "")
        assert there.stdout == here.stdout

    def test_the_shortest_command_line_does_it(self) -> None:
        """`docker run IMAGE trace ...` needs no option of the engine, a network and a writable system included."""
        result = command(DOCKER, "run", "--rm", IMAGE, *TRACE)

        assert (result.returncode, result.stderr, result.stdout) == (0, "", on_host(*TRACE).stdout)

    def test_inspect_shows_the_same_fixture_and_fingerprint_as_on_the_host(self) -> None:
        """Python and the system may be others; from the numeric pins on, all is equal."""
        here, there = on_host("inspect"), in_image("inspect")

        assert there.returncode == 0
        assert there.stdout.partition("numeric_pins")[1:] == here.stdout.partition("numeric_pins")[1:]

    def test_run_fills_a_mount_of_an_arbitrary_user(self, mount: Path) -> None:
        """The six files lie there, complete, and belong to that user."""
        result = in_image("run", "--output-dir", "/results", options=as_user(mount))

        assert (result.returncode, result.stderr) == (0, "")
        assert {path.name for path in mount.iterdir()} == ARTIFACTS
        assert {path.stat().st_uid for path in mount.iterdir()} == {USER}
        assert json.loads((mount / "run-summary.json").read_bytes())["status"] == "PASS"
        assert result.stdout.startswith((mount / "raw-output.txt").read_text(encoding="utf-8"))

    def test_no_argument_prints_the_help(self) -> None:
        """It ends with status 0 and names all five commands."""
        result = in_image()

        assert (result.returncode, result.stdout) == (0, on_host("--help").stdout)
        assert set(re.findall(r"^    (\w+) ", result.stdout, flags=re.MULTILINE)) >= COMMANDS

    @pytest.mark.parametrize(
        "words", [["trane"], ["one", "--seed", "-1", "--scenario", "omit_rng"], ["trace", "--seed", "1"]]
    )
    def test_bad_input_is_answered_as_on_the_host(self, words: list[str]) -> None:
        """The message and the exit status come through unchanged."""
        here, there = on_host(*words), in_image(*words)

        assert here.returncode == 2
        assert (there.returncode, there.stdout, there.stderr) == (2, "", here.stderr)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the artifacts of `make image-verify` are to come to."""
    return tmp_path_factory.mktemp("image-verify") / "results of a container"


class TestImageVerify:
    """`make image-verify`: a run and its verification, in containers."""

    def test_it_ends_in_verified_bitwise(self, results: Path) -> None:
        """The artifacts lie on the host and belong to the caller."""
        result = command("make", "--no-print-directory", "image-verify", "ARGS=", f"RESULTS={results}")

        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.splitlines()[-1].startswith("VERIFIED bitwise")
        assert {(path.name, path.stat().st_uid) for path in results.iterdir()} == {(n, os.geteuid()) for n in ARTIFACTS}

    def test_its_verification_can_fail(self, results: Path) -> None:
        """One changed word in what the run wrote is found, with status 1."""
        table = results / "results.csv"
        table.write_text(table.read_text(encoding="utf-8").replace("True", "False", 1), encoding="utf-8")

        mounted = ("--volume", f"{results}:/results:ro,z", "--entrypoint", "python")
        result = in_image("verify.py", "/results", options=mounted)

        assert result.returncode == 1
        assert result.stdout.splitlines()[-1].startswith("FAILED")


class TestMount:
    """A mount that cannot be written gives the program's own line and status 2, before any training."""

    def refused(self, *options: object) -> str:
        """Return the one line of a run that is refused."""
        result = in_image("run", "--output-dir", "/results", options=options)
        assert (result.returncode, result.stdout) == (2, "")
        assert re.fullmatch(r"experiment\.py: error: .*/results.*\n", result.stderr), result.stderr
        return result.stderr

    def test_missing(self) -> None:
        """Without a mount, the system that is read-only is the reason."""
        assert "Read-only file system" in self.refused()

    def test_missing_in_a_writable_container(self) -> None:
        """Without a mount and without confinement, missing rights are the reason."""
        result = command(DOCKER, "run", "--rm", IMAGE, "run", "--output-dir", "/results")

        assert (result.returncode, result.stdout) == (2, "")
        assert re.fullmatch(r"experiment\.py: error: .*/results.*Permission denied.*\n", result.stderr)

    def test_read_only(self, mount: Path) -> None:
        """The mount is named, with the reason."""
        assert "Read-only file system" in self.refused(*as_user(mount, "ro,z"))

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to someone else")
    def test_owned_by_someone_else(self, mount: Path) -> None:
        """The mount is named, with the reason, and stays as it is."""
        os.chown(mount, USER + 1, USER + 1)

        assert "Permission denied" in self.refused(*as_user(mount))
        assert not list(mount.iterdir())

    def test_without_write_permission(self, mount: Path) -> None:
        """The mount is named, with the reason, and stays as it is."""
        mount.chmod(0o555)

        assert "Permission denied" in self.refused(*as_user(mount))
        assert not list(mount.iterdir())

    def test_full_disk(self) -> None:
        """What was begun ends with one line that names the mount and the reason."""
        small = "type=tmpfs,destination=/results,tmpfs-size=65536,tmpfs-mode=1777"

        result = in_image("run", "--output-dir", "/results", options=("--mount", small))

        assert result.returncode == 2
        assert re.fullmatch(r"experiment\.py: error: .*/results.*No space left on device.*\n", result.stderr)


class TestStop:
    """`docker stop` ends process 1 within two seconds: later, the engine kills it, and the status is 137."""

    @pytest.fixture
    def container(self, mount: Path) -> Iterator[str]:
        """Start a run in the background, and remove it in the end."""
        options = [option for option in CONFINED if option != "--rm"]
        name = engine("run", "--detach", *options, *as_user(mount), IMAGE, "run", "--output-dir", "/results")
        yield name
        engine("rm", "--force", name)

    def stop(self, container: str) -> None:
        """Stop it, and see that the program ended by itself, with one line."""
        engine("stop", "-t", "2", container)
        assert engine("inspect", "--format", "{{.State.ExitCode}}", container) == "143"
        assert command(DOCKER, "logs", container).stderr == "experiment.py: ended by SIGTERM\n"

    def test_while_training(self, container: str, mount: Path) -> None:
        """After the first line of results, nothing is left in the mount."""
        with subprocess.Popen([DOCKER, "logs", "--follow", container], stdout=subprocess.PIPE) as log:
            assert log.stdout
            assert log.stdout.readline().startswith(b"seed=11 ")
            self.stop(container)

        assert not list(mount.iterdir())

    def test_while_importing(self, container: str, mount: Path) -> None:
        """From the moment the handlers stand, long before torch is there, and nothing is left in the mount."""
        caught = 0
        while not caught & SIGTERM_CAUGHT:
            status = engine("exec", container, "cat", "/proc/1/status")
            caught = int(re.findall(r"^SigCgt:\t(\w+)$", status, flags=re.MULTILINE)[0], 16)
        self.stop(container)

        assert not list(mount.iterdir())
        assert command(DOCKER, "logs", container).stdout == ""


class TestContents:
    """The image is its base, an environment, the code, and nothing else."""

    def test_what_it_adds_to_its_base(self) -> None:
        """Files come to two places alone, and the code's are exactly the listed ones."""
        code = {"experiment.py", "verify.py", "README.md", "LICENSE", "schemas", "expected"}
        for directory in (ROOT / "schemas", ROOT / "expected"):
            code |= {f"{directory.name}/{path.name}" for path in directory.iterdir()}

        added = {path for path in beyond_base() if not path.startswith("/opt/venv/")}

        assert added - {"/opt"} == {"/opt/venv", HOME, *(f"{HOME}/{name}" for name in code)}

    def test_no_compiler_installer_cache_test_or_git_data(self) -> None:
        """Beyond the base, no such file is there."""
        names = r"pip|gcc|cc|g\+\+|clang|git|\.git|\.cache|\.hypothesis|tests?|setup\.sh"

        assert not beyond_base("-regextype", "posix-extended", "-regex", rf".*/({names})")

    def test_its_packages_are_those_of_the_lock_file(self) -> None:
        """Each in the locked version; torch in its CPU build, and nothing of CUDA."""
        program = (
            "import importlib.metadata, torch; print(torch.version.cuda)\n"
            "for found in importlib.metadata.distributions(): print(found.name, found.version)"
        )
        locked = [Requirement(line.rstrip("\\")) for line in LOCK.splitlines() if re.match(r"\w", line)]
        here = {"sys_platform": "linux", "python_version": "3.11", "python_full_version": "3.11.0"}

        result = in_image("-c", program, options=("--entrypoint", "python"))

        cuda, *packages = result.stdout.splitlines()
        installed = {canonicalize_name(name): version for name, version in map(str.split, packages)}
        assert cuda == "None"
        assert not [name for name in installed if re.search("nvidia|cuda|triton", name)]
        assert {name: f"=={version}" for name, version in installed.items()} == {
            canonicalize_name(entry.name): str(entry.specifier)
            for entry in locked
            if entry.marker is None or entry.marker.evaluate(here)
        }

    def test_no_setuid_file_that_the_base_did_not_have(self) -> None:
        """Nobody becomes someone else by what the image adds."""
        assert not beyond_base("-type", "f", "-perm", "/6000")

    def test_its_user_can_write_to_tmp_alone(self) -> None:
        """Everything else, the code and the environment first, belongs to root and is closed to others."""
        assert find(IMAGE, "-writable", "!", "-type", "l", user="10001:10001") == ["/tmp"]  # noqa: S108 -- in the image
        assert not beyond_base("!", "-user", "root")

    def test_its_user_has_no_name_and_no_rights(self) -> None:
        """The configured user is 10001, whom the system does not know."""
        assert engine("image", "inspect", "--format", "{{.Config.User}}", IMAGE) == "10001:10001"
        assert "10001" not in engine("run", "--rm", "--entrypoint", "cat", IMAGE, "/etc/passwd", "/etc/group")

    def test_labels(self) -> None:
        """They say what the image is, of which version and revision, under which licence, and on which base."""
        labels = json.loads(engine("image", "inspect", "--format", "{{json .Config.Labels}}", IMAGE))
        revision = command("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").stdout.strip()
        if DEFAULTS["BASE_IMAGE"] == BASE_IMAGE:
            base, digest = BASE_IMAGE.split("@")
        else:
            base, digest = BASE_IMAGE, engine("image", "inspect", "--format", "{{.Id}}", BASE_IMAGE)

        described = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}

        assert described.pop("description")
        assert described == {
            "title": "checkpoint-resume",
            "version": in_image("--version").stdout.strip(),
            "licenses": "MIT",
            "base.name": base,
            "base.digest": digest,
            "source": "",
            "revision": revision,
        }

    def test_size_beyond_the_base(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It stays below 800 MB; the CUDA build alone would be several times that."""
        size, base = (int(engine("image", "inspect", "--format", "{{.Size}}", name)) for name in (IMAGE, BASE_IMAGE))
        with capsys.disabled():
            sys.stdout.write(f"({(size - base) / 1e6:.0f} MB beyond a base of {base / 1e6:.0f} MB) ")

        assert 0 < size - base < 800e6


class TestBuild:
    """The Dockerfile."""

    @pytest.fixture
    def tag(self) -> Iterator[str]:
        """Name another image, and remove it in the end."""
        name = f"{IMAGE}-another"
        yield name
        command(DOCKER, "rmi", name)

    @pytest.mark.parametrize("buildkit", ["0", "1"], ids=["classic", "BuildKit"])
    def test_either_builder_makes_the_same(self, buildkit: str, tag: str, tmp_path: Path) -> None:
        """All files have the same names, sizes, modes and owners, and the configuration is the same."""
        (tmp_path / "Dockerfile").write_text("FROM scratch\nLABEL probe=1\n", encoding="ascii")
        probe = command(DOCKER, "build", "--tag", tag, tmp_path, DOCKER_BUILDKIT=buildkit)
        if probe.returncode:
            pytest.skip(f"the engine lacks this builder: {probe.stderr.strip().splitlines()[0]}")

        built = command("make", "image", f"IMAGE={tag}", DOCKER_BUILDKIT=buildkit)

        assert built.returncode == 0, built.stdout + built.stderr
        listing = ("-path", "/opt/*", "!", "-type", "d", "-printf", r"%p %m %U:%G %s\n")
        assert sorted(find(tag, *listing)) == sorted(find(IMAGE, *listing))
        form = "{{json .Config.Env}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.User}} {{json .Config.Labels}}"
        assert engine("image", "inspect", "--format", form, tag) == engine("image", "inspect", "--format", form, IMAGE)

    def test_a_hash_that_does_not_match_stops_it(self, tag: str, tmp_path: Path) -> None:
        """An altered wheel is refused: it is the lock file's digests of torch that are altered here."""
        shutil.copy(ROOT / "Dockerfile", tmp_path)
        shutil.copytree(ROOT / "tools", tmp_path / "tools")
        altered = re.sub(r"(?m)^torch==.*\+cpu .*\n( .*\n)+", lambda entry: re.sub("256:..", "256:00", entry[0]), LOCK)
        (tmp_path / "requirements.txt").write_text(altered, encoding="utf-8")

        result = command(DOCKER, "build", "--tag", tag, "--target", "build", *IMAGE_ARGS, tmp_path)

        assert result.returncode != 0
        assert "DO NOT MATCH THE HASHES" in result.stdout + result.stderr

    def test_a_digest_that_does_not_match_stops_it(self, tag: str) -> None:
        """An image of the right name is not taken as the base when it is not the one of the digest."""
        engine("tag", BASE_IMAGE, tag)
        pinned = f"BASE_IMAGE={tag}@sha256:{'0' * 64}"

        result = command(DOCKER, "build", "--tag", f"{tag}:built", "--build-arg", pinned, ROOT)

        assert result.returncode != 0
        assert command(DOCKER, "image", "inspect", f"{tag}:built").returncode != 0
