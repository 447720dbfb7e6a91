"""What a measurement was made on."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PROCESSORS = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str]:
    """Processors, kernel, versions and date, as reports and recorded runs show them."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return {
        "machine": f"{os.cpu_count()} × {_processor()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    """The processor's name where the kernel tells it, else its architecture."""
    if _PROCESSORS.is_file():
        for line in _PROCESSORS.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.machine()
