"""How messages cross links: one after the other (`FifoLinks`), or sharing them (`FairLinks`)."""

from functools import partial
from math import ceil

from simpy.events import Event

from collsim.fairness import connected_flows, max_min_rates
from collsim.network import PICOSECONDS
from collsim.simulation.world import Moment, Process, Steps, World


class FifoLinks:
    """Links that carry one message after the other, in the order of requests."""

    def __init__(self, world: World, store_and_forward: bool) -> None:
        self.world = world
        self.store_and_forward = store_and_forward
        self.free: dict[int, int] = {}

    def cross(self, transfer: int, steps: Steps) -> Process:
        """Take each link of the route in turn; end when the last byte has arrived."""
        world = self.world
        hops = range(world.first_hop[transfer], world.first_hop[transfer + 1])
        last_byte = 0  # when it reaches the link
        for stage, hop in enumerate(hops, start=1):
            link, latency = world.link[hop], world.hop_latency[hop]
            start = max(world.now, self.free.get(link, 0))
            self.free[link] = start + world.service[hop]
            tail = max(self.free[link], last_byte)
            world.hop_start[hop], world.hop_end[hop] = start, tail
            if stage == 1:
                world.times["started"][transfer] = start
                world.call(tail, transfer, world.leave, lambda: steps.has_left(transfer))
            last_byte = tail + latency
            if hop + 1 in hops:
                first_byte = start + latency
                request = last_byte if self.store_and_forward else first_byte
                yield world.at(request, transfer, stage + 1)
        yield world.at(last_byte, transfer, world.arrive)


class FairLinks:
    """Links whose bandwidth the messages of different pairs of ranks share max-min fairly.

    Messages of one pair queue. A message is on all links of its route at once.
    """

    def __init__(self, world: World, bandwidth: list[float]) -> None:
        self.world = world
        self.bandwidth = bandwidth
        self.flows: dict[int, list[int]] = {}
        self.crossing: dict[int, set[int]] = {}
        self.queues: dict[tuple[int, int], list[int]] = {}
        self.gone: dict[int, Moment] = {}
        self.remaining: dict[int, float] = {}
        self.rate: dict[int, float] = {}
        self.since: dict[int, int] = {}
        self.leaving: dict[int, Moment] = {}
        self.touched: set[int] = set()

    def cross(self, transfer: int, steps: Steps) -> Process:
        """Queue for the pair, flow, and end when the last byte has arrived."""
        world = self.world
        hops = slice(world.first_hop[transfer], world.first_hop[transfer + 1])
        queue = self.queues.setdefault((world.src[transfer], world.dst[transfer]), [])
        queue.append(transfer)
        if queue[0] != transfer:
            self.gone[transfer] = Moment(world.env)
            yield self.gone[transfer]
        world.times["started"][transfer] = world.now
        start, n_hops = world.now, hops.stop - hops.start
        nbytes = int(world.workload.message_bytes[transfer])
        left = self._flow(transfer, nbytes, world.link[hops]) if nbytes else None
        yield left or world.at(world.now, transfer, world.leave)
        world.hop_start[hops] = [start] * n_hops
        world.hop_end[hops] = [world.now] * n_hops
        queue.pop(0)
        if queue:
            world.wake(self.gone.pop(queue[0]), queue[0], 1)
        steps.has_left(transfer)
        yield world.at(world.now + sum(world.hop_latency[hops]), transfer, world.arrive)

    def _flow(self, transfer: int, nbytes: int, links: list[int]) -> Moment:
        """Begin a flow; the event comes when its last byte has left."""
        self.flows[transfer] = links
        self.remaining[transfer], self.rate[transfer] = float(nbytes), 0.0
        self.since[transfer] = self.world.now
        for link in links:
            self.crossing.setdefault(link, set()).add(transfer)
        self._touch(links)
        self.gone[transfer] = Moment(self.world.env)
        return self.gone[transfer]

    def _touch(self, links: list[int]) -> None:
        """Share anew once everything else of this instant has happened."""
        if not self.touched:
            self.world.after_all(self._share)
        self.touched.update(links)

    def _share(self) -> None:
        """Compute the rates that a change of flows may have changed."""
        now = self.world.now
        touched = sorted(self.touched)
        self.touched.clear()
        members = connected_flows(touched, self.flows, self.crossing)
        rates = max_min_rates({flow: self.flows[flow] for flow in members}, self.bandwidth)
        for flow, rate in rates.items():
            if rate == self.rate[flow]:
                continue
            self.remaining[flow] -= self.rate[flow] * (float(now - self.since[flow]) / PICOSECONDS)
            self.rate[flow], self.since[flow] = rate, now
            end = now + max(0, ceil(self.remaining[flow] * PICOSECONDS / rate))
            if flow in self.leaving:
                self.leaving[flow].callbacks = []  # it leaves at another time
            self.leaving[flow] = self.world.at(end, flow, self.world.leave)
            self.leaving[flow].callbacks = [partial(self._leave, flow)]

    def _leave(self, flow: int, _: Event) -> None:
        """The last byte of a flow has left."""
        links = self.flows.pop(flow)
        for link in links:
            self.crossing[link].remove(flow)
        for column in (self.remaining, self.rate, self.since, self.leaving):
            del column[flow]
        self._touch(links)
        self.world.wake(self.gone.pop(flow), flow, self.world.leave)
