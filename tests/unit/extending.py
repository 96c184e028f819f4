"""The files that docs/extending.md writes from nothing, as modules."""
import re
import sys
from pathlib import Path
from types import ModuleType

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
# By the line before each block.
FILES = dict(re.findall(r"^`(zcore/[\w/]+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def module_of(file):
    """Return the module that a file of the page would be."""
    name = file.removesuffix(".py").replace("/", ".")
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)       # where pickle and the command look for it
        exec(compile(FILES[file], file, "exec"), vars(sys.modules[name]))
    return sys.modules[name]
