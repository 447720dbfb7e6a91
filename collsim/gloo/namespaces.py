"""Network namespaces without names: they are there as long as a process holds their descriptors.

So nothing has to be taken down. When the server and its ranks have ended, however they ended, the
kernel removes the namespaces with all their interfaces; no name is left and none can collide.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collsim.gloo.lab import Shape, rank_links, rank_rates, switch_links, switch_rates

CLONE_NEWNET: Final = 0x40000000
_COMMAND_SECONDS: Final = 20.0
_CONGESTION: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")


class LabUnavailable(Exception):
    """This machine makes no lab, and why."""


@dataclass(frozen=True)
class Namespaces:
    """The namespaces of a lab.

    Attributes:
        switch: Descriptor of the bridge's.
        ranks: Descriptors of the ranks'.
    """

    switch: int
    ranks: tuple[int, ...]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """All of them."""
        return (self.switch, *self.ranks)

    def close(self) -> None:
        """Let go of them; those in which no process lives any more are gone then."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def enter(namespace: int) -> None:
    """Move this process, which must have one thread, into a network namespace.

    Raises:
        OSError: It may not.
    """
    _call("setns", namespace, CLONE_NEWNET)


def with_rights() -> list[str]:
    """What must stand before a command that makes a lab: nothing for root, else ``unshare …``.

    An ordinary user is root in a user namespace of their own, where the system allows these.

    Raises:
        LabUnavailable: It does not.
    """
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux")):
        if not shutil.which(tool):
            raise LabUnavailable(f"the lab needs the command {tool}, of the package {package}")
    refused = ""
    for prefix in ([], ["unshare", "--user", "--map-root-user"]):
        trial = [*prefix, "unshare", "--net", "true"]
        tried = subprocess.run(trial, capture_output=True, text=True, check=False)
        if not tried.returncode:
            return prefix
        refused = tried.stderr.strip()
    raise LabUnavailable(f"the lab needs root, or user namespaces, which are refused: {refused}")


def build(shape: Shape) -> Namespaces:
    """Make the lab; the calling process, which must be allowed to, stays where it is.

    Raises:
        LabUnavailable: It cannot be made here.
    """
    try:
        with _returning():
            made = Namespaces(_make(), tuple(_make() for _ in range(shape.n_ranks)))
    except OSError as error:
        raise LabUnavailable(
            f"this process may not make network namespaces ({error.strerror})"
        ) from None
    try:
        _furnish(shape, made)
    except BaseException:
        made.close()
        raise
    return made


def _furnish(shape: Shape, made: Namespaces) -> None:
    """Put cables and rates into new namespaces."""
    places = [f"/proc/self/fd/{descriptor}" for descriptor in made.ranks]
    with _returning():
        enter(made.switch)
        _batch("ip", switch_links(shape.n_ranks, places), made.ranks)
        _batch("tc", switch_rates(shape))
        for rank, descriptor in enumerate(made.ranks):
            enter(descriptor)
            with suppress(OSError):  # the kernel's own choice then, which is this one nearly always
                _CONGESTION.write_text("cubic")
            _batch("ip", rank_links(rank))
            _batch("tc", rank_rates(shape, rank))


def _make() -> int:
    """Move into a new network namespace, and give its descriptor."""
    _call("unshare", CLONE_NEWNET)
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def _returning() -> Iterator[None]:
    """Come back into the network namespace in which this began."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        enter(here)
        os.close(here)


def _call(function: str, *arguments: int) -> None:
    """A system call of Linux that Python has only in later versions."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _batch(tool: str, lines: Sequence[str], descriptors: Sequence[int] = ()) -> None:
    """Run commands of ``ip`` or ``tc`` in this namespace.

    Raises:
        LabUnavailable: One of them failed: the kernel lacks something, most likely.
    """
    try:
        done = subprocess.run(
            [tool, "-batch", "-"],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            pass_fds=descriptors,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabUnavailable(f"{tool} did not end within {_COMMAND_SECONDS:g} s") from None
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise LabUnavailable(f"{tool} could not set up the lab: {said[:300]}")
