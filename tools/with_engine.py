"""Run a command that needs a container engine and the pinned base image, on a machine that may have neither.

    sudo python3 tools/with_engine.py make image-test

Where no engine answers, a private daemon is started, with Debian's docker.io installed if need be, and stopped again
when the command has ended. Where the pinned base cannot be pulled, a stand-in is made: the same Debian release with its
own Python of the same series, from the Debian archive that apt is configured with, plus what pip needs here to reach an
index (its settings, the certificates, local folders of wheels). The command finds in its environment

    DOCKER_HOST   the private daemon's socket, if there is one, and
    DOCKER        its own client
    BASE_IMAGE    the base image that can be had
    IMAGE_ARGS    the options with which `make image` builds the unchanged Dockerfile on it

Exit status: the command's own; 2 where no engine or no base can be had.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = "checkpoint-resume-stand-in"
# What makes pip find packages; a constraint or a proxy's password is none of it.
PIP_SETTINGS = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "timeout", "default-timeout")
SECONDS_TO_START = 60
SECONDS_TO_PULL = 300


class UnavailableError(Exception):
    """Something cannot be had on this machine; the message names it and the reason."""


def say(message: str) -> None:
    """Print a line of our own amid the output of other programs."""
    print(f"with_engine: {message}", flush=True)


def docker() -> str:
    """Return the engine's client, as `make` would call it."""
    return os.environ.get("DOCKER", "docker")


