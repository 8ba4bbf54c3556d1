"""What a pickle keeps for later use, by number."""

from pttool.core.ckpt.pickles.budget import MOST_SCATTERED
from pttool.core.ckpt.pickles.literals import Malformed
from pttool.core.ckpt.pickles.nodes import Node


class Memo:
    """A list as long as the numbers count up, which takes a tenth of a dict, then a dict."""

    __slots__ = ("base", "counted", "scattered")

    def __init__(self) -> None:
        self.counted: list[Node] = []
        self.scattered: dict[int, Node] = {}
        # The first number: 0, or 1 in pickles of Python 2.
        self.base = 0

    def __len__(self) -> int:
        return len(self.counted) + len(self.scattered)

    def __getitem__(self, slot: int) -> Node:
        at = slot - self.base
        return self.counted[at] if 0 <= at < len(self.counted) else self.scattered[slot]

    def __setitem__(self, slot: int, node: Node) -> None:
        counted = self.counted
        if not counted and slot == 1:
            self.base = 1
        at = slot - self.base
        if at == len(counted):
            counted.append(node)
            if self.scattered:
                self.scattered.pop(slot, None)
        elif 0 <= at < len(counted):
            counted[at] = node
        elif slot < 0:
            raise Malformed(f"it keeps an object under {slot}")
        else:
            self.scattered[slot] = node
            if len(self.scattered) > MOST_SCATTERED:
                raise Malformed(f"it keeps over {MOST_SCATTERED:,} objects under wild numbers")
