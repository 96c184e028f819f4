"""The chunks of an array drawn as SVG: a row, a grid, or a box of the last three dimensions.

Thick lines divide stored objects, thin ones the chunks in a shard. Colours are left to the page: classes name what is
drawn. What is drawn is bounded, whatever the numbers of a document are: of lines that would not be seen there are none.
"""
import math

from zcore.model.chunk_grid import chunk_sizes

SIDE = 140                     # of the longest dimension, in pixels
SHORTEST = 0.12                # of it, of any other
DEPTH = (0.42, -0.42)          # how a pixel of depth is seen: to the right, and upwards
MAX_LINES = 64                 # in one direction: more would be one surface
NARROWEST = 2.2                # pixels between two lines
ROOM = 26                      # for what is written at an edge


def chunks_svg(array):
    """Return the drawing of an array's chunks; None for one without dimensions or elements.

    >>> import zcore
    >>> svg = chunks_svg(zcore.zeros((4, 6), chunks=(2, 3)))
    >>> svg.startswith("<svg"), svg.count("<path")
    (True, 2)
    """
    metadata, chain = array._binding.view.metadata, array._binding.view.chain
    shape = metadata.shape
    if not shape or 0 in shape:
        return None
    drawn = range(max(0, len(shape) - 3), len(shape))
    objects = [_cuts(shape[d], metadata.chunk_shape[d], metadata.edges and metadata.edges[d], metadata.grid_shape[d])
               for d in drawn]
    chunks = [()] * len(drawn)
    if chain.shards is not None:
        chunks = [_cuts(shape[d], chain.inner_shape[d], None, -(-shape[d] // chain.inner_shape[d])) for d in drawn]
    longest = max(shape[d] for d in drawn)
    lengths = [SIDE * max(SHORTEST, shape[d] / longest) for d in drawn]
    names = metadata.dimension_names or (None,) * len(shape)
    labels = [f"{names[d]} {shape[d]}" if names[d] else str(shape[d]) for d in drawn]
    if len(drawn) == 1:
        # A row is a grid of one row, which has no length of its own to tell.
        lengths, labels = [SIDE * 2 * SHORTEST, lengths[0] * 2], ["", labels[0]]
        objects, chunks = [(), objects[0]], [(), chunks[0]]
    seen = [length * (0.6 if len(lengths) == 3 and i == 0 else 1) for i, length in enumerate(lengths)]
    objects, chunks = ([cuts if room / (len(cuts) + 1) >= NARROWEST else ()
                        for cuts, room in zip(lines, seen, strict=True)] for lines in (objects, chunks))
    return _svg(lengths, labels, objects, chunks, math.prod(shape[:-3]))


def _cuts(length, chunk, edges, n_chunks):
    """Return where a dimension is cut, as parts of its length; nothing where there would be too many lines."""
    if n_chunks > MAX_LINES:
        return ()
    sizes = chunk_sizes((length,), (chunk,), None if edges is None else (edges,))[0]
    cuts, place = [], 0
    for size in sizes[:-1]:
        place += size
        if place < length:
            cuts.append(place / length)
    return tuple(cuts)


def _svg(lengths, labels, objects, chunks, n_drawings):
    from html import escape

    from zcore.letters import printable

    *depth, height, width = lengths
    aside, up = (DEPTH[0] * depth[0], DEPTH[1] * depth[0]) if depth else (0.0, 0.0)
    left, top = 4.0, 4.0 + (ROOM if depth else 0) - up
    origin, right, down, back = (left, top), (width, 0.0), (0.0, height), (aside, up)
    faces = [(origin, down, right, -2, -1, "zc-front")]
    if depth:
        faces += [(origin, back, right, -3, -1, "zc-top"), ((left + width, top), back, down, -3, -2, "zc-side")]
    parts = []
    for corner, first, second, d_first, d_second, name in faces:
        parts.append(f'<path class="{name}" d="{_outline(corner, first, second)}"/>')
        for cuts, kind in ((chunks, "zc-chunk"), (objects, "zc-object")):
            lines = _lines(corner, first, second, cuts[d_first]) + _lines(corner, second, first, cuts[d_second])
            if lines:
                parts.append(f'<path class="{kind}" d="{lines}"/>')
    labels = [escape(printable(label if len(label) <= 24 else label[:23] + "…")) for label in labels]
    parts.append(_text(left, top + height + 16, labels[-1]))
    parts.append(_text(left + width + aside + 6, top + up / 2 + height / 2 + 4, labels[-2]))
    if depth:
        parts.append(_text(left + aside / 2, top + up - 6, labels[0]))
    if n_drawings > 1:
        parts.append(_text(left, top + height + 32, f"one of {n_drawings}"))
    longest = max(map(len, labels))
    total = (left + width + aside + 12 + 8 * longest, top + height + ROOM + 16 * (n_drawings > 1))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="zc-chunks" width="{total[0]:.0f}" height="{total[1]:.0f}" '
            f'role="img" aria-label="chunks">{"".join(parts)}</svg>')


def _text(x, y, text):
    return f'<text x="{x:.0f}" y="{y:.0f}">{text}</text>' if text else ""


def _outline(corner, first, second):
    (x, y), (a, b), (c, d) = corner, first, second
    return f"M{x:.1f} {y:.1f}l{a:.1f} {b:.1f}l{c:.1f} {d:.1f}l{-a:.1f} {-b:.1f}z"


def _lines(corner, along, across, cuts):
    """Return a path of lines that run `across` a face, and cut its side `along`."""
    return "".join(f"M{corner[0] + along[0] * cut:.1f} {corner[1] + along[1] * cut:.1f}l{across[0]:.1f} {across[1]:.1f}"
                   for cut in cuts)
