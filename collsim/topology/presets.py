"""Links and machines by name, from data sheets; their latencies are typical, not measured.

A preset's latency is that of one link. A star's route has two, so two of them make the latency
from host to host that sources give. Calibration on the machine itself replaces these numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class LinkPreset:
    """A kind of link.

    Attributes:
        name: Its key in the table.
        bandwidth: Bytes/s in each direction, the raw rate after line coding.
        latency: Seconds of one link.
        source: Where the numbers are from.
        note: How far to trust them.
    """

    name: str
    bandwidth: float
    latency: float
    source: str
    note: str = "typical"


@dataclass(frozen=True, slots=True)
class MachinePreset:
    """A topology with its parameters.

    Attributes:
        name: Its key in the table.
        kind: Its row in `TOPOLOGIES`.
        parameters: The builder's parameters; a scenario may change each of them.
        source: Where the numbers are from.
        note: How far to trust them.
    """

    name: str
    kind: str
    parameters: Mapping[str, float]
    source: str
    note: str = "typical"


_ETHERNET = "IEEE 802.3 line rate; latency 10–50 µs from host to host over kernel TCP"
_ROCE = "IEEE 802.3 line rate; latency 1.5–5 µs from host to host over RDMA"
_TCP_NOTE = "typical; TCP delivers about 5 % less than the line rate"
_INFINIBAND = "InfiniBand Trade Association roadmap, 4 lanes; 1–1.5 µs from host to host"
_NVLINK = "NVIDIA data sheet, half of the two-way rate a GPU; 0.5–1 µs from GPU to GPU"
_PCIE = "PCI-SIG, 16 lanes at 128b/130b, raw"
_PCIE_NOTE = "typical; packet headers take another 5–15 %"

_LINKS: Final = (
    LinkPreset("1gbe", 0.125e9, 20e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("10gbe", 1.25e9, 10e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("25gbe", 3.125e9, 10e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("100gbe", 12.5e9, 7.5e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("200gbe", 25e9, 5e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("400gbe", 50e9, 5e-6, _ETHERNET, _TCP_NOTE),
    LinkPreset("100gbe-roce", 12.5e9, 1.5e-6, _ROCE),
    LinkPreset("200gbe-roce", 25e9, 1.25e-6, _ROCE),
    LinkPreset("400gbe-roce", 50e9, 1e-6, _ROCE),
    LinkPreset("infiniband-hdr", 25e9, 0.6e-6, _INFINIBAND),
    LinkPreset("infiniband-ndr", 50e9, 0.6e-6, _INFINIBAND),
    LinkPreset("nvlink3", 300e9, 0.35e-6, _NVLINK),
    LinkPreset("nvlink4", 450e9, 0.35e-6, _NVLINK),
    LinkPreset("nvlink5", 900e9, 0.35e-6, _NVLINK),
    LinkPreset("pcie3-x16", 15.75e9, 0.4e-6, _PCIE, _PCIE_NOTE),
    LinkPreset("pcie4-x16", 31.5e9, 0.4e-6, _PCIE, _PCIE_NOTE),
    LinkPreset("pcie5-x16", 63e9, 0.4e-6, _PCIE, _PCIE_NOTE),
    LinkPreset(
        "loopback",
        3e9,
        65e-6,
        "gloo over loopback TCP on a small Linux machine: 2–4 GB/s, 110–150 µs an operation",
        "typical, and far from machine to machine; calibrate",
    ),
)

LINK_PRESETS: Final[Mapping[str, LinkPreset]] = MappingProxyType({row.name: row for row in _LINKS})
"""The links by name."""


def _dgx(nvlink: str, rail: str, spec: str) -> MachinePreset:
    inside, outside = LINK_PRESETS[nvlink], LINK_PRESETS[rail]
    parameters = {
        "nodes": 2,
        "gpus_per_node": 8,
        "nvlink_bandwidth": inside.bandwidth,
        "nvlink_latency": inside.latency,
        "nic_bandwidth": outside.bandwidth,
        "nic_latency": outside.latency,
    }
    source = f"NVIDIA DGX {spec} data sheet: 8 GPUs on NVSwitch, a network card for each"
    return MachinePreset(f"dgx-{spec.lower()}", "multi_gpu", MappingProxyType(parameters), source)


_MACHINES: Final = (
    _dgx("nvlink3", "infiniband-hdr", "A100"),
    _dgx("nvlink4", "infiniband-ndr", "H100"),
    _dgx("nvlink5", "infiniband-ndr", "B200"),
)

MACHINE_PRESETS: Final[Mapping[str, MachinePreset]] = MappingProxyType(
    {row.name: row for row in _MACHINES}
)
"""The machines by name."""
