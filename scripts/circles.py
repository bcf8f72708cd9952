"""Circles in a graph of files, for check_layers.py."""


def find_groups(graph):
    """The sets of nodes of which each is reached from each other one; those of one node are left out.

    graph: node -> iterable of nodes. Source: R. Tarjan, Depth-first search and linear graph
    algorithms (1972).
    """
    order, low, trail, groups = {}, {}, [], []

    def walk(node):
        order[node] = low[node] = len(order)
        trail.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                walk(other)
                low[node] = min(low[node], low[other])
            elif other in trail:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            group = trail[trail.index(node) :]
            del trail[trail.index(node) :]
            if len(group) > 1:
                groups.append(frozenset(group))

    for node in sorted(graph):
        if node not in order:
            walk(node)
    return sorted(groups, key=min)


def shortest_circle(graph, group):
    """A shortest way from the first node of a group through others of it and back, as a list that
    begins and ends with that node."""
    start = min(group)
    ways = [[start]]
    seen = set()
    while True:
        way = ways.pop(0)
        for other in sorted(graph.get(way[-1], ())):
            if other == start:
                return [*way, start]
            if other in group and other not in seen:
                seen.add(other)
                ways.append([*way, other])
