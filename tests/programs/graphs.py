"""Shortest paths, ranks and messages over edges."""

import numpy as np


def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def floyd_warshall_loops(path):
    n = len(path)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if path[i, k] + path[k, j] < path[i, j]:
                    path[i, j] = path[i, k] + path[k, j]
    return path


def bellman_ford(edges, weights, n_vertices=5):
    distance = np.full(n_vertices, 1e9)
    distance[0] = 0.0
    for _ in range(n_vertices - 1):
        for (a, b), w in zip(edges, weights, strict=True):
            if distance[a] + w < distance[b]:
                distance[b] = distance[a] + w
    return distance


def pagerank(links, damping, tolerance=1e-13):
    n = links.shape[0]
    transition = links / links.sum(axis=0)
    rank = np.ones(n) / n
    while True:
        new = (1 - damping) / n + damping * transition @ rank
        if np.abs(new - rank).sum() < tolerance:
            return new
        rank = new


def message_passing(features, source, target, weight, rounds=3):
    for _ in range(rounds):
        messages = np.tanh(features[source] * weight[:, None])
        gathered = np.zeros_like(features)
        np.add.at(gathered, target, messages)
        features = 0.5 * features + gathered
    return features


def epidemic(contact, infected, beta, gamma, dt=0.1, steps=10):
    """SIR on a network, one row of the contact matrix at a time."""
    n = len(infected)
    well = 1 - infected
    sick = infected.copy()
    for _ in range(steps):
        for i in range(n):
            pressure = 0.0
            for j in range(n):
                pressure += contact[i, j] * sick[j]
            new = dt * beta * well[i] * pressure
            well[i] -= new
            sick[i] += new - dt * gamma * sick[i]
    return well, sick


def flow_accumulation(height, rain):
    """Water runs to the lowest neighbour; cells in the order of their height."""
    area = rain.copy()
    for i in np.argsort(-height):
        best, lowest = -1, height[i]
        for j in (i - 1, i + 1):
            if 0 <= j < height.size and height[j] < lowest:
                best, lowest = j, height[j]
        if best >= 0:
            area[best] += area[i]
    return area
