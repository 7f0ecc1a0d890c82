"""The command line of a device: `python -m worker_protocol.agent --server URL [--pair CODE]`.

Exit codes: 0 after Ctrl-C or SIGTERM with the lease handed back, 1 with one sentence that says what to do,
2 for wrong arguments, 130 after a second Ctrl-C.
"""

import argparse
import asyncio
import logging
import os
import platform
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import torch
from platformdirs import user_data_dir

from accounts.domain.device_classes import DEFAULT_DEVICE_CLASS, DEVICE_CLASSES
from worker_protocol.agent.benchmark import measure_speed
from worker_protocol.agent.cache import BlobCache
from worker_protocol.agent.device import Device
from worker_protocol.agent.errors import AgentError
from worker_protocol.agent.keys import Identity
from worker_protocol.agent.pairing import (
    DeviceDescription,
    device_pair,
    identity_open,
    refuse_if_paired,
    server_address,
)
from worker_protocol.agent.progress import display_for_this_terminal
from worker_protocol.agent.sensors import lease_memory_bytes, read_status
from worker_protocol.agent.trainer import Trainer
from worker_protocol.agent.transport import Transport

MIB = 1024 * 1024
EXIT_AT_ONCE = 130
HTTP_TIMEOUT_S = 30.0


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses, and ours hold tokens
    torch.set_num_threads(arguments.threads)
    try:
        if arguments.benchmark:
            _print_speed(arguments)
        else:
            asyncio.run(_work(arguments, _identity(arguments)))
    except AgentError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - a person reads it
        return 1
    except KeyboardInterrupt:  # before there was anything to hand back
        return EXIT_AT_ONCE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m worker_protocol.agent",
        description="Let this machine work for the owner of a Nightshift account.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--server", metavar="URL", help="the site, as https://nightshift.example")
    what.add_argument("--benchmark", action="store_true", help="print this machine's speed and exit")
    parser.add_argument("--pair", metavar="CODE", help="pair this machine, by a code from the Devices page")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        default=Path(user_data_dir("nightshift-agent", appauthor=False)),
        help="where key, pairing and cached blobs are kept (default: %(default)s)",
    )
    parser.add_argument(
        "--name", default=platform.node()[:60] or "laptop", help="for the owner's page (default: %(default)s)"
    )
    parser.add_argument(
        "--device-class",
        choices=sorted(DEVICE_CLASSES),
        default=DEFAULT_DEVICE_CLASS,
        help="what its work is priced as; kept from pairing on (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=_at_least_one,
        default=1,
        metavar="N",
        help="processor threads (default: %(default)s)",
    )
    parser.add_argument(
        "--cache-mib",
        type=_at_least_one,
        default=2_048,
        metavar="N",
        help="disk space for cached blobs (default: %(default)s)",
    )
    parser.add_argument(
        "--throttle",
        type=_fraction,
        default=1.0,
        metavar="F",
        help="work at this fraction of the machine's speed, as 0.5",
    )
    return parser


def _identity(arguments: argparse.Namespace) -> Identity:
    """Who this device is; pairs it first if a code was given."""
    server = server_address(arguments.server)
    if arguments.pair is None:
        return identity_open(arguments.state, server=server)
    refuse_if_paired(arguments.state)  # before the measuring, which takes seconds
    speed = measure_speed(DEVICE_CLASSES[arguments.device_class], throttle=arguments.throttle)
    description = DeviceDescription(
        name=arguments.name, device_class=arguments.device_class, speed_factor=round(speed.factor, 3)
    )
    return device_pair(arguments.state, server=server, code=arguments.pair, description=description)


async def _work(arguments: argparse.Namespace, identity: Identity) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, _stop_or_exit, stop)
    rng = random.Random()  # noqa: S311 - jitter, not secrets
    cache = BlobCache(arguments.state / "blobs", max_bytes=arguments.cache_mib * MIB)
    async with httpx.AsyncClient(timeout=HTTP_TIMEOUT_S) as client:
        device = Device(
            identity=identity,
            transport=Transport(client, cache, rng=rng),
            trainer=Trainer(throttle=arguments.throttle),
            cache=cache,
            display=display_for_this_terminal(),
            read_status=read_status,
            memory_bytes=lease_memory_bytes(),
            rng=rng,
        )
        await device.run(stop)


def _stop_or_exit(stop: asyncio.Event) -> None:
    """The first signal hands the lease back and ends in order; the second does not wait for that."""
    if stop.is_set():
        os._exit(EXIT_AT_ONCE)
    stop.set()


def _print_speed(arguments: argparse.Namespace) -> None:
    device_class = DEVICE_CLASSES[arguments.device_class]
    speed = measure_speed(device_class, throttle=arguments.throttle)
    print(  # noqa: T201 - the answer
        f"{speed.flops_per_second / 1e9:.2f} GFLOP/s ({speed.run_us:.0f} us a run), "
        f"{speed.factor:.2f} x {device_class.label} ({device_class.key})"
    )


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _fraction(text: str) -> float:
    fraction = float(text)
    if not 0.001 <= fraction <= 1:
        raise argparse.ArgumentTypeError("must be from 0.001 to 1")
    return fraction


if __name__ == "__main__":
    sys.exit(main())
