"""mx-smi: a table of the simulated devices, their memory and the processes that use them."""

import argparse
import json
import sys
import time
from typing import Optional, Sequence

from mxmaca import nvidia_smi
from mxmaca.runtime import MacaError, physical_devices
from mxmaca.usage import table


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command. Returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--nvidia" in given:
        given.remove("--nvidia")
        return nvidia_smi.main(given)
    parser = argparse.ArgumentParser(prog="mx-smi", description=__doc__)
    parser.add_argument("-L", "--list", action="store_true", help="one line a device")
    parser.add_argument("--json", action="store_true", help="the same facts as JSON")
    parser.add_argument("-q", "--query", action="store_true", help="what is known about each device, line by line")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="again and again, with this time between")
    parser.add_argument("--nvidia", action="store_true", help="options and answers of nvidia-smi: see --nvidia --help")
    options = parser.parse_args(given)
    if options.watch is not None and not options.watch > 0:
        parser.error("--watch wants more than 0 seconds")
    try:
        show(options)
        while options.watch is not None:
            time.sleep(options.watch)
            show(options)
    except (ImportError, MacaError, OSError) as error:
        print(f"mx-smi: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def show(options: argparse.Namespace) -> None:
    """Print what the options ask for, once.

    Raises:
        MacaError: the devices cannot be asked.
    """
    devices = physical_devices()
    if options.json:
        facts = [dict(d._asdict(), processes=[dict(p._asdict()) for p in d.processes]) for d in devices]
        print(json.dumps(facts, indent=2), flush=True)
    elif options.query:
        print("\n\n".join(nvidia_smi.describe(device) for device in devices), flush=True)
    elif options.list:
        for device in devices:
            print(f"GPU {device.ordinal}: {device.name} (UUID: {device.uuid})")
    else:
        print(table(devices), flush=True)


if __name__ == "__main__":
    sys.exit(main())
