#: sieve of eratosthenes
def primes(n):
    sieve = bytearray([1]) * (n + 1)
    sieve[:2] = b"\0\0"
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i::i] = bytes(len(range(i * i, n + 1, i)))
    return [i for i, is_prime in enumerate(sieve) if is_prime]
print(primes(60))
#: dijkstra
import heapq
graph = {"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}
def shortest(start):
    best, queue = {start: 0}, [(0, start)]
    while queue:
        cost, node = heapq.heappop(queue)
        for other, weight in graph[node].items():
            if cost + weight < best.get(other, float("inf")):
                best[other] = cost + weight
                heapq.heappush(queue, (best[other], other))
    return best
print(shortest("a"))
#: binary search
def search(values, wanted):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(values) and values[low] == wanted else -1
print(search([1, 3, 5, 7, 9], 7), search([1, 3], 2))
#: game of life
def step(cells):
    near = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    near[x + dx, y + dy] = near.get((x + dx, y + dy), 0) + 1
    return {c for c, n in near.items() if n == 3 or (n == 2 and c in cells)}
glider = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
for _ in range(4):
    glider = step(glider)
print(sorted(glider))
#: big integers
print(2 ** 1000 % 10 ** 9, len(str(3 ** 5000)), 1 << 200)
from math import comb, factorial
print(factorial(50), comb(100, 50))
#: levenshtein distance
def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
print(distance("kitten", "sitting"))
#: knapsack
def knapsack(items, room):
    best = [0] * (room + 1)
    for weight, value in items:
        for r in range(room, weight - 1, -1):
            best[r] = max(best[r], best[r - weight] + value)
    return best[room]
print(knapsack([(3, 4), (4, 5), (2, 3)], 6))
#: collatz
def collatz(n):
    while n != 1:
        yield n
        n = 3 * n + 1 if n % 2 else n // 2
    yield 1
print(list(collatz(27))[:10], max(range(1, 100), key=lambda n: sum(1 for _ in collatz(n))))
#: matrix spiral
def spiral(m):
    out = []
    while m:
        out += m[0]
        m = [list(row) for row in zip(*m[1:])][::-1]
    return out
print(spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
#: a loop that ends by break
import random
random.seed(5)
rolls = []
while True:
    rolls.append(random.randint(1, 6))
    if rolls[-1] == 6:
        break
print(len(rolls))
#: reading until the end of input
import sys
lines = []
while True:
    line = sys.stdin.readline()
    if not line:
        break
    lines.append(line.strip())
print(lines)
#: calculator by precedence
import operator
OPS = {"+": (1, operator.add), "-": (1, operator.sub), "*": (2, operator.mul), "/": (2, operator.truediv)}
def calculate(tokens):
    out, pending = [], []
    def apply():
        b, a = out.pop(), out.pop()
        out.append(OPS[pending.pop()][1](a, b))
    for token in tokens:
        if token in OPS:
            while pending and OPS[pending[-1]][0] >= OPS[token][0]:
                apply()
            pending.append(token)
        else:
            out.append(float(token))
    while pending:
        apply()
    return out[0]
print(calculate("3 + 4 * 2 - 6 / 3".split()))
#: topological order
def order(graph):
    done, out = set(), []
    def visit(node):
        if node not in done:
            done.add(node)
            for other in graph.get(node, ()):
                visit(other)
            out.append(node)
    for node in graph:
        visit(node)
    return out
print(order({"shirt": ["tie"], "tie": ["jacket"], "trousers": ["shoes", "jacket"]}))
#: bit tricks
def popcount(n):
    count = 0
    while n:
        n &= n - 1
        count += 1
    return count
print([popcount(n) for n in range(8)], f"{0b1011 ^ 0b0110:04b}", ~5 & 0xff)
#: newton's method
def sqrt(n, steps=20):
    x = n
    for _ in range(steps):
        x = (x + n / x) / 2
    return x
print(round(sqrt(2), 10))
#: union find
parent = list(range(6))
def find(x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x
for a, b in ((0, 1), (1, 2), (4, 5)):
    parent[find(a)] = find(b)
print(len({find(x) for x in range(6)}))
#: trie
trie = {}
for word in ("car", "cat", "dog"):
    node = trie
    for c in word:
        node = node.setdefault(c, {})
    node["$"] = True
def has(word):
    node = trie
    for c in word:
        node = node.get(c, {})
    return "$" in node
print(has("cat"), has("ca"))
#: pascal's triangle
row = [1]
for _ in range(6):
    print(" ".join(map(str, row)).center(20))
    row = [a + b for a, b in zip([0] + row, row + [0])]
#: luhn check
def luhn(number):
    digits = [int(c) for c in reversed(number)]
    return sum(d if i % 2 == 0 else sum(divmod(d * 2, 10)) for i, d in enumerate(digits)) % 10 == 0
print(luhn("4539578763621486"), luhn("1234567812345678"))
#: rate limiter simulation
class Bucket:
    def __init__(self, rate, burst):
        self.rate, self.tokens, self.burst, self.at = rate, burst, burst, 0.0
    def take(self, now):
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens >= 1:
            self.tokens -= 1
            return True
        return False
bucket = Bucket(2, 3)
print([bucket.take(t / 10) for t in range(8)])
#: matching statements
def describe(value):
    match value:
        case {"kind": "circle", "r": r}:
            return f"circle {r}"
        case [x, y, *rest]:
            return f"list from {x}, {y} and {len(rest)} more"
        case str() as text if text:
            return f"text {text}"
        case _:
            return "something"
print([describe(v) for v in ({"kind": "circle", "r": 2}, [1, 2, 3], "hi", 0)])
#: generators that talk back
def average():
    total = count = 0
    mean = None
    while True:
        value = yield mean
        total += value
        count += 1
        mean = total / count
g = average()
next(g)
print(g.send(10), g.send(20))
#: sudoku row check
board = ["534678912", "672195348", "198342567"]
ok = all(len(set(row)) == 9 for row in board)
columns = ["".join(c) for c in zip(*board)]
print(ok, columns[0], all(len(set(c)) == len(c) for c in columns))
#: two sum and three sum
def two_sum(values, wanted):
    seen = {}
    for i, value in enumerate(values):
        if wanted - value in seen:
            return seen[wanted - value], i
        seen[value] = i
    return None
print(two_sum([2, 7, 11, 15], 26), two_sum([1, 2], 9))
