"""A plot, left in /tmp for --out to collect."""

import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 4 * np.pi, 400)
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(x, np.sin(x) * np.exp(-x / 8), label="damped")
axes.plot(x, np.exp(-x / 8), "--", label="envelope")
axes.legend()
figure.savefig("/tmp/wave.png", dpi=100)
plt.close(figure)  # or it would be shown as a result, too
print("saved wave.png")
