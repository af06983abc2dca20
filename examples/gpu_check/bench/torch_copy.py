"""Seconds that torch takes to bring so many bytes to the device: the median, one line a size.

Arguments: the device, then the sizes.
"""

import statistics
import sys
import time

import torch

device = torch.device("cuda", int(sys.argv[1]))
for size in map(int, sys.argv[2:]):
    source = torch.ones(size, dtype=torch.uint8)
    times = []
    began = time.perf_counter()
    while len(times) < 9 or (len(times) < 103 and time.perf_counter() - began < 1.0):
        start = time.perf_counter()
        copy = source.to(device, non_blocking=True)
        torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
        del copy
    # The first two map memory and load code.
    print(statistics.median(times[2:]))