def succeeds(*command: str, timeout: float | None = None) -> bool:
    """Run a command in silence and tell whether it is there and ends with status 0 in time (seconds)."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=timeout).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def run(*command: str, **variables: str) -> int:
    """Run a command with more environment variables and return its exit status; an interruption reaches it, too.

    Raises:
        UnavailableError: it is not there.
    """
    try:
        with subprocess.Popen(command, env={**os.environ, **variables}) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()  # not killed: it has things of its own to clean up
                process.wait()
                raise
    except FileNotFoundError:
        raise UnavailableError(f"no program '{command[0]}'") from None


def output(*command: str) -> str:
    """Return what a command prints.

    Raises:
        UnavailableError: it is not there, or fails.
    """
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise UnavailableError(str(error)) from None


def require_program(program: str, package: str) -> None:
    """Install a Debian package unless the program is there.

    Raises:
        UnavailableError: the package cannot be installed.
    """
    if shutil.which(program):
        return
    say(f"installing {package}")
    succeeds("apt-get", "update", "-qq")  # without it, the lists that are there may do
    install = ["apt-get", "install", "-qq", "--no-install-recommends", package]
    if not shutil.which("apt-get") or run(*install, DEBIAN_FRONTEND="noninteractive"):
        raise UnavailableError(f"{package} is not there and cannot be installed: it needs root, and Debian's packages")


@contextlib.contextmanager
def private_daemon() -> Iterator[str]:
    """Start a daemon with all its state in a folder of its own, give its address, and stop it in the end.

    It makes no bridge and no firewall rule: containers get the machine's network, or none. Of another daemon it leaves
    everything as it is.

    Raises:
        UnavailableError: it does not start.
    """
    if os.geteuid():
        raise UnavailableError("no container engine answers, and only root can start one")
    require_program("dockerd", "docker.io")
    # Of several clients the daemon's own, which knows as many builders as it does.
    client = Path(str(shutil.which("dockerd"))).parents[1] / "bin" / "docker"
    if client.exists():
        os.environ["DOCKER"] = str(client)
    with tempfile.TemporaryDirectory(prefix="engine-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        address = f"unix://{home}/socket"
        command = ["dockerd", "--host", address, "--data-root", name + "/data", "--exec-root", name + "/exec"]
        command += ["--pidfile", name + "/pid", "--iptables=false", "--ip-forward=false", "--log-level", "warn"]
        if not Path("/sys/class/net/docker0").exists():  # made by another daemon, it would be removed
            command += ["--bridge", "none"]
        with (home / "log").open("wb") as log:
            # In a session of its own, so that Ctrl-C reaches the containers' clients, and it only from here.
            daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + SECONDS_TO_START
            while not succeeds(docker(), "--host", address, "version"):
                if daemon.poll() is not None or time.monotonic() > deadline:
                    last = (home / "log").read_text(errors="replace").strip().splitlines()[-1:]
                    raise UnavailableError(f"dockerd does not start: {' '.join(last)}")
                time.sleep(0.1)
            say(f"started a private daemon, process {daemon.pid}")
            yield address
        finally:
            daemon.terminate()
            try:
                daemon.wait(SECONDS_TO_START)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
            for mount in reversed(Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()):
                if mount.split()[1].startswith(f"{home}/"):  # it leaves one behind, for the network of its containers
                    succeeds("umount", mount.split()[1])
            say(f"stopped the private daemon, process {daemon.pid}")


def pip_settings() -> dict[str, list[str]]:
    """Return what pip is configured with here, by setting; an environment variable outweighs a file, as in pip."""
    settings: dict[str, list[str]] = {}
    for line in output(sys.executable, "-m", "pip", "config", "list").splitlines():  # :env: comes first
        match = re.fullmatch(r"([^.]+)\.([a-z-]+)='(.*)'", line)
        if match and match[2] in PIP_SETTINGS:
            settings.setdefault(match[2].removeprefix("default-"), match[3].replace("\\n", " ").split())
    return settings


def debian_archive() -> str:
    """Return the address of the Debian archive that apt is configured with.

    Raises:
        UnavailableError: there is none.
    """
    form = "$(ORIGIN) $(COMPONENT) $(REPO_URI) $(CODENAME)"
    for line in output("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines():
        origin, component, address, codename = line.split()
        if (origin, component) == ("Debian", "main") and "-" not in codename:
            return address
    raise UnavailableError("apt is configured with no Debian archive to make a stand-in base from")


def make_stand_in(release: str) -> None:
    """Make the stand-in base and name it `STAND_IN`.

    Raises:
        UnavailableError: it cannot be made.
    """
    require_program("mmdebstrap", "mmdebstrap")
    with tempfile.TemporaryDirectory(prefix="stand-in-") as name:
        tree, configuration = Path(name, "tree"), ["[global]"]
        for setting, values in pip_settings().items():
            # A folder of wheels comes along; an index in a folder has nothing that a lock file could ask for.
            kept = [value for value in values if not value.startswith("file:")]
            configuration += [f"{setting} = {' '.join(kept)}"] if kept else []
            for folder in kept if setting == "find-links" else []:
                if Path(folder).is_dir():
                    shutil.copytree(folder, tree / folder.lstrip("/"), dirs_exist_ok=True)
            if setting == "cert":
                bundle = tree / kept[0].lstrip("/")
                bundle.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(kept[0], bundle)
        (tree / "etc").mkdir(parents=True, exist_ok=True)
        (tree / "etc" / "pip.conf").write_text("\n".join([*configuration, ""]))
        archive = Path(name, "base.tar")
        command = ["mmdebstrap", "--variant=minbase", "--include=python3,python3-venv,python3-pip,ca-certificates"]
        command += [f"--customize-hook=sync-in {shlex.quote(str(tree))} /", release, str(archive), debian_archive()]
        Path(name).chmod(0o755)  # apt gives up its rights before it downloads
        if run(*command, TMPDIR=name):
            raise UnavailableError(f"mmdebstrap cannot make a {release} base")
        output(docker(), "import", str(archive), STAND_IN)


def base_image() -> dict[str, str]:
    """Return the variables that say which base can be had, and print which it is.

    Raises:
        UnavailableError: neither the pinned base nor a stand-in can be had.
    """
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    match = re.search(r"^ARG BASE_IMAGE=(python:(\d+\.\d+)\S*-slim-(\w+)@sha256:\w+)$", dockerfile, re.MULTILINE)
    if not match:
        raise UnavailableError("the Dockerfile's base is no python:X.Y.Z-slim-RELEASE with a digest")
    pinned, series, release = match.groups()
    if succeeds(docker(), "pull", pinned, timeout=SECONDS_TO_PULL):
        say(f"base: the pinned {pinned}")
        return {"BASE_IMAGE": pinned, "IMAGE_ARGS": "--network host"}
    say(f"the pinned base {pinned} cannot be pulled; making a stand-in")
    make_stand_in(release)
    version = output(docker(), "run", "--rm", "--network", "none", STAND_IN, "python3", "--version").split()[-1]
    if not version.startswith(f"{series}."):
        raise UnavailableError(f"the stand-in base has Python {version}, not {series}")
    digest = output(docker(), "image", "inspect", "--format", "{{.Id}}", STAND_IN)
    say(f"base: a stand-in, Debian {release} with its Python {version}, {digest}")
    build_args = {"BASE_IMAGE": STAND_IN, "BASE_NAME": STAND_IN, "BASE_DIGEST": digest}
    options = ["--network host", *(f"--build-arg {name}={value}" for name, value in build_args.items())]
    return {"BASE_IMAGE": STAND_IN, "IMAGE_ARGS": " ".join(options)}


def main(command: list[str]) -> int:
    """Run the command with an engine and a base; return its exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # like Ctrl-C: what was started is stopped
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    if not command:
        raise UnavailableError("no command: python3 tools/with_engine.py COMMAND ...")
    with contextlib.ExitStack() as stack:
        if succeeds(docker(), "version"):
            say("using the container engine that answers")
        else:
            os.environ["DOCKER_HOST"] = stack.enter_context(private_daemon())
        os.environ |= base_image()
        return run(*command)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UnavailableError as error:
        print(f"with_engine: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
