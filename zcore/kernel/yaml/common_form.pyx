# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""YAML 1.1 in the form that programs write: read at once, without the events of a parser.

Compiled because PyYAML makes an object of each event, and of two places in the text for each: for the tree of an ASDF
file that took most of the time of opening it, ten times as long as libyaml needs to parse it.

The common form is a part of YAML in which each sign has one meaning. A text in any other form is refused as a whole,
and the caller gives it to PyYAML, which also knows what is wrong with a damaged text. So nothing here reports an error,
and whatever is in doubt is refused. The form is

- ASCII without tabs and carriage returns, without comments and empty lines,
- mappings and lists in block style, and in flow style over any number of lines,
- plain texts that begin with a letter, a digit or one of ``_./$(+~``, or are a negative number, and texts in single
  quotes, over any number of lines; texts in double quotes without a backslash, on one line,
- tags ``!name`` and ``!<uri>``, anchors and aliases,
- no key that is there twice, is a list or mapping, or has a tag or an anchor; no ``<<``.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memcmp

from zcore.errors import AsdfFormatError

cdef enum:
    MAX_DEPTH = 64             # of lists and mappings: they are read by recursion
    MAX_KEY_NBYTES = 1000      # libyaml refuses keys of more than 1024
    MAX_RECALLED = 64          # characters of a plain text whose value is kept
    SAFE_DIGITS = 18           # a number of this many digits is below 2**63
    NEVER = 1 << 30            # no line is indented by so much
    # what a byte may be
    BEGINS = 1                 # the first one of a plain text
    OF_NAME = 2                # in an anchor
    OF_TAG = 4                 # in a tag
    OF_URI = 8                 # in a tag between < and >

cdef uint8_t classes[256]
cdef int _code
for _code in range(256):
    classes[_code] = 0
for _code in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789":
    classes[_code] = BEGINS | OF_NAME | OF_TAG | OF_URI
for _code in b"_./$(+~":
    classes[_code] |= BEGINS
for _code in b"_-":
    classes[_code] |= OF_NAME
for _code in b"_-./":
    classes[_code] |= OF_TAG
for _code in b"_-./:+~":
    classes[_code] |= OF_URI


class _OtherForm(Exception):
    """The text is not in the common form."""


def read(bytes text, Py_ssize_t start, str prefix, maker):
    """Return the value of a document, a dict or a list; None if it is not in the common form.

    Parameters
    ----------
    text : bytes
        It ends with the line ``...``.
    start : int
        Where the line ``---`` begins.
    prefix : str
        What the ``!`` of a tag stands for.
    maker : object
        ``opened(tag, is_mapping)`` returns a new list or mapping with a tag, and the dict or list that takes its
        members; ``scalar_of(tag, text)`` the value of a text with a tag; ``plain_value(text)`` that of a plain text
        whose first sign is in the bytes ``signs``, and ``recalled(text)`` as well, which keeps it;
        ``reference_of(mapping)`` what stands for a dict with a ``$ref``.
        AsdfFormatError of any of them means None.
    """
    try:
        return _Text(text, start, prefix, maker).document()
    except (_OtherForm, AsdfFormatError):
        return None


@cython.final
cdef class _Text:
    """A text, and how far it has been read."""

    cdef const uint8_t *text
    cdef Py_ssize_t n          # up to the line `...`
    cdef Py_ssize_t at
    cdef Py_ssize_t line       # where the line begins, in block style
    cdef bint is_key           # the last scalar precedes a colon
    cdef int depth
    cdef bytes whole
    cdef str prefix
    cdef dict anchors
    cdef object maker
    cdef object plain_value
    cdef object recalled
    cdef uint8_t resolves[256]

    def __cinit__(self, bytes text, Py_ssize_t start, str prefix, maker):
        cdef uint8_t sign
        cdef int code
        self.whole = text
        self.text = <const uint8_t *>PyBytes_AS_STRING(text)
        self.n = PyBytes_GET_SIZE(text) - 4
        self.at = self.line = start
        self.prefix = prefix
        self.anchors = {}
        self.maker = maker
        self.plain_value = maker.plain_value
        self.recalled = maker.recalled
        self.is_key = False
        self.depth = 0
        for code in range(256):
            self.resolves[code] = 0
        for sign in maker.signs:
            self.resolves[sign] = 1

    cdef object document(self):
        cdef Py_ssize_t i
        cdef object tag = None
        if self.n <= self.at or memcmp(self.text + self.n - 1, b"\n...\n", 5) != 0 or (
                memcmp(self.text + self.at, b"---", 3) != 0):
            raise _OtherForm
        for i in range(self.at, self.n):
            if (self.text[i] < 0x20 and self.text[i] != c'\n') or self.text[i] > 0x7e:
                raise _OtherForm
        self.at += 3
        if self.text[self.at] == c' ':
            self.at += 1
            tag = self._tag()
        self._end_line()
        if self._indent() != 0:
            raise _OtherForm
        root = self._block(0, tag, None)
        if self.at != self.n:
            raise _OtherForm
        return root

    # block style: `at` is behind the line break when a function returns

    cdef object _block(self, Py_ssize_t column, object tag, object anchor):
        """Read a list or mapping whose first line is indented by `column`."""
        if self._is_dash():
            return self._block_list(column, tag, anchor)
        return self._block_mapping(column, tag, anchor, self._key(False))

    cdef object _block_list(self, Py_ssize_t column, object tag, object anchor):
        cdef object value, target
        value, target = self._opened(tag, False, anchor)
        while True:
            self.at += 1
            (<list>target).append(self._block_node(column, True))
            if self._indent() != column:
                break
            if not self._is_dash(column):
                # A key of the mapping whose member this list is: they may have one column.
                break
            self.at += column
        self.depth -= 1
        return value

    cdef object _block_mapping(self, Py_ssize_t column, object tag, object anchor, object key):
        """Read a mapping whose first key has been read."""
        cdef object value, target
        cdef Py_ssize_t indent
        value, target = self._opened(tag, True, anchor)
        while True:
            if key in <dict>target:
                raise _OtherForm
            (<dict>target)[key] = self._block_node(column, False)
            indent = self._indent()
            if indent < column:
                break
            self.at += column
            if indent > column or self._is_dash():
                raise _OtherForm
            key = self._key(False)
        return self._closed(value, anchor)

    cdef object _block_node(self, Py_ssize_t column, bint is_item):
        """Read what follows a dash or a colon; `column` is that of the list or mapping it belongs to."""
        cdef object tag = None
        cdef object anchor = None
        cdef object value
        cdef Py_ssize_t indent
        cdef uint8_t sign = self._after_spaces()
        while sign == c'!' or sign == c'&':
            if (tag if sign == c'!' else anchor) is not None:
                raise _OtherForm
            if sign == c'!':
                tag = self._tag()
            else:
                anchor = self._name()
            if self.text[self.at] != c' ' and self.text[self.at] != c'\n':
                raise _OtherForm
            sign = self._after_spaces()
        if sign == c'\n':
            self._end_line()
            indent = self._indent()
            if indent > column or (indent == column and not is_item and self._is_dash(indent)):
                self.at += indent
                return self._block(indent, tag, anchor)
            if tag is None and anchor is None:
                return None
            raise _OtherForm
        if is_item and tag is None and anchor is None and sign != c'[' and sign != c'{' and sign != c'*':
            indent = self.at - self.line
            if self._is_dash():
                return self._block_list(indent, None, None)
            value = self._scalar(None, None, column, False)
            if self.is_key:
                self.at += 1
                return self._block_mapping(indent, None, None, value)
        else:
            value = self._flow_node(tag, anchor, column, False)
        self._end_line()
        return value

    # flow style: `at` is behind the last sign when a function returns

    cdef object _flow_node(self, object tag, object anchor, Py_ssize_t column, bint in_flow):
        cdef uint8_t sign = self.text[self.at]
        if sign == c'[' or sign == c'{':
            return self._flow_list(tag, anchor) if sign == c'[' else self._flow_mapping(tag, anchor)
        if sign == c'*' and tag is None and anchor is None:
            tag = self._name()
            if tag not in self.anchors:
                raise _OtherForm
            return self.anchors[tag]
        value = self._scalar(tag, anchor, column, in_flow)
        if self.is_key:
            raise _OtherForm
        return value

    cdef object _flow_list(self, object tag, object anchor):
        cdef object value, target
        value, target = self._opened(tag, False, anchor)
        self.at += 1
        if self._skip_space() == c']':
            self.at += 1
        else:
            (<list>target).append(self._flow_member())
            while self._follows(c']'):
                (<list>target).append(self._flow_member())
        self.depth -= 1
        return value

    cdef object _flow_mapping(self, object tag, object anchor):
        cdef object value, target, key
        cdef bint has_more
        value, target = self._opened(tag, True, anchor)
        self.at += 1
        has_more = self._skip_space() != c'}'
        if not has_more:
            self.at += 1
        while has_more:
            key = self._key(True)
            if key in <dict>target:
                raise _OtherForm
            self._skip_space()
            (<dict>target)[key] = self._flow_member()
            has_more = self._follows(c'}')
        return self._closed(value, anchor)

    cdef object _flow_member(self):
        cdef object tag = None
        cdef object anchor = None
        cdef uint8_t sign = self.text[self.at]
        while sign == c'!' or sign == c'&':
            if (tag if sign == c'!' else anchor) is not None:
                raise _OtherForm
            if sign == c'!':
                tag = self._tag()
            else:
                anchor = self._name()
            if self.text[self.at] != c' ' and self.text[self.at] != c'\n':
                raise _OtherForm
            sign = self._skip_space()
        return self._flow_node(tag, anchor, 0, True)

    cdef bint _follows(self, uint8_t end) except -1:
        """Go behind a comma, and return True; or behind the end of the list or mapping, and return False."""
        cdef uint8_t sign = self._skip_space()
        self.at += 1
        if sign == end:
            return False
        if sign != c',':
            raise _OtherForm
        self._skip_space()
        return True

    # scalars

    cdef object _key(self, bint in_flow):
        """Read a key, and go behind its colon."""
        cdef object value = self._scalar(None, None, NEVER, in_flow)
        if not self.is_key:
            raise _OtherForm
        self.at += 1
        return value

    cdef object _scalar(self, object tag, object anchor, Py_ssize_t column, bint in_flow):
        """Read a scalar; a plain text goes on in lines that are indented by more than `column`."""
        cdef Py_ssize_t start = self.at
        cdef uint8_t sign = self.text[start]
        cdef bint is_plain = sign != c"'" and sign != c'"'
        cdef object value = self._plain(column, in_flow, tag is None) if is_plain else self._quoted(sign)
        if tag is not None:
            value = self.maker.scalar_of(tag, value)
        sign = self.text[self.at]
        self.is_key = sign == c':' and (self.text[self.at + 1] == c' ' or self.text[self.at + 1] == c'\n')
        if self.is_key and (self.at - start > MAX_KEY_NBYTES or memchr(self.text + start, c'\n', self.at - start)):
            raise _OtherForm
        if anchor is not None:
            self.anchors[anchor] = value
        return value

    cdef object _plain(self, Py_ssize_t column, bint in_flow, bint is_resolved):
        cdef Py_ssize_t start = self.at
        cdef Py_ssize_t n_spaces, end
        cdef bint is_folded = False
        cdef uint8_t sign = self.text[start]
        cdef object value
        if not classes[sign] & BEGINS and not (
                sign == c'-' and (c'0' <= self.text[start + 1] <= c'9' or self.text[start + 1] == c'.')):
            raise _OtherForm
        end = self._plain_end(start, in_flow)
        while self.text[end] == c'\n' and end + 1 < self.n:
            n_spaces = self._n_spaces(end + 1)
            sign = self.text[end + 1 + n_spaces]
            if in_flow and (sign == c',' or sign == c']' or sign == c'}') or not in_flow and n_spaces <= column:
                break
            if not classes[sign] & BEGINS or n_spaces == 0:
                raise _OtherForm
            is_folded = True
            end = self._plain_end(end + 1 + n_spaces, in_flow)
        self.at = end
        while self.text[end - 1] == c' ':
            end -= 1
        if is_folded:
            value = _folded(PyUnicode_DecodeASCII(<const char *>self.text + start, end - start, NULL))
            return self.plain_value(value) if is_resolved else value
        if is_resolved and self.resolves[self.text[start]]:
            return self._resolved(start, end)
        return PyUnicode_DecodeASCII(<const char *>self.text + start, end - start, NULL)

    cdef object _resolved(self, Py_ssize_t start, Py_ssize_t end):
        cdef int64_t number = 0
        cdef Py_ssize_t i
        if end - start <= SAFE_DIGITS and (self.text[start] != c'0' or end - start == 1):
            for i in range(start, end):
                if not c'0' <= self.text[i] <= c'9':
                    break
                number = 10 * number + (self.text[i] - c'0')
            else:
                return number
        return (self.recalled if end - start <= MAX_RECALLED else self.plain_value)(
            PyUnicode_DecodeASCII(<const char *>self.text + start, end - start, NULL))

    cdef Py_ssize_t _plain_end(self, Py_ssize_t at, bint in_flow) except -1:
        """Return where a plain text ends on its line, spaces included."""
        cdef uint8_t sign
        while True:
            sign = self.text[at]
            if sign == c'\n':
                return at
            if sign == c':':
                if self.text[at + 1] == c' ' or self.text[at + 1] == c'\n':
                    return at
                if in_flow:
                    # Versions of libyaml differ.
                    raise _OtherForm
            elif sign == c'#':
                if self.text[at - 1] == c' ':
                    raise _OtherForm
            elif in_flow:
                if sign == c',' or sign == c']' or sign == c'}':
                    return at
                if sign == c'[' or sign == c'{' or sign == c'?':
                    raise _OtherForm
            at += 1

    cdef object _quoted(self, uint8_t quote):
        cdef Py_ssize_t start = self.at + 1
        cdef Py_ssize_t at = start
        cdef bint is_folded = False
        cdef bint is_escaped = False
        cdef object value
        while self.text[at] != quote or (quote == c"'" and self.text[at + 1] == quote):
            if self.text[at] == quote:
                is_escaped = True
                at += 1
            elif self.text[at] == c'\n':
                is_folded = True
                # The end of the text, too, is a line without a space.
                if quote == c'"' or self.text[at + 1] != c' ' or self.text[at + 1 + self._n_spaces(at + 1)] == c'\n':
                    raise _OtherForm
            elif self.text[at] == c'\\' and quote == c'"':
                raise _OtherForm
            at += 1
        self.at = at + 1
        value = PyUnicode_DecodeASCII(<const char *>self.text + start, at - start, NULL)
        if is_folded:
            value = _folded(value)
        return value.replace("''", "'") if is_escaped else value

    cdef object _tag(self):
        cdef Py_ssize_t start = self.at + 1
        cdef bint is_uri = self.text[self.at] == c'!' and self.text[start] == c'<'
        cdef Py_ssize_t end
        if self.text[self.at] != c'!':
            raise _OtherForm
        start += is_uri
        end = self._end_of(start, OF_URI if is_uri else OF_TAG)
        self.at = end + is_uri
        if is_uri and self.text[end] != c'>':
            raise _OtherForm
        tag = PyUnicode_DecodeASCII(<const char *>self.text + start, end - start, NULL)
        return tag if is_uri else self.prefix + tag

    cdef object _name(self):
        cdef Py_ssize_t start = self.at + 1
        self.at = self._end_of(start, OF_NAME)
        return PyUnicode_DecodeASCII(<const char *>self.text + start, self.at - start, NULL)

    cdef Py_ssize_t _end_of(self, Py_ssize_t start, uint8_t kind) except -1:
        cdef Py_ssize_t at = start
        while classes[self.text[at]] & kind:
            at += 1
        if at == start:
            raise _OtherForm
        return at

    # lists and mappings

    cdef tuple _opened(self, object tag, bint is_mapping, object anchor):
        cdef object value
        cdef object target
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _OtherForm
        if tag is None:
            value = target = {} if is_mapping else []
        else:
            value, target = self.maker.opened(tag, is_mapping)
        if anchor is not None:
            self.anchors[anchor] = value
        return value, target

    cdef object _closed(self, object value, object anchor):
        cdef object found = value
        self.depth -= 1
        if type(value) is dict and isinstance((<dict>value).get("$ref"), str):
            found = self.maker.reference_of(value)
            if anchor is not None and self.anchors[anchor] is value:
                self.anchors[anchor] = found
        return found

    # space

    cdef bint _is_dash(self, Py_ssize_t column=0) noexcept:
        """Return whether the sign `column` behind `at` begins a member of a list in block style."""
        cdef const uint8_t *sign = self.text + self.at + column
        return sign[0] == c'-' and (sign[1] == c' ' or sign[1] == c'\n')

    cdef Py_ssize_t _n_spaces(self, Py_ssize_t at) noexcept:
        cdef Py_ssize_t n = 0
        while self.text[at + n] == c' ':
            n += 1
        return n

    cdef uint8_t _after_spaces(self) noexcept:
        self.at += self._n_spaces(self.at)
        return self.text[self.at]

    cdef Py_ssize_t _indent(self) except -2:
        """Return by how much the line at `at` is indented, -1 at the end of the text."""
        cdef Py_ssize_t n = self._n_spaces(self.at)
        if self.at == self.n:
            return -1
        if self.text[self.at + n] == c'\n':
            raise _OtherForm
        return n

    cdef int _end_line(self) except -1:
        if self._after_spaces() != c'\n':
            raise _OtherForm
        self.at += 1
        self.line = self.at
        return 0

    cdef int _skip_space(self) except -1:
        """Go on to the next sign in flow style, and return it. Lines do not begin with it."""
        cdef uint8_t sign = self._after_spaces()
        if sign == c'\n':
            self.at += 1
            if self.text[self.at] != c' ' or self._after_spaces() == c'\n':
                raise _OtherForm
        return self.text[self.at]


cdef object _folded(str text):
    """Return a text in which each line break, and the spaces around it, became a space."""
    cdef list lines = text.split("\n")
    cdef Py_ssize_t last = len(lines) - 1
    return " ".join([lines[0].rstrip(" "), *[line.strip(" ") for line in lines[1:last]], lines[last].lstrip(" ")])
