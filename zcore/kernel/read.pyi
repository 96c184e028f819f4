from typing import final

from zcore.kernel.plan import Plan

@final
class ReadPlan(Plan): ...
