#: a line plot
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 1, 9], label="score")
plt.legend()
plt.title("Scores")
plt.savefig("scores.png")
print("saved")
#: bars in a folder of results
import os
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
os.makedirs("out", exist_ok=True)
fig, ax = plt.subplots()
ax.bar(["a", "b"], [3, 5])
fig.savefig(os.path.join("out", "bars.svg"))
print(os.path.getsize("out/bars.svg") > 0)
#: histogram and figure size
import numpy as np
import matplotlib.pyplot as plt
rng = np.random.default_rng(0)
fig = plt.figure(figsize=(4, 3), dpi=80)
counts, edges, _ = plt.hist(rng.normal(size=500), bins=12)
fig.savefig("hist.png")
print(int(counts.sum()))
#: plot into memory
import io
import matplotlib.pyplot as plt
buffer = io.BytesIO()
plt.scatter(range(5), [v * v for v in range(5)])
plt.savefig(buffer, format="png")
print(buffer.getvalue()[:4])
#: pandas plot
import pandas as pd
import matplotlib.pyplot as plt
df = pd.DataFrame({"x": range(5), "y": [1, 4, 9, 16, 25]})
axes = df.plot(x="x", y="y")
axes.figure.savefig("/tmp/growth.png")
print(axes.get_xlabel())
