"""The first thing a model writes when it is asked for an average."""

import statistics

values = [10, 20, 30, 40, 50]
print("Average value:", float(statistics.mean(values)))
