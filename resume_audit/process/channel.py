"""Objects over a socket, one after the other."""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import time
from typing import Any

HEADER = struct.Struct("<Q")


class Channel:
    """One end of a socket that carries pickled objects, each preceded by its length in bytes."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Any) -> None:
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(HEADER.pack(len(body)) + body)

    def receive(self, deadline: float | None = None) -> Any:
        """The next object. Raises EOFError where the other end has closed, TimeoutError after `deadline`."""
        (length,) = HEADER.unpack(self._exactly(HEADER.size, deadline))
        return pickle.loads(self._exactly(length, deadline))

    def close(self) -> None:
        """Close this end: whoever waits at either end, in another thread too, is told that it is closed."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def drop(self) -> None:
        """Let go of a copy of this end that a fork has left; the connection itself goes on."""
        self.socket.close()

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            try:
                self.socket.settimeout(left)
                part = self.socket.recv(min(count - len(parts), 1 << 20))
            except TimeoutError:
                raise
            except OSError as lost:
                raise EOFError from lost
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


def connect(path: str) -> Channel:
    """A channel to the server that listens at `path`."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.connect(path)
    return Channel(end)
