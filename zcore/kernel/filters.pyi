from typing import Final

ITEM_TYPES: Final[tuple[str, ...]]

def filter_items(dtype: str, astype: str, real: bool) -> tuple[int, int]: ...
