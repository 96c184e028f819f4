"""A store holds what a dict of ndarrays holds, through copies, moves, kills and re-opens, and zarr-python reads it."""
import pytest

pytest.importorskip("zarr")
pytest.importorskip("obstore")

from tests.property.life.machine import LIVES, lead  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", LIVES)
def test_some_lives(name):
    lead(name, 6)


# 10 000 lives in parts, so that a part can be run by itself.
@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 18))
@pytest.mark.parametrize("name", LIVES)
def test_many_lives(name, number):
    lead(name, 100, number=number)
