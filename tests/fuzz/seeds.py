#!/usr/bin/env python3
"""Writes seeds for the fuzz targets:  seeds.py FOLDER

Whole connections, as a client would send them, so that the fuzzer begins behind the first brace.
"""
import json
import os
import struct
import sys

REQUESTS = [
    {"adyton": 1},
    {"type": "ping"},
    {"type": "status"},
    {"type": "cancel", "id": "a.b_c:d-1"},
    {"type": "run", "id": "1", "code": "print(1)\n"},
    {"type": "run", "id": "2", "code_base64": "/w==", "policy": "strict", "name": "x.py",
     "limits": {"timeout": "2s", "memory": "64M"}, "args": ["a", ""], "stdin": "é",
     "files": [{"name": "d/a", "data": "1"}, {"name": "b", "data_base64": "AAE="}],
     "python": "/usr/bin/python3", "collect": True, "stream": True},
    {"type": "run", "id": "3", "code": "\0\"\\\u20ac", "stdin_base64": "", "colour": 1},
]


def frame(message):
    text = json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


def main(folder):
    os.makedirs(folder, exist_ok=True)
    seeds = [frame(r) for r in REQUESTS] + [b"".join(frame(r) for r in REQUESTS), b"\0\0\0\0"]
    for i, seed in enumerate(seeds):
        with open(os.path.join(folder, "frames-%d" % i), "wb") as file:
            file.write(seed)


main(sys.argv[1])
