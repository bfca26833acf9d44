#!/usr/bin/python3
"""Writes Python sources as arrays of C, each ended by a NUL:  display_embed.py OUT SOURCE…"""
import os
import sys

A_LINE = 20


def numbers(data):
    signed = [byte - 256 if byte > 127 else byte for byte in data] + [0]
    for at in range(0, len(signed), A_LINE):
        yield "    %s,\n" % ", ".join(map(str, signed[at:at + A_LINE]))


def main(out, sources):
    with open(out, "w", encoding="ascii") as to:
        to.write("/* Made by display_embed.py. */\n")
        for path in sources:
            with open(path, "rb") as source:
                to.write("static const char %s_source[] = {\n"
                         % os.path.basename(path).partition(".")[0])
                to.writelines(numbers(source.read()))
                to.write("};\n")


main(sys.argv[1], sys.argv[2:])
