"""What a run shows, through the real program: `run.py BUILD`. Prints TAP.

Every check of CHECKS runs twice: in a cold cell, and in a warm one of a supervisor. The programs
are ordinary ones; what hostile ones may do is in hostile.py, the terminal in terminal.py.
"""

import base64
import importlib.util
import itertools
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "warm"), HERE]

import programs                                   # noqa: E402
from parts import ran_warm, stage, watch          # noqa: E402
from supervisor import Connection                 # noqa: E402

PYTHON = "/usr/bin/python3"
CHART, TABLE = "application/vnd.adyton.chart+json", "application/vnd.adyton.table+json"


def expect(what, got, wanted):
    return [] if got == wanted else ["%s: %r, not %r" % (what, got, wanted)]


def ended(outcome, status="ok", stderr=""):
    return expect("status", outcome["status"], status) + \
        expect("stderr", outcome["stderr"] if stderr is not None else None, stderr)


def data(outcome, i):
    results = outcome["results"]
    return results[i]["data"] if i < len(results) else {}


def texts(outcome):
    return [one["data"].get("text/plain") for one in outcome["results"]]


def order(outcome):
    """Events as they read: text, or the number of a result."""
    return [one["index"] if one["type"] == "display" else (one["type"], one["text"])
            for one in outcome["events"]]


def size_of(png):
    """Width and height in the head of a PNG."""
    head = base64.b64decode(png)[:24]
    return struct.unpack(">II", head[16:]) if head[:8] == b"\x89PNG\r\n\x1a\n" else None


def sizes(outcome):
    return [size_of(one["data"]["image/png"]) for one in outcome["results"]
            if "image/png" in one["data"]]


def charts(outcome):
    return [one["data"].get(CHART, {}) for one in outcome["results"]]


# --- checks: name, program, options, function of the outcome, what must be installed ---

def check_order(outcome):
    return ended(outcome, stderr="two\n") + expect("order", order(outcome), [
        ("stdout", "one\n"), 0, ("stderr", "two\n"), 1, ("stdout", "three"), 2,
        ("stdout", "four\n")]) + expect("texts", texts(outcome), ["1", "'é'", "[3]"])


def check_builtins(outcome):
    theirs = subprocess.run([PYTHON, "-c", programs.FRESH], capture_output=True, text=True)
    return ended(outcome) + expect("builtins", outcome["stdout"], theirs.stdout)


def check_shadow(outcome):
    return ended(outcome) + expect("stdout", outcome["stdout"], "mine 1\n") + \
        expect("results", outcome["results"], [])


def check_protocol(outcome):
    return ended(outcome) + expect("forms", data(outcome, 0), {
        "text/plain": "rich", "text/html": "<b>1</b>", "text/markdown": "*1*",
        "text/latex": "$1$", "image/svg+xml": "<svg/>", "application/json": {"a": [1, None, "é"]},
        "image/png": base64.b64encode(b"\x89PNG\0").decode()}) + \
        expect("notes", outcome["results"][0].get("metadata"), {"text/markdown": {"wide": True}})


def check_bundle(outcome):
    return ended(outcome) + expect("forms", data(outcome, 0), {
        "text/plain": "plain", "application/x-own": "own", "text/html": "<i>b</i>"}) + \
        expect("included", data(outcome, 1), {"text/html": "<i>b</i>"}) + \
        expect("excluded", data(outcome, 2), {"text/plain": "plain", "application/x-own": "own"}) + \
        expect("raw", data(outcome, 3), {"text/plain": "raw", "text/html": "<u>r</u>"}) + \
        expect("note", outcome["results"][3].get("metadata"), {"k": 1})


def check_failing_forms(outcome):
    failed = (outcome["results"][0].get("metadata") or {}).get("failed") or {}
    return ended(outcome) + expect("texts", texts(outcome), [
        "<Broken, whose __repr__ raised ValueError: no>"]) + \
        expect("failed", failed, {"text/html": "KeyError: 'gone'"}) + \
        expect("goes on", outcome["stdout"], "after\n")


