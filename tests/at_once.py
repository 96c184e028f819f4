"""Threads that run at once."""


def at_once(threads):
    """Start all threads, and wait for their ends."""
    threads = list(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
