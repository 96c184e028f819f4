"""What Griffe calls when it has read the package: it mends what the reference shows of docstrings.

Griffe gives several names on one line of a docstring, such as ``shape, chunks, dtype``, the type and the default of the
first one. Of choices, such as ``{3, 2}``, it takes the first one for the default. Here each name gets its own, from the
signature. A session without the title "Examples" is text for Griffe, and would become a quotation.
"""
import re

import griffe

SESSION = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)


class Mend(griffe.Extension):
    """Mend the docstrings of a package."""

    def on_package(self, *, pkg, **_):
        """Mend the docstrings of all modules, classes, functions and attributes."""
        pending = [pkg]
        while pending:
            place = pending.pop()
            if place.is_module or place.is_class:
                pending += [member for member in place.members.values() if not member.is_alias]
            if place.docstring is not None:
                _mend(place)


def _mend(place):
    kinds = griffe.DocstringSectionKind
    for section in place.docstring.parsed:
        if section.kind is kinds.text:
            section.value = SESSION.sub(r"```pycon\n\g<0>\n```", section.value)
        elif section.kind is kinds.parameters and (place.is_function or place.is_class):
            _take_from_signature(section.value, {parameter.name: parameter for parameter in place.parameters})


def _take_from_signature(shown, own):
    for one in shown:
        if one.name not in own:
            continue
        one.value = own[one.name].default
        if any(one.annotation is parameter.annotation for parameter in own.values()):
            one.annotation = own[one.name].annotation
        elif isinstance(one.annotation, griffe.ExprTuple):
            one.annotation.implicit = True              # "str, os.PathLike or Store" is no tuple
