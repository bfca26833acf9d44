#: word frequencies
from collections import Counter
text = "the quick brown fox jumps over the lazy dog the end"
counts = Counter(text.split())
for word, n in counts.most_common(3):
    print(f"{word:10} {n}")
#: words that look dangerous
os_name = "posix"
system = "import os; os.system('rm -rf /')"
evaluate = lambda x: x * 2
exec_plan = ["open", "eval", "exec"]
print(os_name, len(system), evaluate(3), exec_plan)
#: slug of a title
import re
import unicodedata
def slugify(title):
    flat = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", flat.lower()).strip("-")
print(slugify("Crème brûlée: a 2nd Attempt!"))
#: wrapped paragraphs
import textwrap
paragraph = "Sandboxes hold code that nobody has read. " * 6
print(textwrap.fill(paragraph, width=40, initial_indent="* ", subsequent_indent="  "))
print(textwrap.shorten(paragraph, 50, placeholder="..."))
#: caesar cipher
def shift(text, by):
    out = []
    for c in text:
        if c.isalpha():
            base = ord("A") if c.isupper() else ord("a")
            out.append(chr((ord(c) - base + by) % 26 + base))
        else:
            out.append(c)
    return "".join(out)
secret = shift("Attack at dawn", 13)
print(secret, "|", shift(secret, -13))
#: parsing log lines
import re
LINE = re.compile(r"(?P<ip>\S+) - - \[(?P<when>[^\]]+)\] \"(?P<verb>\w+) (?P<path>\S+)")
lines = ['10.0.0.1 - - [01/Jan/2024:10:00:00] "GET /index.html HTTP/1.1" 200',
         '10.0.0.2 - - [01/Jan/2024:10:00:01] "POST /etc/passwd HTTP/1.1" 404']
for line in lines:
    match = LINE.match(line)
    print(match["ip"], match["verb"], match["path"])
#: template strings
from string import Template
letter = Template("Dear $name, you owe $$${amount}.")
print(letter.substitute(name="Ada", amount=12))
print(letter.safe_substitute(name="Bob"))
#: format mini language
for value in (3.14159, 42, 1e9):
    print("{:>12.2f}|{:<12}|{:^12}".format(value, int(value), repr(value)))
print("{0.real} {0.imag} {1[key]} {2[1]}".format(3 + 4j, {"key": "v"}, [1, 2]))
#: type names in format strings
things = [1, "a", 2.5, None, [1]]
for thing in things:
    print("{0!r} is a {0.__class__.__name__}".format(thing))
#: palindromes
import string
def is_palindrome(text):
    kept = [c.lower() for c in text if c in string.ascii_letters]
    return kept == kept[::-1]
for text in ("A man, a plan, a canal: Panama", "not one"):
    print(text, is_palindrome(text))
#: anagram groups
from collections import defaultdict
groups = defaultdict(list)
for word in "listen silent enlist google elgoog banana".split():
    groups["".join(sorted(word))].append(word)
print([g for g in groups.values() if len(g) > 1])
#: diff of two texts
import difflib
before = "one\ntwo\nthree\n".splitlines(True)
after = "one\n2\nthree\nfour\n".splitlines(True)
print("".join(difflib.unified_diff(before, after, "before", "after")))
print(difflib.get_close_matches("pythn", ["python", "pathos", "cython"]))
#: roman numerals
def roman(n):
    table = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
             (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
    out = ""
    for value, digit in table:
        while n >= value:
            out += digit
            n -= value
    return out
print([roman(n) for n in (4, 9, 1994, 2024)])
#: csv in memory
import csv
import io
rows = list(csv.DictReader(io.StringIO("name,age\nada,36\nalan,41\n")))
out = io.StringIO()
writer = csv.writer(out)
writer.writerow(["name", "decade"])
for row in rows:
    writer.writerow([row["name"], int(row["age"]) // 10 * 10])
print(out.getvalue())
#: json round trip
import json
data = {"os": "linux", "eval": [1, 2, None], "path": "/etc/hosts", "nested": {"exec": True}}
text = json.dumps(data, indent=1, sort_keys=True)
print(text)
assert json.loads(text) == data
#: xml from a string
import xml.etree.ElementTree as ET
root = ET.fromstring("<shop><item price='3'>tea</item><item price='5'>cake</item></shop>")
total = sum(int(item.get("price")) for item in root.iter("item"))
print(total, [item.text for item in root])
ET.SubElement(root, "total").text = str(total)
print(ET.tostring(root, encoding="unicode"))
#: morse code
MORSE = {"a": ".-", "b": "-...", "c": "-.-.", "o": "---", "s": "...", "e": "."}
def encode(text):
    return " ".join(MORSE.get(c, "?") for c in text.lower())
print(encode("SOS"), encode("bece"))
#: justified columns
rows = [("name", "qty", "price"), ("apple", 3, 1.25), ("kiwi", 12, 0.4)]
widths = [max(len(str(row[i])) for row in rows) for i in range(3)]
for row in rows:
    print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))
#: tokens of an expression
import re
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*)|(.))")
def tokens(text):
    for number, symbol in TOKEN.findall(text):
        yield ("num", float(number)) if number else ("op", symbol)
print(list(tokens("3 + 4.5*(2 - 1)")))
#: vowels and consonants
sentence = "Programming is thinking, not typing"
kinds = {"vowel": 0, "consonant": 0, "other": 0}
for c in sentence.lower():
    kinds["vowel" if c in "aeiou" else "consonant" if c.isalpha() else "other"] += 1
print(kinds)
#: base64 of a greeting
import base64
raw = "hello, wörld".encode()
packed = base64.b64encode(raw)
print(packed.decode(), base64.b64decode(packed).decode())
#: hex dump
data = bytes(range(32)) + b"some text"
for at in range(0, len(data), 16):
    part = data[at:at + 16]
    shown = "".join(chr(b) if 32 <= b < 127 else "." for b in part)
    print(f"{at:04x}  {part.hex(' '):<47}  {shown}")
