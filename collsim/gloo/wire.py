"""Messages between the caller, the server and the ranks: pickles with their length in front.

They travel over pipes between processes that one user started here, never over a network.
"""

import os
import pickle
import struct
from typing import Any, Final

_LENGTH: Final = struct.Struct("!Q")


class Closed(Exception):
    """The other side of the pipe is gone."""


def send(descriptor: int, message: object) -> None:
    """Write one message.

    Raises:
        Closed: Nobody reads any more.
    """
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    view = memoryview(_LENGTH.pack(len(body)) + body)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Closed from error


def receive(descriptor: int) -> Any:
    """Read one message.

    Raises:
        Closed: Nobody writes any more.
    """
    (length,) = _LENGTH.unpack(_read(descriptor, _LENGTH.size))
    return pickle.loads(_read(descriptor, length))


def _read(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise Closed
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