def check_last(outcome):
    return ended(outcome) + expect("result", outcome["result"], "42") + \
        expect("results", outcome["results"], [
            {"type": "result", "main": True, "data": {"text/plain": "42"}}])


def check_no_last(outcome):
    return ended(outcome) + expect("result", outcome["result"], None) + \
        expect("results", outcome["results"], [])


def check_last_raises(outcome):
    error = outcome["error"] or {}
    problems = expect("status", outcome["status"], "exception") + \
        expect("line", error.get("line"), 3) + \
        expect("results", texts(outcome), ["'before'"])
    if "adyton" in outcome["stderr"] or outcome["stderr"].count("File ") != 1:
        problems.append("a frame of ours in %r" % outcome["stderr"])
    return problems


def check_interrupted(outcome):
    return expect("status", outcome["status"], "exception") + \
        expect("error", (outcome["error"] or {}).get("name"), "KeyboardInterrupt") + \
        expect("results", outcome["results"], [])


def check_syntax_error(outcome):
    problems = expect("status", outcome["status"], "exception") + \
        expect("line", (outcome["error"] or {}).get("line"), 2)
    if outcome["stderr"].count("File ") != 1 or "Traceback" in outcome["stderr"]:
        problems.append("a frame of ours in %r" % outcome["stderr"])
    return problems


def check_show(outcome):
    return ended(outcome) + expect("order", order(outcome), [
        ("stdout", "before\n"), 0, ("stdout", "between\n"), 1, ("stdout", "[] False\n")]) + \
        expect("lines", [len(c.get("elements", ())) for c in charts(outcome)], [1, 1]) + \
        expect("sizes", sizes(outcome), [(640, 480)] * 2)


def check_left_open(outcome):
    return ended(outcome) + expect("sizes", sizes(outcome), [(150, 100), (640, 480)]) + \
        expect("order", order(outcome), [("stdout", "end\n"), 0, 1])


def check_each_once(outcome):
    return ended(outcome) + expect("sizes", sizes(outcome), [(640, 480)] * 4) + \
        expect("titles", [c.get("title") for c in charts(outcome)],
               ["once", "twice", "last", "twice, changed"]) + \
        expect("kinds", [one["type"] for one in outcome["results"]],
               ["display", "display", "result", "display"])


def check_pause(outcome):
    points = [c["elements"][0]["points"] for c in charts(outcome)]
    return ended(outcome) + expect("the last state alone", points, [[[0, 2], [1, 2]]])


def check_signals(outcome):
    found = [text.strip("'").lstrip("x") for text in texts(outcome)]
    return ended(outcome) + expect("signals came", outcome["stdout"], "True\n") + \
        expect("each item once", found, [str(i) for i in range(200)])


def check_figures_of(status):
    def check(outcome):
        return expect("status", outcome["status"], status) + \
            expect("sizes", sizes(outcome), [(640, 480)])
    return check


def check_svg(outcome):
    text = data(outcome, 0).get("image/svg+xml", "")
    return ended(outcome) + ([] if text.startswith("<?xml") and "</svg>" in text
                             else ["no SVG: %r" % text[:80]])


def check_large_figure(outcome):
    note = (outcome["results"][0].get("metadata") or {}) if outcome["results"] else {}
    shown = sizes(outcome)
    problems = ended(outcome)
    if not shown or not 4000000 < shown[0][0] * shown[0][1] <= 8000000:
        problems.append("it is drawn as %r" % shown)
    if not 0 < note.get("scaled", 0) < 1:
        problems.append("nothing says that it was made smaller: %r" % note)
    return problems


