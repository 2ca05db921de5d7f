"""A minimum cut of a network, by maximum flow (Dinic 1970), in plain Python.

The networks of `record` have a few dozen nodes, and to load a library would take longer.
"""

from __future__ import annotations

UNLIMITED = 1 << 80


class Network:
    """Directed edges with capacities between ``n`` nodes."""

    def __init__(self, n: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(n)]  # numbers of the edges that leave
        self.stop: list[int] = []
        self.left: list[int] = []  # capacity; the reverse of edge e is e ^ 1

    def connect(self, a: int, b: int, capacity: int) -> None:
        self.edges[a].append(len(self.stop))
        self.edges[b].append(len(self.stop) + 1)
        self.stop += (b, a)
        self.left += (capacity, 0)

    def source_side(self, source: int, sink: int) -> list[bool]:
        """Which nodes the source still reaches when the flow is at its maximum."""
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return [at >= 0 for at in level]
            self._block(source, sink, level)

    def _levels(self, source: int) -> list[int]:
        """Per node: its distance from the source by edges with capacity left, or -1."""
        level = [-1] * len(self.edges)
        level[source] = 0
        front = [source]
        for a in front:
            for e in self.edges[a]:
                b = self.stop[e]
                if self.left[e] and level[b] < 0:
                    level[b] = level[a] + 1
                    front.append(b)
        return level

    def _block(self, source: int, sink: int, level: list[int]) -> None:
        """Send flow along shortest paths until each of them has a full edge."""
        tried = [0] * len(self.edges)  # edges of each node that lead nowhere any more
        at, path = source, list[int]()
        while True:
            if at == sink:
                at = self._send(path)
            e = self._next(at, tried, level)
            if e >= 0:
                path.append(e)
                at = self.stop[e]
            elif path:
                at = self.stop[path.pop() ^ 1]
                tried[at] += 1
            else:
                return

    def _next(self, at: int, tried: list[int], level: list[int]) -> int:
        """The first edge that leads on from a node, or -1."""
        edges, deeper = self.edges[at], level[at] + 1
        for k in range(tried[at], len(edges)):
            if self.left[edges[k]] and level[self.stop[edges[k]]] == deeper:
                tried[at] = k
                return edges[k]
        tried[at] = len(edges)
        return -1

    def _send(self, path: list[int]) -> int:
        """Fill the path; it is cut back to before its first full edge, where the search goes on."""
        flow = min(self.left[e] for e in path)
        for e in path:
            self.left[e] -= flow
            self.left[e ^ 1] += flow
        full = next(k for k, e in enumerate(path) if not self.left[e])
        at = self.stop[path[full] ^ 1]
        del path[full:]
        return at
