"""``python -m benchmarks``; see `benchmarks.command`. To count lines, zcore need not be built."""
import sys

arguments = sys.argv[1:]
if arguments[:1] == ["lines"]:
    from benchmarks.counts.lines import main

    del arguments[0]
else:
    from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(arguments))