def check_charts(outcome):
    line, scatter, bar, flat, pie, box, both, dates, image = charts(outcome)
    brief = lambda chart: (chart.get("type"), chart.get("elements"))    # noqa: E731
    problems = ended(outcome)
    problems += expect("line", brief(line), ("line", [
        {"label": "sq", "points": [[1, 1], [2, 4]]}, {"label": "Line 1", "points": [[1, 2], [2, 3]]}]))
    problems += expect("axes", [line.get(k) for k in (
        "title", "x_label", "x_unit", "y_label", "y_unit", "x_scale", "y_scale")],
        ["squares", "time (s)", "s", "Y", None, "linear", "log"])
    problems += expect("scatter", brief(scatter),
                       ("scatter", [{"label": "dots", "points": [[1, 3], [2, 4]]}]))
    problems += expect("bar", brief(bar), ("bar", [
        {"label": "a", "group": "g", "value": 3}, {"label": "b", "group": "g", "value": 4}]))
    problems += expect("bar's scale", bar.get("x_scale"), "categorical")
    problems += expect("flat bar", brief(flat), ("bar", [
        {"label": "u", "group": "", "value": 5}]))
    problems += expect("pie", [(e["label"], round(e["angle"], 3), e["radius"])
                               for e in pie.get("elements", ())],
                       [("p", 90, 1), ("q", 270, 1)])
    problems += expect("box", brief(box), ("box_and_whisker", [
        {"label": "low", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4,
         "max": 4, "outliers": [20]}]))
    problems += expect("several axes", [both.get("type"), both.get("title")] +
                       [brief(c)[0] for c in both.get("elements", ())],
                       ["superchart", "both", "line", "scatter"])
    problems += expect("dates", [dates.get("x_scale"),
                                 [p[0][:10] for p in dates["elements"][0]["points"]]],
                       ["datetime", ["2020-01-01", "2020-01-02"]])
    return problems + expect("image", brief(image), ("unknown", []))


def check_table(outcome):
    html, table = data(outcome, 0).get("text/html", ""), data(outcome, 0).get(TABLE)
    problems = ended(outcome) + expect("table", table, {
        "columns": ["n", "when", "what", "c, 1"],
        "dtypes": ["float64", "datetime64[ns]", "object", "category"],
        "index": ["a", "b"], "total_rows": 2, "total_columns": 4, "truncated": False,
        "rows": [[1.5, "2020-01-01T00:00:00", "é", "x"], [None, None, None, "y"]]})
    problems += [] if "<table" in html else ["no HTML: %r" % html[:80]]
    large = data(outcome, 1).get(TABLE, {})
    problems += expect("large", [len(large.get("rows", ())), large.get("total_rows"),
                                 large.get("truncated")], [200, 5000, True])
    wide = data(outcome, 2).get(TABLE, {})
    problems += expect("wide", [len(wide.get("columns", ())), wide.get("total_columns"),
                                wide.get("truncated")], [100, 300, True])
    return problems + expect("series", data(outcome, 3).get(TABLE, {}).get("rows"), [[1], [2]])


def check_image(outcome):
    return ended(outcome) + expect("sizes", sizes(outcome), [(7, 5)])


