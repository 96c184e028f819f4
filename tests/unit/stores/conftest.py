"""Servers for the tests of remote stores; one S3 server for all tests of a process."""
import itertools

import pytest

from .servers import http_server, make_bucket, s3_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3_endpoint():
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint):
    """A new bucket: its name, and the options of obstore."""
    name = f"bucket{next(_numbers)}"
    return name, make_bucket(s3_endpoint, name)


@pytest.fixture
def site():
    with http_server() as (url, site):
        site.url = url
        yield site
