"""The caller's side: start servers, send runs to them, hear how they end."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from resume_audit.options import UsageError
from resume_audit.process.channel import Channel, connect
from resume_audit.process.failure import Failure
from resume_audit.process.server import Prepare, become_job_server, end_process, lead_group, warm_up
from resume_audit.process.source import Factory, Source

Task = Callable[[Channel, Factory], None]
HASH_SEEDS = ("0", "1")
"""`PYTHONHASHSEED` of the first and of the second kind of process."""


class RunFailed(Exception):  # noqa: N818 -- named after what it tells
    """A run that did not end well."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Interpreter:
    """A base server in an interpreter of its own, with one hash seed; it ends when its connection is closed."""

    def __init__(self, folder: Path, hash_seed: str) -> None:
        self.path = str(folder / f"base{hash_seed}")
        self.folder, self.hash_seed = folder, hash_seed
        ours, theirs = socket.socketpair()
        environment = os.environ | _own_environment(hash_seed, folder)
        command = [
            sys.executable,
            "-c",
            "from resume_audit.process.server import main; main()",
            str(theirs.fileno()),
            self.path,
        ]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self.control = Channel(ours)
        self.ready = False
        self.lock = threading.Lock()

    def wait_ready(self) -> None:
        with self.lock:
            if not self.ready:
                self.control.receive()
                self.ready = True

    def close(self) -> None:
        self.control.close()
        if not self.ready:  # still importing: it would find out only after that
            self.process.kill()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Servers:
    """The two base servers and a folder for their sockets; a context that leaves neither behind."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="resume-audit-"))
        self.interpreters: dict[str, Interpreter] = {}
        self.count = 0

    def start(self) -> None:
        """Let both interpreters begin with their imports, side by side."""
        for hash_seed in HASH_SEEDS:
            self.interpreter(hash_seed)

    def interpreter(self, hash_seed: str) -> Interpreter:
        if hash_seed not in self.interpreters:
            self.interpreters[hash_seed] = Interpreter(self.folder, hash_seed)
        return self.interpreters[hash_seed]

    def socket_path(self) -> str:
        self.count += 1
        return str(self.folder / f"job{self.count}")

    def close(self) -> None:
        for interpreter in self.interpreters.values():
            interpreter.close()
        self.interpreters.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ForkLauncher:
    """Runs forked from servers that have imported the job's module, one for each hash seed."""

    def __init__(
        self, servers: Servers, source: Source, fallback: Factory | None = None, timeout: float | None = None
    ) -> None:
        self.servers, self.source, self.fallback, self.timeout = servers, source, fallback, timeout
        self.prepared: dict[str, str] = {}
        self.open: set[Channel] = set()
        self.closed = False
        self.constants: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.forked: list[int] = []

    def prepare(self, hash_seed: str = HASH_SEEDS[0]) -> None:
        """Have the job's module imported. Raises RunFailed with phase `import`."""
        with self.lock:
            if hash_seed in self.prepared:
                return
            path = self.servers.socket_path()
            if self.source.kind == "object":
                control = self._fork_here(path)
            else:
                interpreter = self.servers.interpreter(hash_seed)
                interpreter.wait_ready()
                control = self._opened(connect(interpreter.path))
                control.send(Prepare(self.source, path))
            try:
                self.constants = self._imported(control)
            except RunFailed:
                control.close()
                if self.fallback is None or self.source.kind == "object":
                    raise
                self.source = Source("object", "", self.source.factory, self.fallback)
                path += "f"
                self.constants = self._imported(self._fork_here(path))
            self.prepared[hash_seed] = path

    def _imported(self, control: Channel) -> dict[str, Any]:
        """The constants of the job's module, once a server has imported it. Raises RunFailed with phase `import`."""
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        try:
            kind, content = control.receive(deadline)
        except TimeoutError:
            raise RunFailed(_timed_out(self.timeout, "import", None)) from None
        except EOFError:
            kind, content = "ended", None
        if kind == "failed":
            raise RunFailed(content)
        if kind == "ended":
            raise RunFailed(_ended(content, "import", None))
        constants: dict[str, Any] = content
        return constants

    def _fork_here(self, path: str) -> Channel:
        """A server forked from this very process, for a factory that no other process can import."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                lead_group(0)
                ours.close()
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.environ.update(_compiled(self.servers.folder))
                warm_up()
                become_job_server(self.source, path, Channel(theirs))
            finally:
                end_process(70)
        theirs.close()
        self.forked.append(pid)
        return self._opened(Channel(ours))

    def _opened(self, channel: Channel) -> Channel:
        """Remember a connection, to be closed with the launcher; after that none is opened any more."""
        self.open.add(channel)
        if self.closed:
            channel.close()
        return channel

    @property
    def different_hash_seeds(self) -> bool:
        return self.source.kind != "object"

    def start(self, task: Task, *, second: bool = False) -> Channel:
        hash_seed = HASH_SEEDS[1] if second and self.different_hash_seeds else HASH_SEEDS[0]
        self.prepare(hash_seed)
        channel = self._opened(connect(self.prepared[hash_seed]))
        channel.send(task)
        return channel

    def done(self, channel: Channel) -> None:
        """Close the connection of a run that has ended or is to end."""
        self.open.discard(channel)
        channel.close()

    def close(self) -> None:
        """End the servers and the runs that are still going on."""
        self.closed = True
        for channel in list(self.open):
            channel.close()
        self.open.clear()
        for pid in self.forked:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self.forked.clear()


class FreshLauncher:
    """Every run in a whole new interpreter."""

    def __init__(self, source: Source, folder: Path, timeout: float | None = None) -> None:
        if source.kind == "object":
            raise UsageError("--fresh wants a factory that a new interpreter can import")
        self.source, self.folder, self.timeout = source, folder, timeout
        self.constants: dict[str, Any] = {}
        self.different_hash_seeds = True
        self.running: set[_ProcessChannel] = set()

    def prepare(self, hash_seed: str = HASH_SEEDS[0]) -> None:
        """Ask a new interpreter what the job's module says of its audit. Raises RunFailed with phase `import`."""
        self.constants = run(self, _TellConstants(), self.timeout, hash_seed=hash_seed)

    def start(self, task: Task, *, second: bool = False, hash_seed: str | None = None) -> Channel:
        ours, theirs = socket.socketpair()
        seed = hash_seed or HASH_SEEDS[1 if second else 0]
        process = subprocess.Popen(
            [sys.executable, "-c", "from resume_audit.process.fresh import main; main()", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], env=os.environ | _own_environment(seed, self.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        channel = _ProcessChannel(ours, process, self.running)
        channel.send((self.source, task))
        return channel

    def done(self, channel: Channel) -> None:
        """End the process of a run and wait for it."""
        channel.close()

    def close(self) -> None:
        """End the runs that are still going on; nothing stands by between runs."""
        for channel in list(self.running):
            channel.close()


class _ProcessChannel(Channel):
    """A channel to a process of our own: its end is told when the connection ends."""

    def __init__(self, end: socket.socket, process: subprocess.Popen[bytes], running: set[_ProcessChannel]) -> None:
        super().__init__(end)
        self.process, self.told, self.running = process, False, running
        running.add(self)

    def receive(self, deadline: float | None = None) -> Any:
        try:
            return super().receive(deadline)
        except EOFError:
            if self.told:
                raise
            self.told = True
            return ("ended", self.process.wait())

    def close(self) -> None:
        super().close()
        self.running.discard(self)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class _TellConstants:
    phase = "import"

    def __call__(self, channel: Channel, factory: Factory) -> None:
        from resume_audit.process.server import module_constants  # noqa: PLC0415 -- runs in the other process

        channel.send(("result", module_constants(factory)))


Launcher = ForkLauncher | FreshLauncher


def run(launcher: Launcher, task: Task, timeout: float | None, **where: Any) -> Any:
    """The result of one task in a process of its own. Raises RunFailed where it raised, hung, was killed or exited."""
    try:
        channel = launcher.start(task, **where)
    except OSError as error:
        raise RunFailed(Failure("baseline", None, "Killed", f"the server is gone ({error})")) from None
    deadline = None if timeout is None else time.monotonic() + timeout
    phase, step = getattr(task, "phase", "baseline"), None
    result: tuple[Any] | None = None
    try:
        while True:
            message = channel.receive(deadline)
            if message[0] == "at":
                _, phase, step = message
            elif message[0] == "result":
                result = (message[1],)
            elif message[0] == "failed":
                raise RunFailed(message[1])
            elif message[0] == "ended":
                if result is not None:
                    return result[0]
                raise RunFailed(_ended(message[1], phase, step))
    except TimeoutError:
        raise RunFailed(_timed_out(timeout, phase, step)) from None
    except EOFError:
        if result is not None:
            return result[0]
        raise RunFailed(_ended(None, phase, step)) from None
    finally:
        launcher.done(channel)


def _timed_out(timeout: float | None, phase: str, step: int | None) -> Failure:
    return Failure(phase, step, "Timeout", f"still not done after {timeout:g} s")


def _ended(code: int | None, phase: str, step: int | None) -> Failure:
    if code is None:
        return Failure(phase, step, "Killed", "the process is gone without a word")
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Failure(phase, step, "Killed", f"the process was killed by {name}")
    return Failure(phase, step, "Exited", f"the process exited with status {code}")


def _own_environment(hash_seed: str, folder: Path) -> dict[str, str]:
    """What a new interpreter is told: its hash seed, and where it finds this package in whatever folder it starts."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path, **_compiled(folder)}


def _compiled(folder: Path) -> dict[str, str]:
    """Where torch's compiler, which makes itself a folder in any case, is to have it: with ours, unless it has one."""
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        place = Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
        if "TORCHINDUCTOR_CACHE_DIR" not in os.environ and not place.exists():
            return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}
    return {}


_kept: Servers | None = None


@contextlib.contextmanager
def keep_servers() -> Iterator[None]:
    """Let all audits within the block share their servers, so that torch is imported once."""
    global _kept  # noqa: PLW0603 -- one set of servers for the whole process
    if _kept is not None:
        yield
        return
    with Servers() as servers:
        servers.start()
        _kept = servers
        try:
            yield
        finally:
            _kept = None


@contextlib.contextmanager
def open_servers() -> Iterator[Servers]:
    """The servers that are kept, or some for this block alone."""
    if _kept is not None:
        yield _kept
        return
    with Servers() as servers:
        yield servers
