"""The order in which shards are mixed: a tree fixed by their number, so that the bits depend on nothing else.

Node (level, number) covers the shards from number * 4^level up to those of the next node of its level; a leaf, of level
0, is one shard. Neighbours are mixed where they were learned, and whole subtrees meet above.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FAN", "Node", "children", "covered", "parent", "top", "whole_nodes"]

FAN = 4  # wide enough that each model is read once or twice, narrow enough to hold a node's children in memory
Node = tuple[int, int]


def top(shards: int) -> Node:
    """The node over all shards.

    Examples
    --------
    >>> top(1), top(4), top(5)
    ((0, 0), (1, 0), (2, 0))
    """
    level = 0
    while FAN**level < shards:
        level += 1
    return level, 0


def parent(node: Node) -> Node:
    """The node above."""
    return node[0] + 1, node[1] // FAN


def children(node: Node, shards: int) -> list[Node]:
    """The nodes below that cover any shard.

    Examples
    --------
    >>> children((1, 1), 6)
    [(0, 4), (0, 5)]
    """
    level, number = node
    below = [(level - 1, child) for child in range(FAN * number, FAN * (number + 1))]
    return [child for child in below if child[1] * FAN ** child[0] < shards]


def covered(nodes: Iterable[Node], shards: int) -> set[int]:
    """The shards below these nodes."""
    found: set[int] = set()
    for level, number in nodes:
        found |= set(range(number * FAN**level, min(shards, (number + 1) * FAN**level)))
    return found


def whole_nodes(places: Iterable[int], shards: int) -> list[Node]:
    """The fewest nodes that cover these shards and no others; a node over one child stands for the child.

    Examples
    --------
    >>> whole_nodes([2, 3, 4, 5, 6, 7], 9), whole_nodes([8], 9)
    ([(0, 2), (0, 3), (1, 1)], [(1, 2)])
    """
    found: dict[Node, None] = {(0, place): None for place in places}
    last = top(shards)
    for node in list(found):
        while node != last and all(child in found for child in children(parent(node), shards)):
            node = parent(node)
            for child in children(node, shards):
                del found[child]
            found[node] = None
    return sorted(found, key=lambda node: node[1] * FAN ** node[0])
