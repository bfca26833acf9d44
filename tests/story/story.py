#!/usr/bin/env python3
"""A data assistant's afternoon, end to end, in real cells:  story.py PATH-TO-ADYTON [NAME…]

A CSV as offices send it (a byte order mark, semicolons, decimal commas, missing values, 200,000
rows) is uploaded, loaded, described, cleaned, grouped and plotted; an Excel or Parquet file is
written where a library for it is there; everything is downloaded; and on the way one step raises
and one never ends. What the cells say is compared with what this program works out by itself, from
the rows that it has written. Prints TAP.
"""
import base64
import csv
import datetime
import hashlib
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from serve_parts import Suite, check, same

ADYTON = os.path.abspath(sys.argv[1])
ROWS = 200000
CITIES = ("Zürich", "Genève", "Łódź", "São Paulo")
POLICY = """name: story
extends: open
workspaces: named
cpu_time: 2min
rules: {}
"""
suite = Suite()


def number(value):
    return ("%.2f" % value).replace(".", ",")


def rows():
    """(day, city, amount or None, count or None): the same each time."""
    state = 1
    first = datetime.date(2023, 1, 1)
    for i in range(ROWS):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        amount = None if state >> 60 == 0 else (state >> 33) % 100000 / 100
        count = None if state >> 52 & 15 == 3 else 1 + (state >> 40) % 9
        yield first + datetime.timedelta(days=i % 730), CITIES[(state >> 20) % 4], amount, count


def write_csv(path):
    """As a spreadsheet in German saves it."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        out = csv.writer(file, delimiter=";", lineterminator="\r\n")
        out.writerow(["Datum", "Stadt", "Umsatz (€)", "Anzahl"])
        for day, city, amount, count in rows():
            out.writerow([day.strftime("%d.%m.%Y"), city,
                          "n/v" if amount is None else number(amount),
                          "" if count is None else count])
    return path


class Facts:
    """What the rows add up to."""

    def __init__(self):
        self.missing_amounts = self.missing_counts = self.whole = 0
        self.sums = dict.fromkeys(CITIES, 0.0)
        self.months = {}
        self.total, self.amounts = 0.0, 0
        for day, city, amount, count in rows():
            self.missing_amounts += amount is None
            self.missing_counts += count is None
            if amount is not None:
                self.total += amount
                self.amounts += 1
            if amount is not None and count is not None:
                self.whole += 1
                self.sums[city] += amount
                month = day.strftime("%Y-%m")
                self.months[month] = self.months.get(month, 0.0) + amount


LOAD = """
import os, pandas as pd
source = "/tmp/sales.csv" if os.path.exists("/tmp/sales.csv") else "/data/sales.csv"
raw = pd.read_csv(source, sep=";", decimal=",", encoding="utf-8-sig", na_values=["n/v"])
raw.to_pickle("/workspace/raw.pickle")
print(list(raw.columns), len(raw), [str(t) for t in raw.dtypes])
raw.describe()
"""
BROKEN = """
import pandas as pd
raw = pd.read_pickle("/workspace/raw.pickle")
open("/workspace/reached", "w").write("before the error")
raw["Umsatz"].sum()
"""
ENDLESS = """
import pandas as pd
raw = pd.read_pickle("/workspace/raw.pickle")
print("looking", flush=True)
while True:
    raw.sort_values("Anzahl")
"""
CLEAN = """
import json, pandas as pd
assert open("/workspace/reached").read() == "before the error"
raw = pd.read_pickle("/workspace/raw.pickle")
raw.columns = ["day", "city", "amount", "count"]
print(json.dumps({name: int(n) for name, n in raw.isna().sum().items()}))
clean = raw.dropna().copy()
clean["day"] = pd.to_datetime(clean["day"], format="%d.%m.%Y")
clean["count"] = clean["count"].astype("int64")
clean.to_pickle("/workspace/clean.pickle")
clean
"""
GROUP = """
import json, pandas as pd
clean = pd.read_pickle("/workspace/clean.pickle")
by_city = clean.groupby("city")["amount"].sum()
by_month = clean.groupby(clean["day"].dt.strftime("%Y-%m"))["amount"].sum()
by_city.to_pickle("/workspace/by_city.pickle")
by_month.to_pickle("/workspace/by_month.pickle")
print(json.dumps([by_city.to_dict(), by_month.to_dict()]))
by_city
"""
PLOT = """
import pandas as pd
import matplotlib.pyplot as plt
by_city = pd.read_pickle("/workspace/by_city.pickle")
by_month = pd.read_pickle("/workspace/by_month.pickle")
plt.bar(by_city.index, by_city.values, label="Umsatz")
plt.title("Umsatz je Stadt")
plt.ylabel("Umsatz (€)")
plt.show()
print("between")
plt.plot(range(len(by_month)), by_month.values, marker="o", label="Umsatz")
plt.title("Umsatz je Monat")
plt.show()
"""
WRITE = """
import pandas as pd
clean = pd.read_pickle("/workspace/clean.pickle")
written = []
for name, library, write in (
        ("report.xlsx", "openpyxl", lambda f: clean.head(1000).to_excel(f, index=False)),
        ("clean.parquet", "pyarrow", lambda f: clean.to_parquet(f))):
    try:
        __import__(library)
    except ImportError:
        print("no", library)
    else:
        write(name)
        written.append(name)
