"""Figures of matplotlib: as pictures, and as the data that a client can draw again."""

CHART = "application/vnd.adyton.chart+json"
PIXELS = 8000000  # of one picture: beyond it, fewer dots an inch
POINTS = 20000  # of one figure
SHRINKS = 3


# --- pictures ---

def _picture(figure, form, dpi):
    import io
    import warnings
    into = io.BytesIO()
    with warnings.catch_warnings():  # a program that only plots sees none of these either
        warnings.simplefilter("ignore")
        figure.canvas.print_figure(into, format=form, dpi=dpi)
    return into.getvalue()


def _png(figure, item):
    """Its own size and dots an inch; smaller when that would be more than there is room for."""
    width, height = figure.get_size_inches()
    dpi = figure.dpi
    most = (PIXELS / max(width * height, 1e-9)) ** 0.5
    scale = min(1.0, most / dpi)
    for _ in range(SHRINKS):
        data = _picture(figure, "png", dpi * scale)
        if len(data) <= ITEM_BYTES // 2:
            break
        scale /= 2
    if scale < 1.0:
        item.metadata["scaled"] = scale
    item.metadata["image/png"] = {"width": int(width * dpi * scale),
                                  "height": int(height * dpi * scale)}
    return data


def _figure(figure, item):
    item.take("image/png", _png, figure, item)
    if SVG:
        item.take("image/svg+xml", lambda: _picture(figure, "svg", figure.dpi).decode("utf-8"))
    try:
        chart = _chart_of(figure)
        if chart:
            item.data[CHART] = chart
    except Exception as error:
        item.failed[CHART] = _told(error)
    figure._adyton_shown = True
    figure.stale = False


def _helpers():
    return sys.modules.get("matplotlib._pylab_helpers")


WAITS = {("matplotlib.pyplot", "pause"), ("matplotlib._blocking_input", "blocking_input_loop"),
         ("matplotlib.blocking_input", "__call__")}


def _is_wait():
    """Whether plt.pause() or plt.ginput() asks: a window would stay, to be drawn into again."""
    frame, depth = sys._getframe(2), 0
    while frame and depth < 8:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in WAITS:
            return True
        frame, depth = frame.f_back, depth + 1
    return False


def _show_manager(self):
    """In the place of FigureManagerBase.show: shown, then closed, as a window would be."""
    if _ring(None) == ELSEWHERE or _is_wait():
        return
    _show(self.canvas.figure, False)
    if _helpers():
        _helpers().Gcf.destroy(self)


def show_figures():
    """What is left open at the end of a run, but for what was shown and not touched since."""
    if not _helpers() or _ring(None) == ELSEWHERE:
        return
    figures = _helpers().Gcf.figs
    for manager in sorted(figures.values(), key=lambda one: str(one.num).zfill(9)):
        figure = manager.canvas.figure
        if figure.stale or not getattr(figure, "_adyton_shown", False):
            _show(figure, False)
        _helpers().Gcf.destroy(manager)


# --- data ---

def _unit(label):
    """(text) at the end of a label."""
    label = label.rstrip()
    start = label.rfind("(")
    return label[start + 1:-1].strip() or None if label.endswith(")") and start >= 0 else None


def _is_dates(axis):
    return type(axis.get_major_locator()).__module__ == "matplotlib.dates"


def _is_categories(axis):
    converter = getattr(axis, "_converter", None) or getattr(axis, "converter", None)
    return type(converter).__name__ == "StrCategoryConverter"


def _scale(axis):
    if _is_dates(axis):
        return "datetime"
    return "categorical" if _is_categories(axis) else axis.get_scale()


def _ticks(axis):
    ticks = [float(tick) for tick in axis.get_ticklocs()]
    if not _is_dates(axis):
        return ticks
    dates = sys.modules["matplotlib.dates"]
    return [dates.num2date(tick).isoformat() for tick in ticks]


def _axis(axis, name):
    label = axis.get_label_text()
    return {name + "_label": label or None, name + "_unit": _unit(label),
            name + "_ticks": _ticks(axis),
            name + "_tick_labels": [one.get_text() for one in axis.get_ticklabels()],
            name + "_scale": _scale(axis)}


def _points(xs, ys, room):
    return [[_cell(x), _cell(y)] for x, y, _ in zip(xs, ys, range(room))]


def _named(label, fallback):
    label = str(label)
    return fallback if not label or label.startswith("_") else label


