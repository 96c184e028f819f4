from typing import Final

TEMP_PREFIX: Final[str]
