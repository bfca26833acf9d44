"""Tables as bounded JSON: columns, types, rows, and how many there are in all."""

TABLE = "application/vnd.adyton.table+json"
ROWS, COLUMNS, CELLS = 200, 100, 10000


def _table(columns, dtypes, rows, index, total_rows, total_columns):
    table = {"columns": columns, "dtypes": dtypes, "rows": rows, "total_rows": total_rows,
             "total_columns": total_columns,
             "truncated": len(rows) < total_rows or len(columns) < total_columns}
    if index is not None:
        table["index"] = index
    return table


def _label(name):
    if isinstance(name, tuple):  # of a MultiIndex
        return ", ".join(str(_cell(part)) for part in name)
    return str(_cell(name))


def _shape(total_rows, total_columns):
    columns = min(total_columns, COLUMNS)
    return min(total_rows, ROWS, max(CELLS // max(columns, 1), 1)), columns


def _pandas_table(thing):
    if thing.ndim == 1:
        thing = thing.to_frame()
    total_rows, total_columns = thing.shape
    rows_n, columns_n = _shape(total_rows, total_columns)
    part = thing.iloc[:rows_n, :columns_n]
    columns = [[_cell(value) for value in part.iloc[:, i].tolist()] for i in range(columns_n)]
    rows = [[column[i] for column in columns] for i in range(rows_n)]
    return _table([_label(name) for name in part.columns.tolist()],
                  [str(part.dtypes.iloc[i]) for i in range(columns_n)], rows,
                  [_label(name) if isinstance(name, tuple) else _cell(name)
                   for name in part.index.tolist()], total_rows, total_columns)


def _polars_table(thing):
    if hasattr(thing, "to_frame"):
        thing = thing.to_frame()
    total_rows, total_columns = thing.shape
    rows_n, columns_n = _shape(total_rows, total_columns)
    rows = [[_cell(value) for value in row[:columns_n]] for row in thing.head(rows_n).rows()]
    return _table([str(name) for name in thing.columns[:columns_n]],
                  [str(kind) for kind in thing.dtypes[:columns_n]], rows, None,
                  total_rows, total_columns)
