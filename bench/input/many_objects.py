"""Builds and drops a graph of many small Python objects of its own classes, with dictionaries,
sets and strings, and prints a checksum. With PYTHONMALLOC=malloc each is a block of malloc's.
usage: many_objects.py COUNT"""
import random
import sys


class Place:
    """An instance with a dictionary of attributes."""

    def __init__(self, number, name):
        self.number = number
        self.name = name
        self.roads = {}
        self.tags = set()


class Road:
    """An instance with slots."""

    __slots__ = ("start", "end", "length")

    def __init__(self, start, end, length):
        self.start, self.end, self.length = start, end, length


def build(count, chance):
    places = [Place(i, f"place {i} of {count}") for i in range(count)]
    for place in places:
        for _ in range(chance.randrange(1, 5)):
            other = chance.choice(places)
            place.roads[other.name] = Road(place, other, chance.random())
        place.tags.update(f"tag{chance.randrange(1000)}" for _ in range(3))
    return places


def walk(places):
    """Follows the shortest road from each place a few times."""
    total = 0.0
    for place in places:
        for _ in range(4):
            road = min(place.roads.values(), key=lambda r: r.length)
            total += road.length
            place = road.end
    return total


def main():
    chance = random.Random(3)
    count = int(sys.argv[1])
    total = 0.0
    for size in (count, count // 3, count // 2):
        places = build(size, chance)
        total += walk(places)
        kinds = [type(f"Kind{n}", (Place,), {"n": n, "text": str(n) * 5}) for n in range(300)]
        total += sum(len(kind(1, "x").text) for kind in kinds)
        del places, kinds
    print(f"{total:.6f}")


main()
