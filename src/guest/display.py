"""What a program shows: display(), the value of its last expression, its figures.

Runs in the program's own interpreter, under its limits, in a namespace that no module has. The
guest puts _ring, _part and the constants in capitals into it (display.c). Nothing is imported
before it is needed: a program that shows nothing must not find modules that it did not ask for.
"""
import sys

OPEN, FULL, ELSEWHERE = 0, 1, 2  # what _ring(None) says
FORMS = (  # in the order in which they are given room
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"),
    ("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_"),
    ("text/markdown", "_repr_markdown_"), ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"), ("application/javascript", "_repr_javascript_"),
    ("application/pdf", "_repr_pdf_"),
)
DEPTH = 16
CELL = 1000  # characters of one value in a table or a chart
INTEGER = 2 ** 53  # what every reader of JSON holds exactly


def display(*objects, include=None, exclude=None, metadata=None, raw=False):
    """Show objects among the results of this run, each in every form that it offers.

    include, exclude: MIME types. metadata: a dict that goes along. raw: the objects are dicts
    from MIME types to data already.
    """
    for thing in objects:
        if _ring(None) == ELSEWHERE:  # a forked process: its results have no place
            print(thing if raw else repr(thing))
            continue
        _show(thing, False, include, exclude, metadata, raw)


def show_last(value):
    """The value of the last expression, unless it is None."""
    if value is not None and _ring(None) != ELSEWHERE:
        _show(value, True)


def split(source, path):
    """The program without its last expression, and that expression: two code objects, the second
    one None when it ends with something else or with a semicolon."""
    tree = compile(source, path, "exec", 0x400, True)  # PyCF_ONLY_AST: no module is imported
    last = tree.body[-1] if tree.body else None
    if type(last).__name__ != "Expr" or _is_silenced(source, last):
        return compile(tree, path, "exec", 0, True), None
    expression = [kind for kind in type(tree).__base__.__subclasses__()
                  if kind.__name__ == "Expression"][0]
    tree.body.pop()
    body = compile(tree, path, "exec", 0, True)
    future = body.co_flags & 0x1fe0000  # `from __future__ import …` holds for the last line, too
    return body, compile(expression(last.value), path, "eval", future, True)


def _is_silenced(source, node):
    if not isinstance(source, bytes):
        source = source.encode("utf-8", "surrogatepass")
    lines = source.split(b"\n")
    line = lines[node.end_lineno - 1] if node.end_lineno <= len(lines) else b""
    return line[node.end_col_offset:].lstrip().startswith(b";")


# --- forms ---

class _Item:
    """The forms of one thing, in the order in which they were found; what went wrong; notes."""

    def __init__(self, metadata=None):
        self.data, self.metadata, self.failed = {}, dict(metadata or {}), {}

    def take(self, mime, make, *arguments):
        """A form as a method of the object makes it: None is none, a pair brings metadata."""
        if mime in self.data:
            return
        try:
            value = make(*arguments)
        except Exception as error:
            self.failed[mime] = _told(error)
            return
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
            value, note = value
            if note:
                self.metadata[mime] = note
        if value is not None:
            self.data[mime] = value

    def take_bundle(self, make, include, exclude):
        try:
            bundle = make(include=include, exclude=exclude)
        except Exception as error:
            self.failed["_repr_mimebundle_"] = _told(error)
            return
        if isinstance(bundle, tuple) and len(bundle) == 2:
            bundle, notes = bundle
            if isinstance(notes, dict):
                self.metadata.update(notes)
        if isinstance(bundle, dict):
            self.data.update((str(mime), value) for mime, value in bundle.items()
                             if value is not None)


def _told(error):
    try:
        return "%s: %s" % (type(error).__name__, str(error)[:CELL])
    except Exception:
        return type(error).__name__


def _method(thing, name):
    """A method of the object's class: an instance of what answers every name has none."""
    try:
        if isinstance(thing, type) or getattr(type(thing), name, None) is None:
            return None
        return getattr(thing, name, None)
    except Exception:
        return None


def _text(thing):
    try:
        return repr(thing)
    except Exception as error:
        return "<%s, whose __repr__ raised %s>" % (type(thing).__name__, _told(error))


def _kinds(thing):
    """Package and name of the classes that a thing is of: libraries are recognised by these."""
    return {(str(kind.__module__).partition(".")[0], kind.__name__)
            for kind in type(thing).__mro__}


def _library(thing, item):
    """What libraries do not offer themselves, or offer in a form for a browser only."""
    kinds = _kinds(thing)
    if ("matplotlib", "Figure") in kinds:
        _part("chart")
        _figure(thing, item)
    elif ("pandas", "DataFrame") in kinds or ("pandas", "Series") in kinds:
        _part("table")
        item.take(TABLE, _pandas_table, thing)
    elif ("polars", "DataFrame") in kinds or ("polars", "Series") in kinds:
        _part("table")
        item.take(TABLE, _polars_table, thing)
    elif ("plotly", "BaseFigure") in kinds:
        item.take("application/vnd.plotly.v1+json", _parsed, thing.to_json)
    elif ("altair", "TopLevelMixin") in kinds:
        _altair(thing, item)
    elif ("bokeh", "Model") in kinds:
        item.take("application/vnd.bokehjs_item+json", _bokeh, thing)


def _parsed(make):
    import json
    return json.loads(make())


def _altair(thing, item):
    chart = thing.to_dict()
    version = str(chart.get("$schema", "")).rpartition("/v")[2].partition(".")[0]
    item.data["application/vnd.vegalite.v%s+json" % (version or "5")] = chart


