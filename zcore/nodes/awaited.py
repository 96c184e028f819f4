"""Lets a coroutine await calls that another thread makes."""
import asyncio
import contextlib

from zcore import workers


async def awaited(function):
    """Call ``function()`` in another thread and return its result.

    If the task is cancelled, the call is stopped. The task ends only when the call no longer touches any memory, so the
    caller may reuse its own. If the loop is closed, the call continues and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def done(value, exception):
        # If the loop is closed, the result is dropped.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set_result, (value, exception))

    stop = workers.later(function, done)
    try:
        value, exception = await asyncio.shield(ended)
    except asyncio.CancelledError:
        stop.stop()
        while not ended.done():
            # Cancelled again: the memory is still in use.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((ended,))
        raise
    except GeneratorExit:
        # The coroutine was closed, perhaps by the thread of the call, which cannot wait for itself.
        stop.stop()
        raise
    if exception is not None:
        try:
            raise exception
        finally:
            # Its traceback refers to this frame.
            del exception, ended
    return value
