"""How help is laid out: paragraphs are filled, and what is indented, an example, stays as it is."""
import argparse
import textwrap


class Formatter(argparse.HelpFormatter):
    """A formatter of help whose texts may have several paragraphs, and examples."""

    def _fill_text(self, text, width, indent):
        # The one hook that argparse's own formatters override for this, such as RawDescriptionHelpFormatter.
        return "\n\n".join(
            textwrap.indent(paragraph, indent) if paragraph.startswith(" ") or "\n " in paragraph
            else textwrap.fill(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)
            for paragraph in text.split("\n\n"))