class _Axes:
    """What one pair of axes shows."""

    def __init__(self, axes):
        self.axes, self.room, self.cut = axes, POINTS, False

    def points(self, xs, ys):
        self.cut = self.cut or len(xs) > self.room
        made = _points(xs, ys, self.room)
        self.room -= len(made)
        return made

    def lines(self):
        found = []
        for line in self.axes.get_lines():
            if line.get_visible() and line.get_transform().contains_branch(self.axes.transData):
                found.append({"label": _named(line.get_label(), "Line %d" % len(found)),
                              "points": self.points(line.get_xdata(), line.get_ydata())})
        return found

    def scatters(self):
        found = []
        for one in self.axes.collections:
            if type(one).__name__ == "PathCollection" and one.get_visible():
                at = one.get_offsets()[:self.room + 1]
                found.append({"label": _named(one.get_label(), "Dataset %d" % len(found)),
                              "points": self.points(self.shown(at[:, 0], self.axes.xaxis),
                                                    self.shown(at[:, 1], self.axes.yaxis))})
        return found

    def shown(self, values, axis):
        if not _is_dates(axis):
            return values
        return [date.isoformat() for date in sys.modules["matplotlib.dates"].num2date(values)]

    def bars(self):
        found = []
        for container in self.axes.containers:
            if type(container).__name__ != "BarContainer":
                continue
            flat = getattr(container, "orientation", None) == "horizontal"
            group = _named(container.get_label(), "")
            for bar in container.patches[:self.room]:
                found.append({"label": self.at(bar, flat), "group": group,
                              "value": _cell(bar.get_width() if flat else bar.get_height())})
            self.cut = self.cut or len(container.patches) > self.room
            self.room = max(self.room - len(container.patches), 0)
        return found

    def at(self, bar, flat):
        """The label of the tick in the middle of a bar, or where that is."""
        axis = self.axes.yaxis if flat else self.axes.xaxis
        middle = bar.get_y() + bar.get_height() / 2 if flat else bar.get_x() + bar.get_width() / 2
        for place, text in zip(axis.get_ticklocs(), axis.get_ticklabels()):
            if abs(place - middle) <= abs(bar.get_height() if flat else bar.get_width()) / 2 \
                    and text.get_text() and not _is_numbers(axis):
                return text.get_text()
        if _is_dates(axis):
            return sys.modules["matplotlib.dates"].num2date(middle).isoformat()
        return "%g" % middle

    def wedges(self):
        return [{"label": _named(one.get_label(), str(i)), "radius": float(one.r),
                 "angle": float(one.theta2 - one.theta1)}
                for i, one in enumerate(self.axes.patches) if type(one).__name__ == "Wedge"]

    def boxes(self):
        return _boxes(self.axes)


def _is_numbers(axis):
    return type(axis.get_major_formatter()).__name__ == "ScalarFormatter"


def _outlines(axes):
    """Boxes of a box plot: closed rectangles, drawn as a line or as a path."""
    for line in axes.get_lines():
        yield list(line.get_xdata()), list(line.get_ydata())
    for patch in axes.patches:
        if type(patch).__name__ == "PathPatch":
            corners = patch.get_path().vertices[:5]
            yield list(corners[:, 0]), list(corners[:, 1])


def _box(xs, ys):
    """(middle, low, high) along the values when it is such a rectangle, else None."""
    if len(xs) != 5 or xs[0] != xs[4] or ys[0] != ys[4] or len(set(map(float, xs))) != 2 \
            or len(set(map(float, ys))) != 2:
        return None
    return sum(set(map(float, xs))) / 2, min(map(float, ys)), max(map(float, ys))


def _straight(axes, flat):
    """Straight lines and clouds of single points, turned as the boxes stand."""
    for line in axes.get_lines():
        xs, ys = [float(v) for v in line.get_xdata()], [float(v) for v in line.get_ydata()]
        yield (ys, xs, line) if flat else (xs, ys, line)


def _box_of(axes, flat, middle, low, high):
    box = {"first_quartile": low, "third_quartile": high, "min": low, "max": high,
           "median": None, "outliers": []}
    for across, along, line in _straight(axes, flat):
        if not along or abs(sum(across) / len(across) - middle) > 1e-9:
            continue
        if line.get_linestyle() in ("None", "", " "):
            # A mean is one mark inside of the box; what lies beyond the whiskers is outside.
            box["outliers"] += [v for v in along if v < low or v > high]
        elif len(along) == 2 and across[0] == across[1]:
            box["min"], box["max"] = min(box["min"], *along), max(box["max"], *along)
        elif len(along) == 2 and along[0] == along[1] and low <= along[0] <= high:
            box["median"] = along[0]
    return box


def _boxes(axes):
    for flat in (False, True):
        found = []
        for xs, ys in _outlines(axes):
            box = _box(ys, xs) if flat else _box(xs, ys)
            if box:
                found.append((box[0], _box_of(axes, flat, *box)))
        if found and all(box["median"] is not None for _, box in found):
            axis = axes.yaxis if flat else axes.xaxis
            names = dict(zip(map(float, axis.get_ticklocs()), axis.get_ticklabels()))
            for middle, box in found:
                text = names.get(middle)
                box["label"] = text.get_text() if text else "%g" % middle
            return [box for _, box in found]
    return []


def _kinds_of(axes):
    """(type, elements) of all that was drawn into one pair of axes."""
    view = _Axes(axes)
    for kind, make in (("pie", view.wedges), ("box_and_whisker", view.boxes)):
        elements = make()
        if elements:
            return [(kind, elements)], False
    found = [(kind, elements) for kind, elements in
             (("bar", view.bars()), ("line", view.lines()), ("scatter", view.scatters()))
             if elements]
    if [kind for kind, _ in found] == ["line", "scatter"]:
        found = [("line", found[0][1] + found[1][1])]  # both are points
    return found, view.cut


def _chart_of_axes(axes):
    kinds, cut = _kinds_of(axes)
    chart = {"title": axes.get_title() or None}
    chart.update(_axis(axes.xaxis, "x"))
    chart.update(_axis(axes.yaxis, "y"))
    if cut:
        chart["truncated"] = True
    if len(kinds) == 1:
        return dict(chart, type=kinds[0][0], elements=kinds[0][1])
    if not kinds:
        return dict(chart, type="unknown", elements=[])
    return dict(chart, type="superchart",
                elements=[dict(chart, type=kind, elements=elements) for kind, elements in kinds])


def _chart_of(figure):
    charts = [_chart_of_axes(axes) for axes in figure.axes
              if axes.get_visible() and axes.get_label() != "<colorbar>"]
    if len(charts) <= 1:
        return charts[0] if charts else None
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title.get_text() if title else None,
            "elements": charts}
