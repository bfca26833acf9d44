#: dataclass with order
from dataclasses import dataclass, field
@dataclass(order=True)
class Job:
    priority: int
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)
print(sorted([Job(3, "c"), Job(1, "a"), Job(2, "b")])[0])
#: inheritance and super
class Shape:
    def __init__(self, name):
        self.name = name
    def area(self):
        raise NotImplementedError
class Square(Shape):
    def __init__(self, side):
        super().__init__("square")
        self.side = side
    def area(self):
        return self.side ** 2
print(Square(4).area(), Square.__mro__, isinstance(Square(1), Shape))
#: registry of subclasses
class Plugin:
    @classmethod
    def all(cls):
        return sorted(c.__name__ for c in cls.__subclasses__())
class Csv(Plugin):
    pass
class Json(Plugin):
    pass
print(Plugin.all(), [c.__name__ for c in Plugin.__subclasses__()])
#: properties and slots
class Celsius:
    __slots__ = ("_degrees",)
    def __init__(self, degrees):
        self.degrees = degrees
    @property
    def degrees(self):
        return self._degrees
    @degrees.setter
    def degrees(self, value):
        if value < -273.15:
            raise ValueError("too cold")
        self._degrees = value
t = Celsius(20)
t.degrees += 5
print(t.degrees)
#: operator overloading
class Vector:
    def __init__(self, *values):
        self.values = values
    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self.values, other.values)))
    def __mul__(self, k):
        return Vector(*(v * k for v in self.values))
    def __repr__(self):
        return f"{self.__class__.__name__}{self.values}"
print(Vector(1, 2) + Vector(3, 4) * 2)
#: a context manager
class Timer:
    def __enter__(self):
        import time
        self.began = time.perf_counter()
        return self
    def __exit__(self, kind, value, traceback):
        import time
        self.seconds = time.perf_counter() - self.began
with Timer() as timer:
    sum(range(1000))
print(timer.seconds >= 0)
#: an iterator
class Countdown:
    def __init__(self, start):
        self.n = start
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n + 1
print(list(Countdown(4)))
#: abstract base class
from abc import ABC, abstractmethod
class Store(ABC):
    @abstractmethod
    def get(self, key): ...
class Memory(Store):
    def __init__(self):
        self.data = {"a": 1}
    def get(self, key):
        return self.data.get(key)
print(Memory().get("a"))
try:
    Store()
except TypeError as exc:
    print("refused:", exc)
#: enums and flags
from enum import Enum, Flag, auto
class Colour(Enum):
    RED = 1
    GREEN = 2
class Access(Flag):
    READ = auto()
    WRITE = auto()
print(Colour["RED"].value, list(Colour), Access.READ | Access.WRITE)
#: a metaclass
class Named(type):
    def __new__(mcls, name, bases, namespace):
        cls = super().__new__(mcls, name, bases, namespace)
        cls.label = name.lower()
        return cls
class Thing(metaclass=Named):
    pass
print(Thing.label, type(Thing).__name__)
#: descriptors
class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, instance, owner):
        return getattr(instance, self.name)
    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError("must be positive")
        setattr(instance, self.name, value)
class Item:
    price = Positive()
item = Item()
item.price = 3
print(item.price)
#: dispatch by getattr
class Calculator:
    def add(self, a, b):
        return a + b
    def mul(self, a, b):
        return a * b
calculator = Calculator()
for name in ("add", "mul"):
    print(name, getattr(calculator, name)(3, 4))
#: singleton
class Config:
    _instance = None
    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance
print(Config() is Config())
#: a stack machine
class Machine:
    def __init__(self):
        self.stack = []
        self.ops = {"+": self.add, "dup": lambda: self.stack.append(self.stack[-1])}
    def add(self):
        self.stack.append(self.stack.pop() + self.stack.pop())
    def run(self, program):
        for word in program.split():
            self.ops[word]() if word in self.ops else self.stack.append(int(word))
        return self.stack[-1]
print(Machine().run("3 dup + 4 +"))
#: compile is a method here
class Grammar:
    def compile(self, rule):
        return rule.split("|")
    def eval(self, text):
        return len(text)
    def system(self):
        return "context free"
g = Grammar()
print(g.compile("a|b|c"), g.eval("abc"), g.system())
#: linked list
class Node:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest
def walk(node):
    while node:
        yield node.value
        node = node.rest
print(list(walk(Node(1, Node(2, Node(3))))))
#: generic container
from typing import Generic, Optional, TypeVar
T = TypeVar("T")
class Box(Generic[T]):
    def __init__(self, value: T):
        self.value = value
    def map(self, f) -> "Box":
        return Box(f(self.value))
    def get(self) -> Optional[T]:
        return self.value
print(Box(3).map(str).get())
#: exceptions of one's own
class Refused(Exception):
    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")
        self.what = what
try:
    try:
        {}["missing"]
    except KeyError as exc:
        raise Refused("lookup", "no such key") from exc
except Refused as exc:
    print(exc, "|", repr(exc.__cause__), exc.what)
#: class attributes by dict
class Settings:
    debug = False
    level = 3
for name, value in sorted(vars(Settings).items()):
    if not name.startswith("__"):
        print(name, value)
settings = Settings()
settings.__dict__.update(level=5)
print(settings.level, Settings.__dict__["level"])
#: bank account
class Account:
    rate = 0.02
    def __init__(self, owner, balance=0):
        self.owner, self.balance, self.history = owner, balance, []
    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))
        return self
    @staticmethod
    def is_valid(amount):
        return amount > 0
account = Account("Ada").deposit(100).deposit(50)
print(account.balance, account.history, Account.is_valid(-1))
