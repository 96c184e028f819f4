"""The judge of calls that overlap: which outcomes and final states some order of their steps explains.

A call is a short program over a small model of the store. Most calls are one step: they take place at one moment. A
write is one step for each stored object that it touches, in any order, since that is all that zcore promises. A read
and a copy see one object at a time, too. An error is an outcome like any other: it needs a moment at which the model
gives reason for it.

`explains` looks for an order of all steps which keeps each call's own order, puts a call that had ended before another
one began first, and ends with the outcomes and the state that were found. If there is none, an element was lost, torn,
mixed or resurrected, or an error was raised without reason.
"""
import errno
from collections import namedtuple

# values      all elements, a tuple of int
# attributes  frozenset of (name, value)
# fill        what elements that were never written are
# chunk       elements in a stored object
# birth       which call created it: tells an array from another one in its place
Node = namedtuple("Node", ("values", "attributes", "fill", "chunk", "birth"))

# verb      a key of `PROGRAMS`
# argument  what the verb takes
# start, end  moments on the clock that all workers share
# outcome   "ok" or a name of an error; with what was returned, a tuple
# is_early  it used a handle that was opened before the round
Call = namedtuple("Call", ("verb", "argument", "start", "end", "outcome", "is_early"))

OK = ("ok",)
MISSING = ("NodeNotFoundError",)
EXISTS = ("NodeExistsError",)
SELECTION = ("SelectionError",)
REPLACED = ("StoreError",)
# It would have waited for itself.
REFUSED = ("LockError", errno.EDEADLK)
# Another copy to the same place is under way.
BUSY = ("StoreError", "busy")
DONE = "done"


def at(state, path):
    """Return the node at a path of a state, or None."""
    return dict(state).get(path)


def put(state, path, node):
    """Return the state with another node at a path; None removes it."""
    nodes = dict(state)
    nodes.pop(path, None)
    if node is not None:
        nodes[path] = node
    return frozenset(nodes.items())


def done(outcome, state):
    return (DONE, outcome), state


