"""The fork server: imports once, then gives every run a process that has built nothing.

A base server has imported torch and what a first optimizer imports. Asked to prepare a job it forks a server
of the same kind that has imported the job's module too; asked for a run it forks the run. Each child leads a
process group of its own, so that whatever it has started ends with it. Whoever asked holds the other end of a
connection: closing it is the order to end, and after a child's end the server writes how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from resume_audit.process.channel import Channel
from resume_audit.process.failure import Failure
from resume_audit.process.source import Factory, Source

PATIENCE = 2.0
"""Seconds that a server's children are given to end by themselves."""

START_SEED = 0x5EED
"""What the generators of every process start from, whatever the job's own seed."""


def warm_up() -> None:
    """Import what a job is going to need, start no thread, and leave nothing built."""
    import numpy as np  # noqa: F401, PLC0415 -- imported for those that come after
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    import resume_audit.probe  # noqa: PLC0415
    import resume_audit.saving  # noqa: F401, PLC0415

    with contextlib.suppress(Exception):
        import torch._dynamo  # noqa: PLC0415 -- a first optimizer imports it
    with contextlib.suppress(Exception):
        import torch.utils.data  # noqa: PLC0415
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    gc.collect()


def seed_process() -> None:
    """Set the process's own generators to the state in which every run starts."""
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    random.seed(START_SEED)
    np.random.seed(START_SEED)  # noqa: NPY002 -- the global generator is meant
    torch.manual_seed(START_SEED)


class Server:
    """Forks a child for every request that arrives at `path`, until `control` is closed."""

    def __init__(self, path: str, control: Channel, factory: Factory | None = None) -> None:
        self.control, self.factory = control, factory
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(64)
        self.children: dict[int, Channel] = {}
        self.deserted: dict[int, float] = {}  # job servers that nobody wants any more, and when their patience ends
        self.selector = selectors.DefaultSelector()

    def serve(self) -> NoReturn:
        gc.collect()
        gc.freeze()  # what is here is shared with every child: no collection need ever look at it there
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self.selector.register(self.listener, selectors.EVENT_READ, "listener")
        self.selector.register(self.control, selectors.EVENT_READ, "control")
        self.selector.register(woken, selectors.EVENT_READ, "woken")
        self.plumbing = (woken, wakes)
        while True:
            for key, _ in self.selector.select(PATIENCE if self.deserted else None):
                if key.data == "listener":
                    self.accept()
                elif key.data == "control":
                    self.end()
                elif key.data == "woken":
                    os.read(woken, 4096)
                    self.reap()
                else:
                    self.desert(key.data)
            for pid in [pid for pid, end in self.deserted.items() if end < time.monotonic()]:
                kill_group(pid)
                del self.deserted[pid]

    def desert(self, pid: int) -> None:
        """Whoever asked for a child has turned away: end a run at once; a job server hears of it and ends by itself.

        It has to end its own runs first; one that is still importing does not hear of it.
        """
        if pid not in self.children:  # it has ended between the news and now
            return
        self.selector.unregister(self.children[pid])
        if self.factory is not None:
            kill_group(pid)
        else:
            self.deserted[pid] = time.monotonic() + PATIENCE

    def accept(self) -> None:
        channel = Channel(self.listener.accept()[0])
        try:
            task = channel.receive()
        except EOFError:
            channel.close()
            return
        pid = os.fork()
        if pid == 0:
            self.become(channel, task)
        lead_group(pid)  # the child does so too: whoever comes first, it leads one before it can be wanted no more
        self.children[pid] = channel
        self.selector.register(channel, selectors.EVENT_READ, pid)

    def become(self, channel: Channel, task: Any) -> NoReturn:
        """What the child does: it lets go of all that is the server's and follows the request."""
        status = 70
        try:
            lead_group(0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.selector.close()
            self.listener.close()
            self.control.drop()
            for other in self.children.values():
                other.drop()
            for end in self.plumbing:
                os.close(end)
            task(channel, self.factory)
            status = 0
        except EOFError:
            status = 0
        except BaseException:  # noqa: BLE001 -- the child must never return into the server's loop
            traceback.print_exc()
        finally:
            end_process(status)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            kill_group(pid)  # whatever the run has left behind
            self.deserted.pop(pid, None)
            channel = self.children.pop(pid, None)
            if channel is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self.selector.unregister(channel)
                with contextlib.suppress(OSError):
                    channel.send(("ended", os.waitstatus_to_exitcode(status)))
                channel.close()

    def end(self) -> NoReturn:
        """End, with all that was forked here: servers end by themselves, and with them their runs."""
        for pid, channel in self.children.items():
            channel.drop()
            if self.factory is not None:
                kill_group(pid)
        end = time.monotonic() + PATIENCE
        while self.children and time.monotonic() < end:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            self.children.pop(pid, None)
            if pid == 0:
                time.sleep(0.005)
        for pid in self.children:
            kill_group(pid)
        end_process(0)


class Prepare:
    """The request for a server that has imported a job's module."""

    def __init__(self, source: Source, path: str) -> None:
        self.source, self.path = source, path

    def __call__(self, channel: Channel, _: Factory | None) -> NoReturn:
        become_job_server(self.source, self.path, channel)


def become_job_server(source: Source, path: str, control: Channel) -> NoReturn:
    """Import the job's module, say so (or how that failed), and serve."""
    with quiet():
        try:
            os.chdir(source.directory)
            factory = source.find()
            constants = module_constants(factory)
        except BaseException as error:  # noqa: BLE001 -- SystemExit included: the module is not ours
            control.send(("failed", Failure.of(error, "import", None)))
            end_process(0)
    server = Server(path, control, factory)
    control.send(("ready", constants))
    server.serve()


def module_constants(factory: Callable[..., Any]) -> dict[str, Any]:
    """What the job's module says of its own audit: STEPS, INTERRUPT, CHAIN."""
    while hasattr(factory, "func"):
        factory = factory.func
    module = sys.modules.get(getattr(factory, "__module__", "") or "")
    names = getattr(module, "__dict__", {})
    return {name: names[name] for name in ("STEPS", "INTERRUPT", "CHAIN") if name in names}


@contextlib.contextmanager
def quiet() -> Any:
    """Send what the job prints where it disturbs no report: to nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    yield


def lead_group(pid: int) -> None:
    """Let a process, 0 for this one, lead a process group of its own."""
    with contextlib.suppress(OSError):  # it has ended already
        os.setpgid(pid, pid)


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_process(status: int) -> NoReturn:
    """End at once: no exit handler of the process this one was forked from may run twice."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def main() -> NoReturn:
    """A base server, as its own interpreter: `python -m resume_audit.process.server FD PATH`."""
    fd, path = sys.argv[1:]
    control = Channel(socket.socket(fileno=int(fd)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one at the keyboard is told by whoever started this
    warm_up()
    server = Server(path, control)
    with contextlib.suppress(BrokenPipeError):  # whoever started this has gone in the meantime
        control.send(("ready", {}))
        server.serve()
    end_process(0)


if __name__ == "__main__":
    main()