clean.to_csv("clean.csv", index=False)
pd.read_pickle("/workspace/by_city.pickle").to_csv("by_city.csv", header=["amount"])
print("written", written)
"""


class Afternoon:
    """The steps, each a run; what they keep lies in a workspace."""

    def __init__(self, place, *options):
        self.place, self.options = place, options
        self.policy = place.file("story.yaml", POLICY)

    def run(self, code, *more):
        words = ("run", "--cold", "--json", "--show-last", "--policy", self.policy, "--workspace",
                 "story", *self.options, *more, "-c", code)
        done = self.place.call(*words)
        check(done.stdout, "there is an outcome", done.stderr)
        return json.loads(done.stdout)

    def ok(self, code, *more):
        outcome = self.run(code, *more)
        same((outcome["status"], outcome["stderr"]), ("ok", ""), "a step")
        return outcome


def close_to(seen, wanted, what):
    check(abs(seen - wanted) <= abs(wanted) * 1e-9 + 1e-6, "%s is %r" % (what, wanted), seen)


def tables(outcome):
    return [item["data"]["application/vnd.adyton.table+json"] for item in outcome["results"]
            if "application/vnd.adyton.table+json" in item["data"]]


def pictures(outcome):
    return [item["data"] for item in outcome["results"] if "image/png" in item["data"]]


def check_description(outcome, facts):
    table = tables(outcome)[0]
    index = table["index"]
    first = [i for i, name in enumerate(table["columns"]) if "Umsatz" in str(name)][0]
    cell = {str(name): row[first] for name, row in zip(index, table["rows"])}
    same(int(cell["count"]), ROWS - facts.missing_amounts, "the amounts")
    close_to(cell["mean"], facts.total / facts.amounts, "their mean")


def check_groups(outcome, facts):
    cities, months = json.loads(outcome["stdout"])
    same(sorted(cities), sorted(CITIES), "the cities")
    for city, total in facts.sums.items():
        close_to(cities[city], total, "the sum of " + city)
    same(sorted(months), sorted(facts.months), "the months")
    for month, total in facts.months.items():
        close_to(months[month], total, "the sum of " + month)


def check_plots(outcome, facts):
    same([e["type"] for e in outcome["events"]], ["display", "stdout", "display"], "the order")
    shown = pictures(outcome)
    same(len(shown), 2, "the number of charts")
    for data in shown:
        png = base64.b64decode(data["image/png"])
        width, height = struct.unpack(">II", png[16:24])
        check(png.startswith(b"\x89PNG\r\n") and width > 300 and height > 200, "a picture",
              width, height)
    bars, line = (data["application/vnd.adyton.chart+json"] for data in shown)
    same((bars["type"], bars["title"], bars["y_unit"]), ("bar", "Umsatz je Stadt", "€"), "one")
    for element in bars["elements"]:
        close_to(element["value"], facts.sums[element["label"]], "the bar of " + element["label"])
    same((line["type"], len(line["elements"][0]["points"])), ("line", len(facts.months)),
         "the other")


def check_files(outcome, folder, facts):
    listed = {file["path"]: file for file in outcome["files"]}
    for path, file in listed.items():
        with open(os.path.join(folder, path), "rb") as data:
            whole = data.read()
        same((len(whole), hashlib.sha256(whole).hexdigest()), (file["bytes"], file["sha256"]),
             "the bytes of " + path)
    same(listed["clean.csv"]["mime"], "text/csv", "the kind of clean.csv")
    with open(os.path.join(folder, "clean.csv"), encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    same(len(read), facts.whole, "the rows of clean.csv")
    close_to(sum(float(row["amount"]) for row in read), sum(facts.sums.values()), "their sum")
    written = [name for name in ("report.xlsx", "clean.parquet") if name in listed]
    check("written %s" % written in outcome["stdout"], "what was written", outcome["stdout"])
    for name in written:
        with open(os.path.join(folder, name), "rb") as file:
            check(file.read(4) in (b"PK\3\4", b"PAR1"), "the beginning of " + name)


def tell(place, day, *upload):
    facts = Facts()
    loaded = day.ok(LOAD, *upload)
    columns = ["Datum", "Stadt", "Umsatz (€)", "Anzahl"]
    check(loaded["stdout"].startswith("%s %d " % (columns, ROWS)), "what was loaded",
          loaded["stdout"])
    check_description(loaded, facts)
    broken = day.run(BROKEN)
    same((broken["status"], broken["error"]["name"], broken["error"]["line"]),
         ("exception", "KeyError", 5), "the step that raises")
    endless = day.run(ENDLESS, "--timeout", "3s")
    same((endless["status"], endless["stdout"], endless["limit"]["name"]),
         ("timeout", "looking\n", "timeout"), "the step that never ends")
    clean = day.ok(CLEAN)
    same(json.loads(clean["stdout"]), {"day": 0, "city": 0, "amount": facts.missing_amounts,
                                       "count": facts.missing_counts}, "what is missing")
    same(tables(clean)[0]["total_rows"], facts.whole, "the rows that are whole")
    check_groups(day.ok(GROUP), facts)
    check_plots(day.ok(PLOT), facts)
    out = os.path.join(place.path, "out")
    check_files(day.ok(WRITE, "--out", out), out, facts)


@suite.test(None)
def the_file_is_uploaded(place):
    tell(place, Afternoon(place), "--file", write_csv(os.path.join(place.path, "sales.csv")))


@suite.test(None)
def the_file_is_in_a_data_folder(place):
    folder = os.path.join(place.path, "data")
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    write_csv(os.path.join(folder, "sales.csv"))
    check_description(Afternoon(place, "--data", folder).ok(LOAD), Facts())
    same(os.listdir(folder), ["sales.csv"], "the folder in the end")


if __name__ == "__main__":
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