def _bokeh(thing):
    return sys.modules["bokeh.embed"].json_item(thing) if "bokeh.embed" in sys.modules else \
        __import__("bokeh.embed", None, None, ["json_item"]).json_item(thing)


def _show(thing, is_main, include=None, exclude=None, metadata=None, raw=False):
    if _ring(None) == FULL and not is_main:
        _ring(b"")  # counted as one more that did not fit
        return
    item = _Item(metadata)
    if raw:
        item.take_bundle(lambda include, exclude: dict(thing), include, exclude)
    else:
        item.data["text/plain"] = _text(thing)
        try:
            _library(thing, item)
        except Exception as error:
            item.failed["library"] = _told(error)
        bundle = _method(thing, "_repr_mimebundle_")
        if bundle:
            item.take_bundle(bundle, include, exclude)
        for mime, name in FORMS:
            method = _method(thing, name)
            if method:
                item.take(mime, method)
    if include:
        item.data = {mime: item.data[mime] for mime in item.data if mime in include}
    if exclude:
        item.data = {mime: item.data[mime] for mime in item.data if mime not in exclude}
    _send(item, is_main)


# --- bytes ---

def _clean(value, depth=0):
    """A value as JSON can say it: no NaN, no number that readers would round, keys of text."""
    if value is None or value is True or value is False or type(value) is str:
        return value
    if isinstance(value, int):
        return int(value) if -INTEGER <= value <= INTEGER else str(int(value))
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if depth > DEPTH:
        return _text(value)[:CELL]
    if isinstance(value, dict):
        return {key if type(key) is str else str(key): _clean(one, depth + 1)
                for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(one, depth + 1) for one in value]
    if hasattr(value, "tolist"):  # of numpy
        return _clean(value.tolist(), depth + 1)
    return str(value)


def _json(value):
    import json
    text = json.dumps(_clean(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _cell(value):
    """One value of a table or a chart."""
    if value is None or isinstance(value, (bool, int, float)):
        return _clean(value)
    if isinstance(value, str):
        return value if len(value) <= CELL else value[:CELL] + "…"
    name = type(value).__name__
    if name in ("NAType", "NaTType"):
        return None
    if name == "datetime64" or name == "timedelta64":
        return None if str(value) == "NaT" else str(value)
    try:
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if hasattr(value, "item") and not hasattr(value, "__len__"):
            return _clean(value.item())
        text = str(value)
        return text if len(text) <= CELL else text[:CELL] + "…"
    except Exception:
        return None


def _bytes(mime, value):
    """What is sent for a form, or None: a value of a kind that its MIME type cannot hold."""
    if mime == "application/json" or mime.endswith("+json"):
        return _json(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, str):
        return None
    binary = mime.startswith(("image/", "audio/", "video/")) and not mime.endswith("+xml")
    if binary or mime == "application/pdf":  # text there is base64, as notebooks have it
        import binascii
        return binascii.a2b_base64(value)
    return value.encode("utf-8", "replace")


def _cut(data):
    """Text is more useful short than not at all."""
    if len(data) <= TEXT_BYTES:
        return data
    kept = data[:TEXT_BYTES].decode("utf-8", "ignore")
    return ("%s\n… and %d bytes more" % (kept, len(data) - TEXT_BYTES)).encode("utf-8")


def _number(n):
    return min(n, 0xffffffff).to_bytes(4, sys.byteorder)


def _framed(mime, data, omitted=0):
    mime = mime.encode("utf-8", "replace")
    return _number(len(mime)) + _number(len(data)) + _number(omitted) + mime + data


def _parts(item):
    room = ITEM_BYTES
    for mime, value in item.data.items():
        try:
            data = _bytes(mime, value)
        except Exception as error:
            item.failed[mime] = _told(error)
            continue
        if data is None:
            continue
        if mime == "text/plain":
            data = _cut(data)
        most = JSON_BYTES if mime == "application/json" or mime.endswith("+json") else room
        if len(data) > min(room, most):
            yield _framed(mime, b"", len(data))
            continue
        room -= len(data)
        yield _framed(mime, data)


def _send(item, is_main):
    parts = []
    for part in _parts(item):
        if len(parts) < PARTS:
            parts.append(part)
    if item.failed:
        item.metadata["failed"] = item.failed
    if not parts:
        parts.append(_framed("text/plain", b""))
    if item.metadata:
        try:
            note = _json(item.metadata)
            if len(note) <= METADATA_BYTES:
                parts.append(_framed("", note))
        except Exception:
            pass  # what cannot be said of it is not said
    for stream in (sys.stdout, sys.stderr):  # so that what was printed first comes first
        try:
            stream.flush()
        except Exception:
            pass
    return _ring(_number(1 if is_main else 0) + _number(len(parts)) + b"".join(parts))


# --- hooks: called when a library has been loaded ---

def hook_matplotlib(module):
    """plt.show() asks each manager to show its figure; without a screen that does nothing."""
    _part("chart")
    module.FigureManagerBase.show = _show_manager


def hook_ipython(module):
    """Its display() prints where no shell of its own runs. The function stays, for it is in many
    modules by now: what it does is changed."""
    def instead(*objs, include=None, exclude=None, metadata=None, transient=None,
                display_id=None, raw=False, clear=False, **others):
        _adyton_display(*objs, include=include, exclude=exclude, metadata=metadata, raw=raw)
    module._adyton_display = display
    module.display.__kwdefaults__ = instead.__kwdefaults__
    module.display.__code__ = instead.__code__


def hook_plotly(module):
    def show(self, *arguments, **options):
        display(self)
    module.BaseFigure.show = show
