"""One run in a whole new interpreter: `python -m resume_audit.process.fresh FD`."""

from __future__ import annotations

import os
import socket
import sys

from resume_audit.process.channel import Channel
from resume_audit.process.failure import Failure
from resume_audit.process.server import end_process


def main() -> None:
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    source, task = channel.receive()
    try:
        os.chdir(source.directory)
        factory = source.find()
    except BaseException as error:  # noqa: BLE001 -- the job's module may raise anything, SystemExit too
        channel.send(("failed", Failure.of(error, "import", None)))
        end_process(0)
    task(channel, factory)
    end_process(0)


if __name__ == "__main__":
    main()
