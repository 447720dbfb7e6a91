"""The process that forks ranks: it imports torch once and has one thread, so forking is safe.

It obeys requests on its standard input. At the end of its input it kills its ranks and goes, so
nothing outlives the caller, even one that was killed. Started as ``python -m collsim.gloo.server``.
"""

import os
import sys
from contextlib import suppress
from typing import Any

from collsim.gloo.availability import import_torch
from collsim.gloo.forks import Group, fork_group
from collsim.gloo.namespaces import LabUnavailable
from collsim.gloo.probes import probe
from collsim.gloo.watch import GRACE, Failure, exchange
from collsim.gloo.wire import Closed, encode, receive, send


def obey(requests: int, answers: int) -> None:
    """Do what the caller asks for until it goes.

    Raises:
        Closed: It has gone.
    """
    group: Group | None = None
    try:
        while True:
            request, *arguments = receive(requests)
            answer: list[Any] | Failure = []
            match request:
                case "group":
                    n_ranks, timeout, shape = arguments
                    try:
                        group = fork_group(n_ranks, timeout, answers, shape)
                    except LabUnavailable as error:
                        answer = Failure(str(error), is_unavailable=True)
                    except OSError as error:
                        answer = Failure(f"{n_ranks} ranks cannot be started: {error}")
                    else:
                        answer = exchange(group, (), timeout, requests)
                case "work" if group is not None:
                    work, timeout = arguments
                    answer = exchange(group, work, timeout, requests)
                case "probe" if group is None:
                    work, timeout, patience = arguments
                    answer = probe(work, timeout, patience, requests, answers)
                case "end" if group is not None:
                    group.end(patience=GRACE)
                    group = None
            if isinstance(answer, Failure) and group is not None:
                group.end(patience=0)
                group = None
            send(answers, encode(answer))
    finally:
        if group is not None:
            group.end(patience=0)


def main() -> None:
    """Get ready, say so, and obey."""
    requests, answers = sys.stdin.fileno(), os.dup(sys.stdout.fileno())
    os.dup2(2, 1)  # what libraries print must not mix with answers
    with suppress(Closed):
        ready = import_torch()
        send(answers, encode(ready))
        if not isinstance(ready, str):
            obey(requests, answers)


if __name__ == "__main__":
    main()