def check_libraries(outcome):
    return ended(outcome) + expect("polars", data(outcome, 0).get(TABLE), {
        "columns": ["a", "b"], "dtypes": ["Int64", "Utf8"], "rows": [[1, "x"], [2, None]],
        "total_rows": 2, "total_columns": 2, "truncated": False}) + \
        expect("plotly", data(outcome, 1).get("application/vnd.plotly.v1+json"),
               {"data": [{"type": "bar"}], "layout": {}}) + \
        expect("plotly's show", texts(outcome)[2], "plotly figure") + \
        expect("altair", data(outcome, 3).get("application/vnd.vegalite.v5+json"), {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.8.json", "mark": "bar"}) + \
        expect("bokeh", data(outcome, 4).get("application/vnd.bokehjs_item+json"),
               {"root_id": "1"})


def check_ipython(outcome):
    return ended(outcome) + expect("printed", outcome["stdout"], "") + \
        expect("html", data(outcome, 0).get("text/html"), "<b>x</b>") + \
        expect("markdown", data(outcome, 1).get("text/markdown"), "*a*") + \
        expect("raw", data(outcome, 2), {"text/plain": "raw"})


def check_altair(outcome):
    found = [(mime, chart.get("mark")) for mime, chart in data(outcome, 0).items()
             if mime.startswith("application/vnd.vegalite.v")]
    return ended(outcome) + ([] if len(found) == 1 and "bar" in str(found[0][1]) else [found])


def check_bounds(outcome):
    first, second, third = (outcome["results"] + [{}, {}, {}])[:3]
    text = first.get("data", {}).get("text/plain", "")
    problems = ended(outcome) + expect("omitted", second.get("omitted"), {"text/html": 5000000})
    problems += expect("the rest", second.get("data"), {"text/plain": "big"})
    problems += expect("JSON of too many values", list(third.get("omitted", ())),
                       ["application/a+json"])
    problems += expect("JSON too deep is text inside",
                       "application/b+json" in third.get("data", ()), True)
    if len(text) > 70000 or not text.endswith("bytes more") or not text.startswith("'aaaa"):
        problems.append("text of %d: …%r" % (len(text), text[-60:]))
    return problems


def check_too_many(outcome):
    return ended(outcome) + expect("results", len(outcome["results"]), 256) + \
        expect("dropped", outcome.get("results_dropped"), 44) + \
        expect("goes on", outcome["stdout"], "end\n")


def check_endless(outcome):
    return expect("status", outcome["status"], "timeout") + \
        expect("texts", texts(outcome), ["'before'"]) + \
        expect("stdout", outcome["stdout"], "start\n")


def check_fork(outcome):
    return ended(outcome) + expect("texts", texts(outcome), ["'parent'"]) + \
        expect("child", outcome["stdout"], "'child'\n<Figure size 640x480 with 0 Axes>\n0\n")


def check_threads(outcome):
    return ended(outcome) + expect("items", sorted(texts(outcome), key=int),
                                   [str(i) for i in range(80)])


def check_split_character(outcome):
    return ended(outcome) + expect("order", order(outcome),
                                   [("stdout", ""), 0, ("stdout", "€!\n")])


CHECKS = (
    ("items stand in their place among what was printed", programs.ORDER, (), check_order, ()),
    ("a program without the word finds the usual builtins", programs.FRESH, (), check_builtins, ()),
    ("a function of the program's own shadows it", programs.SHADOW, (), check_shadow, ()),
    ("an object's own forms", programs.PROTOCOL, (), check_protocol, ()),
    ("bundles, include, exclude, raw", programs.BUNDLE, (), check_bundle, ()),
    ("forms that raise", programs.BROKEN, (), check_failing_forms, ()),
    ("the last expression", "x = 6\nx * 7\n", ("--show-last",), check_last, ()),
    ("the last expression, not asked for", "6 * 7\n", (), check_no_last, ()),
    ("the last expression is None", "print\nNone\n", ("--show-last",), check_no_last, ()),
    ("a semicolon keeps it back", "(6 *\n 7); # so\n", ("--show-last",), check_no_last, ()),
    ("the last statement is none", "x = 1\n", ("--show-last",), check_no_last, ()),
    ("nothing at all", "", ("--show-last",), check_no_last, ()),
    ("a future statement holds for it", programs.FUTURE, ("--show-last",), check_last, ()),
    ("the last expression raises", programs.RAISES, ("--show-last",), check_last_raises, ()),
    ("an interrupt while it is shown is the program's", programs.INTERRUPTED, ("--show-last",),
     check_interrupted, ()),
    ("a syntax error", "x = 1\nx = = 2\n", ("--show-last",), check_syntax_error, ()),
    ("plt.show() shows, and closes", programs.SHOW, (), check_show, ("matplotlib",)),
    ("figures left open", programs.OPEN, (), check_left_open, ("matplotlib",)),
    ("each figure once", programs.ONCE, ("--show-last",), check_each_once, ("matplotlib",)),
    ("figures of a run that fails", programs.PLOT + "1 / 0\n", (), check_figures_of("exception"),
     ("matplotlib",)),
    ("figures of a run that exits", programs.PLOT + "raise SystemExit(3)\n", (),
     check_figures_of("exit"), ("matplotlib",)),
    ("plt.pause() and plt.ginput() keep it open", programs.PAUSE, (), check_pause, ("matplotlib",)),
    ("signals while an item is taken", programs.SIGNALS, (), check_signals, ()),
    ("SVG", programs.PLOT, ("--svg",), check_svg, ("matplotlib",)),
    ("a figure of too many pixels", programs.LARGE, (), check_large_figure, ("matplotlib",)),
    ("data of charts", programs.CHARTS, (), check_charts, ("matplotlib",)),
    ("tables", programs.TABLES, (), check_table, ("pandas",)),
    ("images of PIL", programs.IMAGE, (), check_image, ("PIL",)),
    ("stand-ins for polars, plotly, altair, bokeh", programs.LIBRARIES, (), check_libraries, ()),
    ("display of IPython", programs.IPYTHON, (), check_ipython, ("IPython",)),
    ("a chart of altair", programs.ALTAIR, (), check_altair, ("altair",)),
    ("large items", programs.BOUNDS, (), check_bounds, ()),
    ("too many items", programs.MANY, (), check_too_many, ()),
    ("a __repr__ without an end", programs.ENDLESS, ("--timeout", "3s"), check_endless, ()),
    ("a forked child has no place for it", programs.FORK, (), check_fork, ("matplotlib",)),
    ("from threads", programs.THREADS, (), check_threads, ()),
    ("a character on both sides of an item", programs.SPLIT, (), check_split_character, ()),
)


def check_stream(tap, served):
    """As they come over the socket, in order, and the same item in the outcome."""
    with Connection(served.socket) as connection:
        connection.start(programs.ORDER, policy="plain", stream=True)
        messages, outcome = [], None
        while outcome is None:
            message = connection.receive()
            outcome = message.get("outcome")
            if message["type"] in ("stdout", "stderr"):
                messages.append((message["type"], message["data"]))
            elif message["type"] == "display":
                messages.append(message["item"])
    results = outcome["results"]
    joined = []
    for kind, group in itertools.groupby(messages, lambda one: type(one) is tuple and one[0]):
        joined += ["".join(text for _, text in group)] if kind else list(group)
    tap.point("streamed: in order, as in the outcome", expect("messages", joined, [
        "one\n", results[0], "two\n", results[1], "three", results[2], "four\n"]))


def check_session(tap, served):
    """The same in a session, where a __repr__ without an end costs its run alone."""
    with Connection(served.socket) as connection:
        connection.send({"type": "session_new", "id": "new", "policy": "plain"})
        message = connection.receive()
        while message["type"] not in ("session", "error"):
            message = connection.receive()
        if message["type"] == "error":
            tap.point("session: it begins", [message])
            return
        session = message["session"]["session_id"]
        for i, (code, limits, status, result, wanted) in enumerate(programs.SESSION, 1):
            connection.start(code, session=session, show_last=True, limits=limits)
            outcome = connection.finish()[1]
            tap.point("session: run %d" % i, checked(
                lambda it: expect("status", it["status"], status) + expect(
                    "kept", it["session"], "kept") + expect("result", it["result"], result) +
                expect("sizes", sizes(it), wanted), outcome))
        connection.send({"type": "session_close", "id": "close", "session": session})


def main():
    with stage(__doc__, "plain-60s.yaml") as (tap, made):
        if made:
            before = watch(made)
            with made.supervisor() as served:
                served.await_idle()
                for name, code, options, check, needs in CHECKS:
                    missing = [n for n in needs if importlib.util.find_spec(n) is None]
                    for kind in ("cold", "warm"):
                        if missing:
                            tap.point("%s: %s" % (kind, name), skip="no " + missing[0])
                            continue
                        outcome = made.cold(served, code, *options) if kind == "cold" else \
                            served.run(code, *options, policy="plain")
                        problems = [] if kind == "cold" else ran_warm(outcome)
                        tap.point("%s: %s" % (kind, name), problems + checked(check, outcome))
                check_stream(tap, served)
                if importlib.util.find_spec("matplotlib"):
                    check_session(tap, served)
                else:
                    tap.point("session", skip="no matplotlib")
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


def checked(check, outcome):
    try:
        return check(outcome)
    except (LookupError, TypeError, ValueError) as error:
        return ["%s: %s in %s" % (type(error).__name__, error, json.dumps(outcome)[:2000])]


if __name__ == "__main__":
    sys.exit(main())
