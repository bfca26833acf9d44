"""The scripts of this suite: many in one file, each below a line `#: NAME | MARKS`.

Marks of hostile scripts: `unseen`, validation does not see it and the kernel refuses; `danger`, it is
never run outside of a cell; `inside`, it reaches nothing outside, so there is no refusal to ask for.
"""

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Script:
    """One script: its name, its marks, its text."""

    def __init__(self, topic, head, lines):
        name, _, marks = head.partition("|")
        self.name = "%s: %s" % (topic, name.strip())
        self.marks = set(marks.split())
        self.text = "".join(lines)

    def bytes(self, outside, port):
        """The text with this host's places in it."""
        text = self.text.replace("@OUT@", outside).replace("@TUO@", outside[::-1])
        data = text.replace("@PORT@", str(port)).encode()
        return data.replace(b"@NUL@", b"\0").replace(b"@FF@", b"\xff")


def load(kind):
    """All scripts of tests/check/KIND, in order."""
    scripts = []
    for file in sorted(os.listdir(os.path.join(FOLDER, kind))):
        topic = os.path.splitext(file)[0]
        head, lines = None, []
        with open(os.path.join(FOLDER, kind, file), encoding="utf-8") as source:
            for line in list(source) + ["#: "]:
                if not line.startswith("#: "):
                    lines.append(line)
                    continue
                if head:
                    scripts.append(Script(topic, head, lines))
                head, lines = line[3:].strip(), []
    return scripts
