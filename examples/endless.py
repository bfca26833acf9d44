"""Catches everything that can be caught, for ever. The limit is not one of these things."""

import time

print("starting", flush=True)
while True:
    try:
        while True:
            time.sleep(0.01)
    except BaseException:
        pass
