"""The digest of an object of a class without a canonical encoding: that of the graph that it reaches."""

from __future__ import annotations

import hashlib
from typing import Any

from resume_audit.graph.nodes import Leaf
from resume_audit.graph.walk import Walk


def graph_bytes(value: Any) -> bytes:
    """A digest of all that is reachable from `value`: kinds, classes, contents, and who holds what where."""
    hasher = hashlib.sha256()
    for node in Walk().of_value(value).nodes:
        hasher.update(f"{node.kind}|{node.type}|{node.content!r}|{len(node.parts)};".encode())
        for part in node.parts:
            target = part.target.content if isinstance(part.target, Leaf) else str(part.target).encode()
            hasher.update(f"{part.label.kind}|{part.label.name!r}|{part.label.node}|".encode() + target + b";")
    return hasher.digest()
