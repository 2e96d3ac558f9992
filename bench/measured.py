"""Run a command and print its costs as JSON: seconds on the clock and of processor time, and its peak of memory.

    python bench/measured.py COMMAND ...

Child processes are included. A process of its own, and a small one: on Linux a command's peak is never below that of
the process which started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> int:
    start = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
