#!/usr/bin/env python3
"""`adyton ask` from end to end, against scripted endpoints.  Usage: run.py BUILD [NAME…]

Prints TAP.  Every endpoint replays what models and servers do; no model is asked.
"""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]

import answers   # noqa: E402,F401  (each registers its points)
import bounds    # noqa: E402,F401
import chat      # noqa: E402,F401
import hostile   # noqa: E402,F401
import wire      # noqa: E402,F401
from parts import points  # noqa: E402

if __name__ == "__main__":
    sys.exit(points.run(os.path.abspath(sys.argv[1]), sys.argv[2:]))
