"""The exchange of arrays with other machines, as a part of the campaign: `.ci/machines.py` for each of them.

All of them take about half an hour. A machine that cannot be emulated here is named among what was skipped.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / ".ci/machines.py"
MACHINES = ("aarch64", "s390x", "i386", "armhf", "ppc64le")
LACKS = 2      # the script's code where this machine lacks something


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.machines", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1800)
    given = parser.parse_args()
    start, skipped = time.monotonic(), []
    told = {"part": "other machines", "tried": 0, "unit": "machines", "found": 0}
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZCORE_TEST_DIRECTORY")) as folder:
        for machine in MACHINES:
            if time.monotonic() - start > given.seconds:
                skipped.append(f"{machine}: no time was left")
                continue
            done = subprocess.run([sys.executable, SCRIPT, machine, "--work", folder], stdout=subprocess.PIPE,
                                  text=True)
            print(done.stdout, flush=True)
            if done.returncode == LACKS:
                skipped.append(f"{machine}: {done.stdout.splitlines()[-1]}")
            else:
                told["tried"] += 1
                told["found"] += done.returncode != 0
    if skipped:
        told["skipped"] = "; ".join(skipped)
    print(json.dumps({**told, "seconds": round(time.monotonic() - start, 1)}))
    return int(told["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
