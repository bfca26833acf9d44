#: fibonacci with a cache
from functools import lru_cache
@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(80), fib.cache_info().hits)
#: towers of hanoi
def hanoi(n, a, b, c, moves):
    if n:
        hanoi(n - 1, a, c, b, moves)
        moves.append((a, c))
        hanoi(n - 1, b, a, c, moves)
moves = []
hanoi(5, "A", "B", "C", moves)
print(len(moves), moves[:3])
#: permutations
def permute(items):
    if not items:
        yield []
    for i, item in enumerate(items):
        for rest in permute(items[:i] + items[i + 1:]):
            yield [item] + rest
print(sum(1 for _ in permute(list("abcd"))))
#: flatten nested lists
def flatten(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flatten(item)
    else:
        yield value
print(list(flatten([1, [2, [3, (4, 5)]], 6])))
#: eight queens
def queens(n, row=0, placed=()):
    if row == n:
        return 1
    return sum(queens(n, row + 1, placed + (column,)) for column in range(n)
               if all(column != c and abs(column - c) != row - r for r, c in enumerate(placed)))
print(queens(6))
#: ackermann
import sys
sys.setrecursionlimit(10000)
def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))
print(ackermann(2, 3))
#: merge sort
def merge_sort(values):
    if len(values) < 2:
        return values
    middle = len(values) // 2
    left, right = merge_sort(values[:middle]), merge_sort(values[middle:])
    out = []
    while left and right:
        out.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return out + left + right
print(merge_sort([5, 2, 9, 1, 5, 6]))
#: a recursion error is caught
def forever(n):
    return forever(n + 1)
try:
    forever(0)
except RecursionError as exc:
    print(type(exc).__name__, "caught")
#: power set
def power_set(items):
    if not items:
        return [[]]
    rest = power_set(items[1:])
    return rest + [[items[0]] + subset for subset in rest]
print(len(power_set("abcde")))
#: maze by depth first search
MAZE = ["#######", "#S  # #", "# # # #", "# #  E#", "#######"]
def solve(y, x, seen):
    if MAZE[y][x] == "E":
        return [(y, x)]
    seen.add((y, x))
    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        there = y + dy, x + dx
        if MAZE[there[0]][there[1]] != "#" and there not in seen:
            path = solve(*there, seen)
            if path:
                return [(y, x)] + path
    return None
print(len(solve(1, 1, set())))
#: sum of digits
def digits(n):
    return n if n < 10 else n % 10 + digits(n // 10)
print(digits(987654321))
#: json tree depth
def depth(tree):
    if isinstance(tree, dict):
        return 1 + max(map(depth, tree.values()), default=0)
    if isinstance(tree, list):
        return 1 + max(map(depth, tree), default=0)
    return 0
print(depth({"a": [1, {"b": []}], "c": 2}))
#: coin change
from functools import cache
@cache
def ways(amount, coins):
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return ways(amount - coins[0], coins) + ways(amount, coins[1:])
print(ways(100, (50, 25, 10, 5, 1)))
#: greatest common divisor
def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)
def lcm(*numbers):
    out = 1
    for n in numbers:
        out = out * n // gcd(out, n)
    return out
print(gcd(1071, 462), lcm(4, 6, 10))
#: sierpinski
def triangle(n):
    if n == 0:
        return ["*"]
    small = triangle(n - 1)
    pad = " " * 2 ** (n - 1)
    return [pad + row + pad for row in small] + [row + " " + row for row in small]
print("\n".join(triangle(3)))
