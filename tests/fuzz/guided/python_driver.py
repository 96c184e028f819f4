"""libFuzzer by way of atheris: `python -m tests.fuzz.guided.python_driver TARGET`, then options of libFuzzer."""
import sys
import time
import warnings

import atheris

MAX_SECONDS = 1.0


def main():
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["zcore"]):
        from tests.fuzz.guided import targets

    function = targets.TARGETS[name]

    def run(data):
        began = time.monotonic()
        function(data)
        if time.monotonic() - began > MAX_SECONDS:
            # Perhaps it only had to wait for the processor.
            began = time.process_time()
            function(data)
            assert time.process_time() - began <= MAX_SECONDS, "more than a second of the processor"

    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
