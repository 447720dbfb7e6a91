"""Messages between the caller, the server and the ranks: pickles with their length in front.

They travel over pipes between processes that one user started here, never over a network. Waits
have deadlines, because a process at the other end can be stopped at any byte.
"""

import math
import os
import pickle
import select
import struct
import time
from typing import Any, Final

_LENGTH: Final = struct.Struct("!Q")


class Closed(Exception):
    """The other side of the pipe is gone."""


class Late(Exception):
    """The other side did not read or write in time."""


def encode(message: object) -> bytes:
    """A message as it travels."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Incoming:
    """One message on its way in, in as many parts as the pipe gives."""

    def __init__(self) -> None:
        self._space = memoryview(bytearray(_LENGTH.size))
        self._filled = 0
        self._has_length = False

    def read(self, descriptor: int) -> bool:
        """Take in what has come; whether the message is complete.

        Raises:
            Closed: Nobody writes any more.
        """
        count = os.readv(descriptor, [self._space[self._filled :]])
        if count == 0:
            raise Closed
        self._filled += count
        if self._filled < len(self._space):
            return False
        if not self._has_length:
            (length,) = _LENGTH.unpack(self._space)
            self._space, self._filled = memoryview(bytearray(length)), 0
            self._has_length = True
            return False  # no pickle is empty
        return True

    def message(self) -> Any:
        """The complete message."""
        return pickle.loads(self._space)


def write_some(descriptor: int, body: memoryview) -> memoryview:
    """Write what a non-blocking pipe takes at once, and return the rest.

    Raises:
        Closed: Nobody reads any more.
    """
    try:
        return body[os.write(descriptor, body) :]
    except BlockingIOError:
        return body
    except OSError as error:
        raise Closed from error


def send(descriptor: int, body: bytes, deadline: float = math.inf) -> None:
    """Write one encoded message.

    Args:
        descriptor: The pipe; it is made non-blocking.
        body: What `encode` gave.
        deadline: When to give up, on the monotonic clock (s).

    Raises:
        Closed: Nobody reads any more.
        Late: The deadline has passed.
    """
    os.set_blocking(descriptor, False)
    rest = memoryview(body)
    while rest:
        _wait(descriptor, select.POLLOUT, deadline)
        rest = write_some(descriptor, rest)


def receive(descriptor: int, deadline: float = math.inf) -> Any:
    """Read one message.

    Raises:
        Closed: Nobody writes any more.
        Late: The deadline has passed.
    """
    incoming = Incoming()
    is_complete = False
    while not is_complete:
        _wait(descriptor, select.POLLIN, deadline)
        is_complete = incoming.read(descriptor)
    return incoming.message()


def _wait(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    left = deadline - time.monotonic()
    if not poll.poll(None if left == math.inf else max(0.0, left) * 1000):
        raise Late
