"""The fork server, where its children and those who ask for them come and go."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_audit.process.channel import Channel
from resume_audit.process.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server that does not run, at a place of its own."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as folder:
        made = Server(str(Path(folder) / "here"), Channel(ours), factory=lambda seed: None)
        yield made
        made.listener.close()
        made.selector.close()
    ours.close()
    theirs.close()


def test_news_of_a_child_that_has_ended_are_no_news(server: Server) -> None:
    """The end of a connection may be heard after the end of the child: then there is nothing left to be done."""
    server.desert(os.getpid())  # this process, too, would be killed were it not looked up

    assert server.children == {}


def test_a_run_that_nobody_wants_is_ended(server: Server) -> None:
    """A child whose connection is closed from the other side is killed with its group, and told once it has ended."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        while True:
            pass
    channel = Channel(ours)
    server.children[pid] = channel
    server.selector.register(channel, 1, pid)
    theirs.close()
    while os.getpgid(pid) != pid:  # it has not come to lead its group yet
        pass

    server.desert(pid)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9
    assert list(server.selector.get_map().values()) == []
    channel.close()
