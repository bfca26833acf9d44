"""The rules that a program can check:  run.py [FOLDER]

Each rule first meets samples (samples.py) that it must find and samples that it must leave
alone, then the tree. Prints TAP.
"""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "harness")]

import aggregator    # noqa: E402
import code          # noqa: E402, A004
import texts         # noqa: E402
from samples import SAMPLES    # noqa: E402
from tap import Tap  # noqa: E402
from tree import Tree, read    # noqa: E402

# name, rule, program that it needs
RULES = (
    ("layers", code.layers, None),
    ("preprocessor", code.preprocessor, None),
    ("file lengths", code.file_lengths, None),
    ("function lengths", code.function_lengths, None),
    ("mutable globals", code.mutable_globals, None),
    ("threads", code.threads, None),
    ("openings", code.openings, None),
    ("layout", code.layout, "clang-format"),
    ("words", texts.words, None),
    ("reasons", texts.reasons, None),
    ("links", texts.links, None),
    ("documents", texts.documents, None),
    ("manuals", texts.manuals, None),
)


def problems_of_rule(name, rule):
    """What the samples show to be wrong with the rule itself."""
    good, bad = SAMPLES[name]
    found = ["a good sample was refused: %s" % text for texts in good
             for text in rule(Tree(texts))]
    for texts, wanted in bad:
        said = rule(Tree(texts))
        if not any(wanted in text for text in said):
            found.append("nothing said %r of %r; said: %r" % (wanted, texts, said))
    return found


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..")
    tree, tap = read(os.path.abspath(folder)), Tap()
    for name, rule, needs in RULES:
        if needs and not shutil.which(needs):
            tap.point(name, skip="%s is not installed" % needs)
            continue
        tap.point(name + ": the rule catches its samples", problems_of_rule(name, rule))
        tap.point(name, rule(tree))
    aggregator.check(tap, os.path.join(HERE, "..", "run"))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