def objects(node, positions):
    """Return positions by the stored object that they lie in."""
    found = {}
    for position in positions:
        found.setdefault(position // node.chunk, []).append(position)
    return list(found.values())


# Programs. Each yields (memory, state) for every step that the call may take next; `memory` is what it knows by now.

def write(memory, state, argument, me):
    """`argument`: {position: value}. One step for each object; what other calls make of the array shows in between."""
    node = at(state, "x")
    chunk, left = memory or (None, frozenset(argument))
    if not left:
        yield done(OK, state)
        return
    if node is None:
        yield done(MISSING, state)
        return
    if max(left) >= len(node.values):
        yield done(SELECTION, state)
        return
    if chunk != node.chunk:
        # Planned anew, for other chunks.
        left = frozenset(argument)
    if max(left) >= len(node.values):
        yield done(SELECTION, state)
        return
    for positions in objects(node, left):
        values = list(node.values)
        for position in positions:
            values[position] = argument[position]
        yield (node.chunk, left - set(positions)), put(state, "x", node._replace(values=tuple(values)))


def resize(memory, state, argument, me):
    """`argument`: the new length."""
    node = at(state, "x")
    if node is None:
        yield done(MISSING, state)
    else:
        values = node.values[:argument] + (node.fill,) * (argument - len(node.values))
        yield done(OK, put(state, "x", node._replace(values=values)))


def append(memory, state, argument, me):
    """`argument`: new elements; returns the new length."""
    node = at(state, "x")
    if node is None:
        yield done(MISSING, state)
    else:
        values = node.values + tuple(argument)
        yield done(("ok", len(values)), put(state, "x", node._replace(values=values)))


def attributes(memory, state, argument, me):
    """`argument`: (name, value)."""
    node = at(state, "x")
    if node is None:
        yield done(MISSING, state)
    else:
        kept = frozenset(item for item in node.attributes if item[0] != argument[0])
        yield done(OK, put(state, "x", node._replace(attributes=kept | {argument})))


def delete(memory, state, argument, me):
    yield done(MISSING if at(state, "x") is None else OK, put(state, "x", None))


def created(argument, me):
    values, fill, chunk = argument
    return Node(tuple(values), frozenset({("by", me)}), fill, chunk, me)


def overwrite(memory, state, argument, me):
    """`argument`: (values, fill, chunk). Three steps: the old node is deleted, the new one created, and opened."""
    if memory is None:
        yield "deleted", put(state, "x", None)
    elif memory == "deleted":
        yield "created", put(state, "x", created(argument, me))
    else:
        # Another call may have deleted or moved it already.
        yield done(MISSING if at(state, "x") is None else OK, state)


def create(memory, state, argument, me):
    """The same, where nothing is."""
    if memory is not None:
        yield from overwrite(memory, state, argument, me)
    elif at(state, "x") is None:
        yield "created", put(state, "x", created(argument, me))
    else:
        yield done(EXISTS, state)


def copy_to(memory, state, argument, me):
    """A finished copy takes the place of what is there in one step."""
    yield done(OK, put(state, "x", created(argument, me)))
    yield done(BUSY, state)


def copy_to_memory(memory, state, argument, me):
    """Where nothing can be renamed, the old node is deleted first. Another copy to the same place may end it before."""
    if memory is None:
        yield done(REPLACED, state)
        yield "deleted", put(state, "x", None)
    else:
        yield done(OK, put(state, "x", created(argument, me)))


def move(memory, state, argument, me):
    """`argument`: the new path."""
    node = at(state, "x")
    if node is None:
        yield done(MISSING, state)
    # Where both are wrong, either error is right: another move to this path has won.
    if at(state, argument) is not None:
        yield done(EXISTS, state)
    elif node is not None:
        yield done(OK, put(put(state, "x", None), argument, node))


def look(memory, state):
    """Read the elements of what was opened at the first step, one object at a time; the last memory has them all."""
    node = at(state, "x")
    if node is None:
        yield done(MISSING, state)
    elif memory is None:
        yield (node, (None,) * len(node.values)), state
    else:
        opened, seen = memory
        if node.birth != opened.birth or _is_changed(node, opened):
            yield done(REPLACED, state)
        if len(node.values) < len(seen):
            yield done(SELECTION, state)
        if node.chunk == opened.chunk and len(node.values) >= len(seen):
            for positions in objects(node, [i for i, value in enumerate(seen) if value is None]):
                values = list(seen)
                for position in positions:
                    values[position] = node.values[position]
                yield (opened, tuple(values)), state


def _is_changed(node, opened):
    """Return whether the document differs and no stored object is the same: it may be another array, for all one knows.

    An object at the border is replaced when the array grows.
    """
    kept = [positions for positions in objects(opened, range(len(opened.values)))
            if positions[-1] < len(node.values) and {opened.values[i] for i in positions} != {opened.fill}
            and (len(positions) == opened.chunk or len(node.values) == len(opened.values))
            and all(node.values[i] == opened.values[i] for i in positions)]
    return not kept and (len(node.values) != len(opened.values) or node.attributes != opened.attributes)


def is_whole(memory):
    return memory is not None and None not in memory[1]


def read(memory, state, argument, me):
    """Returns all elements."""
    if is_whole(memory):
        yield done(("ok", *memory[1]), state)
        return
    yield from look(memory, state)


def copy_from(memory, state, argument, me):
    """`argument`: where to. The copy appears when it is whole."""
    if is_whole(memory):
        opened, values = memory
        if at(state, argument) is None:
            yield done(OK, put(state, argument, opened._replace(values=values, birth=me)))
        else:
            yield done(EXISTS, state)
        return
    yield from look(memory, state)


def verify(memory, state, argument, me):
    """Finds no problem while the others work, or no node."""
    yield done(OK, state)
    if at(state, "x") is None:
        yield done(MISSING, state)


def nothing(memory, state, argument, me):
    """What changes no node, and finds no fault."""
    yield done(OK, state)


PROGRAMS = {
    "write": write, "append": append, "shrink": resize, "grow": resize, "delete": delete, "overwrite": overwrite,
    "create": create, "move": move, "copy from": copy_from, "copy to": copy_to, "verify": verify,
    "consolidate": nothing, "attributes": attributes, "read": read, "list": nothing, "open": verify,
    "read many": read, "async read": read, "asdf read": nothing, "asdf write": nothing,
}


def programs_in(store):
    """Return the programs in a kind of store."""
    return PROGRAMS | {"copy to": copy_to_memory} if store == "memory" else PROGRAMS


def explains(before, calls, after, refusable=(), programs=PROGRAMS):
    """Return whether some order of all steps leads from a state to another, with the outcomes of the calls.

    Parameters
    ----------
    before, after : frozenset of (path, Node)
        Of the last one, births are not looked at.
    calls : sequence of Call
    refusable : collection of int
        The calls that a LockError may end.
    programs : dict
        The steps of each verb.
    """
    copies = [call for call in calls if call.verb == "copy to"]
    if any(call.outcome in (BUSY, REPLACED) and not any(_overlap(call, other) for other in copies) for call in copies):
        return False
    wanted = _shown(after)
    seen = set()
    pending = [(tuple(_known(call, before) for call in calls), before)]
    while pending:
        memories, state = known = pending.pop()
        if known in seen:
            continue
        seen.add(known)
        is_done = [_is_done(memory) for memory in memories]
        if all(is_done):
            if _shown(state) == wanted:
                return True
            continue
        for i, call in enumerate(calls):
            if is_done[i] or any(not is_done[j] and calls[j].end < call.start for j in range(len(calls))):
                continue
            # A refused call has changed nothing, at whichever moment; but a write the objects before the one it needs.
            is_refused = call.outcome == REFUSED and i in refusable
            steps = [done(call.outcome, state)] if is_refused else []
            if not is_refused or call.verb == "write":
                steps = [*steps, *programs[call.verb](memories[i], state, call.argument, i + 1)]
            for memory, changed in steps:
                if not _is_done(memory) or memory[1] == call.outcome:
                    pending.append((memories[:i] + (memory,) + memories[i + 1:], changed))
    return False


def _overlap(call, other):
    return other is not call and call.start <= other.end and other.start <= call.end


def _known(call, before):
    """Return what a call knows when it begins: a handle for reading has the shape of the array that it opened."""
    node = at(before, "x")
    return (node, (None,) * len(node.values)) if "read" in call.verb and call.is_early and node else None


def _is_done(memory):
    return isinstance(memory, tuple) and memory[0] == DONE


def _shown(state):
    return frozenset((path, node._replace(birth=0)) for path, node in state)
