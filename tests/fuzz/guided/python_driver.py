"""libFuzzer by way of atheris: `python -m tests.fuzz.guided.python_driver TARGET`, then options of libFuzzer."""
import sys

import atheris


def main():
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["zcore"]):
        from tests.fuzz.guided import targets

    targets.warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
