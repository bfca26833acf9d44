"""A report from a table that came with the job:  --file examples/sales.csv"""

import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["day"])
sales["total"] = sales["units"] * sales["price"]

by_city = sales.groupby("city")["total"].agg(["count", "sum", "mean"]).round(2)
print(by_city.sort_values("sum", ascending=False).to_string())

best = sales.loc[sales["total"].idxmax()]
print("\nBest day: %s in %s, %.2f" % (best["day"].date(), best["city"], best["total"]))
by_city.to_csv("report.csv")
