#!/usr/bin/env python3
"""Writes placements.tsv: what sglang's BuddyAllocator answers to operations made up by seed.

    make.py ALLOCATOR > placements.tsv

ALLOCATOR is the path of `disaggregation/transport/allocator.py` of an sglang release, which is loaded as it is and
needs nothing else.
"""

import importlib.util
import logging
import random
import sys

MIB = 1 << 20

# (seed, length asked for, smallest block, operations)
POOLS = [
    (1, 256 * MIB, MIB, 200),
    (2, 100 * MIB, MIB, 150),
    (3, 0, MIB, 20),
    (4, 64 * 512, 512, 250),
    (5, 1, 1, 10),
    (6, 33, 1, 250),
    (7, 1 << 40, 1 << 30, 150),
    (8, 12345, 4096, 60),
]


def load(path):
    spec = importlib.util.spec_from_file_location("allocator", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["allocator"] = module
    spec.loader.exec_module(module)
    return module


def operations(allocator_type, seed, length, min_block, count):
    chance = random.Random(seed)
    allocator = allocator_type(length, min_block)
    pool = allocator.pool_size
    print("pool", length, min_block, pool, sep="\t")
    held = []
    for number in range(count):
        # Fills for a while, then empties for a while.
        fills = 0.75 if number // 40 % 2 == 0 else 0.35
        kind = chance.random()
        if kind < 0.08:
            # Offsets that are free, inside of a block, or outside.
            offset = chance.choice([0, pool, pool * 2, min_block, pool - min_block, chance.randrange(pool + 1)])
            answer = allocator.free(offset)
            if answer:
                held.remove(offset)
            print("free", offset, "yes" if answer else "no", sep="\t")
        elif held and kind > fills:
            offset = held.pop(chance.randrange(len(held)))
            assert allocator.free(offset)
            print("free", offset, "yes", sep="\t")
        else:
            top = pool.bit_length() - 1
            bottom = min_block.bit_length() - 1
            power = 1 << max(bottom, min(top, bottom + int(chance.expovariate(0.7))))
            size = chance.choice([power, power + 1, max(1, power - 1), chance.randint(1, power), 1])
            if chance.random() < 0.03:
                size = chance.choice([pool, pool + 1, pool * 3])
            offset = allocator.allocate(size)
            if offset is not None:
                held.append(offset)
            print("allocate", size, "none" if offset is None else offset, sep="\t")
    stats = allocator.get_stats()
    sizes = ",".join(f"{size}:{count}" for size, count in stats["free_blocks_by_size"].items())
    numbers = [stats[key] for key in ("allocated_bytes", "free_bytes", "num_allocations", "num_blocks")]
    print("stats", *numbers, sizes, sep="\t")


def main():
    logging.disable()
    allocator_type = load(sys.argv[1]).BuddyAllocator
    for pool in POOLS:
        operations(allocator_type, *pool)


main()
