"""Lets a coroutine await calls that another thread makes."""
from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from zcore import workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _Result = TypeVar("_Result")


async def awaited(function: Callable[[], _Result]) -> _Result:
    """Call ``function()`` in another thread and return its result.

    If the task is cancelled, the call is stopped. The task ends only when the call no longer touches any memory, so the
    caller may reuse its own. If the loop is closed, the call continues and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()
    ended = []     # (value, exception), when all of the call has ended

    def end(value, exception):
        ended.append((value, exception))
        if not waiting.done():
            waiting.set_result(None)

    def done(value, exception):
        # If the loop is closed, the result is dropped.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end, value, exception)

    stop = workers.later(function, done)
    try:
        await waiting
    except asyncio.CancelledError:
        stop.stop()
        while not ended:
            # Perhaps cancelled again: the memory is still in use.
            waiting = loop.create_future()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
        raise
    except GeneratorExit:
        # The coroutine was closed, perhaps by the thread of the call, which cannot wait for itself.
        stop.stop()
        raise
    value, exception = ended.pop()
    if exception is not None:
        try:
            raise exception
        finally:
            # Its traceback refers to this frame.
            del exception
    return value
