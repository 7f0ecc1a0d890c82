"""Who is served next: start-time fair queueing (Goyal, Vin, Cheng 1996) over buyers, then over a buyer's runs.

Each buyer has a virtual time that advances by the GPU time granted to it; the buyer furthest behind goes
first. One that comes (back) to wait starts at the present virtual time, so it is neither owed the past nor
made to wait for it. Nobody starves: whoever waits stays in place while the others move on.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

Key = TypeVar("Key", int, UUID)
_PRUNE_ABOVE = 1_000


@dataclass
class FairQueue(Generic[Key]):
    """Virtual times by key, in expected GPU microseconds."""

    clock_us: int = 0
    finish_us: dict[Key, int] = field(default_factory=dict)

    def first(self, keys: set[Key]) -> Key:
        """The key to serve next; at equal times the one served less, then the smaller one."""

        def order(key: Key) -> tuple[int, int, Key]:
            finish_us = self.finish_us.get(key, 0)
            return max(self.clock_us, finish_us), finish_us, key

        return min(keys, key=order)

    def serve(self, key: Key, cost_us: int) -> None:
        self.clock_us = max(self.clock_us, self.finish_us.get(key, 0))
        self.finish_us[key] = self.clock_us + cost_us
        if len(self.finish_us) > _PRUNE_ABOVE:
            self.finish_us = {k: at for k, at in self.finish_us.items() if at > self.clock_us}


@dataclass
class Fairness:
    """Buyers share the fleet equally, and the runs of one buyer share that buyer's part."""

    buyers: FairQueue[int] = field(default_factory=FairQueue)
    runs: dict[int, FairQueue[UUID]] = field(default_factory=dict)

    def first(self, waiting: dict[UUID, int]) -> UUID:
        """Which of the waiting runs ({run: buyer}) is served next."""
        buyer_id = self.buyers.first(set(waiting.values()))
        mine = {run_id for run_id, owner in waiting.items() if owner == buyer_id}
        return self.runs.setdefault(buyer_id, FairQueue()).first(mine)

    def serve(self, *, buyer_id: int, run_id: UUID, cost_us: int) -> None:
        self.buyers.serve(buyer_id, cost_us)
        self.runs.setdefault(buyer_id, FairQueue()).serve(run_id, cost_us)
        if len(self.runs) > _PRUNE_ABOVE:
            self.runs = {buyer: queue for buyer, queue in self.runs.items() if buyer in self.buyers.finish_us}
