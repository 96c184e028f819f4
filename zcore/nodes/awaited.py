"""Calls that a coroutine awaits while another thread makes them."""
import asyncio
import contextlib

from zcore import workers


async def awaited(function):
    """Return ``function()``, which another thread calls.

    If the task is cancelled, the call is stopped, and the task goes on when nothing of the call touches any memory, so
    that the caller may reuse its own. The call goes on if the loop is closed meanwhile; its result is dropped then.
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
        # The coroutine is closed, perhaps by the thread of the call, which cannot wait for itself.
        stop.stop()
        raise
    if exception is not None:
        try:
            raise exception
        finally:
            # Its traceback leads here.
            del exception, ended
    return value
