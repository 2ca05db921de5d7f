"""Programs that change what names, attributes and methods mean while they run.

`RIGHT` ones are what Python makes of them; `REFUSED` ones have an error that names the line.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import enum
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from . import other_module

Program = Callable[..., Any]
RIGHT: list[Program] = []
REFUSED: list[Program] = []


def right(program: Program) -> Program:
    RIGHT.append(program)
    return program


def refused(program: Program) -> Program:
    REFUSED.append(program)
    return program


# --- the class of an object ----------------------------------------------------------------------


class Base:
    k = 1.0
    count = 0

    def __init__(self):
        self.u = 0.0

    def m(self, x):
        return 5.0 * x

    def bump(self):
        self.count += 1

    @classmethod
    def tick(cls):
        cls.count += 1

    @property
    def p(self):
        return 3.0 * self.u

    @p.setter
    def p(self, value):
        self.u = 2.0 * value

    def __call__(self, x):
        return self.k * x


class Double(Base):
    k = 7.0

    def m(self, x):
        return 20.0 * x

    def __call__(self, x):
        return 2.0 * self.k * x


class Sub(Base):
    def m(self, x):
        return super().m(x) + 1.0


SHARED = Base()
TOTAL = 1.0


def elevenfold(self, x):
    return 11.0 * x


def thirteenfold(x):
    return 13.0 * x


@right
def a_class_assigned(x):
    b = Base()
    b.__class__ = Double
    return b.m(x[0]) + b(x[1])


@right
def a_class_assigned_to_an_object_from_outside(x):
    SHARED.__class__ = Double
    return SHARED.m(x[0]) + SHARED.k


@right
def a_class_assigned_by_setattr(x):
    b = Base()
    setattr(b, "__class__", Double)  # noqa: B010
    return b.m(x[0])


@right
def a_class_assigned_to_self(x):
    class_of = Changing()
    first = class_of.next(x[0])
    return first + class_of.next(x[1])


class Changing:
    def next(self, x):
        self.__class__ = Changed
        return 5.0 * x


class Changed:
    def next(self, x):
        return 20.0 * x


@right
def a_class_assigned_in_a_loop(x):
    b, s = Base(), 0.0
    for _ in range(6):
        s += b.m(x[0])
        b.__class__ = Double
    return s


@right
def a_class_assigned_by_a_function_in_a_loop(x):
    def change(o):
        o.__class__ = Double

    b, s = Base(), 0.0
    for _ in range(6):
        s += b.m(x[0])
        change(b)
    return s


@refused
def a_class_assigned_in_a_branch(x):
    b = Base()
    if x[0] > 0:
        b.__class__ = Double
    return b.m(x[0])


@right
def bases_assigned(x):
    Sub.__bases__ = (Double,)
    return Sub().m(x[0])


# --- methods and functions -----------------------------------------------------------------------


@right
def a_method_replaced(x):
    b = Base()
    r = b.m(x[0])
    Base.m = elevenfold
    return r + b.m(x[0])


@right
def a_method_replaced_by_a_lambda(x):
    b = Base()
    r = b.m(x[0])
    Base.m = lambda self, y: self.k * 17.0 * y
    return r + b.m(x[0])


@right
def a_method_replaced_by_a_nested_function(x):
    def new(self, y):
        return 17.0 * y * x[1]

    Base.m = new
    return Base().m(x[0])


@right
def a_method_of_one_object(x):
    b = Base()
    b.m = lambda y: 19.0 * y
    return b.m(x[0]) + Base().m(x[1])


@right
def a_method_replaced_in_a_loop(x):
    b, s = Base(), 0.0
    for _ in range(6):
        s += b.m(x[0])
        Base.m = elevenfold
    return s


@refused
def a_method_replaced_in_a_branch(x):
    if x[0] > 0:
        Base.m = elevenfold
    return Base().m(x[0])


@right
def methods_exchanged(x):
    Base.m, Base.other = lambda self, y: 2.0 * y, Base.m
    return Base().m(x[0]) + Base().other(x[1])


@right
def a_method_of_the_parent_replaced(x):
    Base.m = elevenfold
    return Sub().m(x[0])


@right
def a_class_method_a_static_method_and_a_partial_one(x):
    Base.make = classmethod(lambda cls, y: cls.k * y)
    Base.plain = staticmethod(lambda y: 3.0 * y)
    Base.part = functools.partialmethod(lambda self, a, y: y * a * self.k, 4.0)
    return Double.make(x[0]) + Base().plain(x[1]) + Base.plain(x[1]) + Double().part(x[2])


@right
def what_is_called_replaced(x):
    b = Base()
    r = b(x[0])
    Base.__call__ = lambda self, y: 23.0 * y
    b.__call__ = lambda y: 99.0 * y
    return r + b(x[0])


@right
def an_inherited_call(x):
    s, r = Sub(), 0.0
    s.k = x[1]
    for _ in range(6):
        r += s(x[0])
    return r + s.__call__(x[2])


class Stateful:
    def __init__(self):
        self.n = 0

    def __call__(self, x):
        self.n += 1
        return self.n * x


class StatefulToo(Stateful):
    pass


@right
def an_object_that_counts_its_calls(x):
    c, s = StatefulToo(), 0.0
    for _ in range(8):
        s += c(x[0])
    return s


@right
def a_function_of_a_module_replaced(x):
    r = other_module.scaled(x[0])
    other_module.scaled = thirteenfold
    return r + other_module.scaled(x[0])


@right
def a_function_of_a_module_replaced_in_a_loop(x):
    r = 0.0
    for _ in range(6):
        r += other_module.scaled(x[0])
        other_module.scaled = thirteenfold
    return r


def scaled_by(y, k=2.0, *, add=1.0):
    return k * y + add


@right
def defaults_replaced(x):
    def local(y, k=2.0, *, add=1.0):
        return k * y + add

    r = scaled_by(x[0]) + local(x[0])
    scaled_by.__defaults__ = local.__defaults__ = (9.0,)
    scaled_by.__kwdefaults__ = local.__kwdefaults__ = {"add": 4.0}
    return r * (scaled_by(x[0]) + local(x[1]))


@right
def an_attribute_of_a_function(x):
    r = scaled_by(x[0])
    scaled_by.k = x[1]
    return r + scaled_by.k


@right
def a_nonlocal_in_a_loop(x):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    s = 0.0
    for _ in range(8):
        s += bump() * x[0]
    return s


# --- names of modules and globals ----------------------------------------------------------------


@right
def a_number_of_a_module(x):
    r = other_module.scaled(x[0])
    other_module.SCALE = x[1]
    return r + other_module.scaled(x[0])


@right
def a_number_of_a_module_by_its_dict(x):
    vars(other_module)["SCALE"] = x[1]
    r = other_module.scaled(x[0])
    other_module.__dict__["SCALE"] = x[2]
    return r + other_module.scaled(x[0])


@right
def a_number_of_a_module_in_a_loop(x):
    r = 0.0
    for _ in range(6):
        r += other_module.scaled(x[0])
        other_module.SCALE = other_module.SCALE * 0.5
    return r


@right
def a_global_name(x):
    global TOTAL
    TOTAL = TOTAL + x[0]
    return TOTAL * x[1]


@right
def a_global_name_in_a_loop(x):
    global TOTAL
    for _ in range(6):
        TOTAL = TOTAL + x[0]
    return TOTAL * x[1]


@right
def globals_as_a_dict(x):
    r = globals()["TOTAL"] * x[0]
    globals()["TOTAL"] = 3.0 * x[0]
    return r + TOTAL * x[1]


@right
def locals_as_a_dict(x):
    y = 2.0 * x
    return locals()["y"][0] + vars()["y"][1] + len([n for n in dir() if n == "y"])


@refused
def a_text_evaluated(x):
    return eval("x[0]*2")


@right
def a_text_evaluated_over_names_of_its_own(x):
    names = {}
    exec("y = 3", names)
    return eval("a*2", {"a": x[0]}) * names["y"]


# --- attributes of classes -----------------------------------------------------------------------


@right
def an_attribute_of_the_class_becomes_one_of_the_object(x):
    b = Base()
    for _ in range(6):
        b.k = b.k + x[0]
    return b.k + Base.k


@right
def it_is_added_to(x):
    b = Base()
    for _ in range(6):
        b.k += x[0]
        b.bump()
    return b.k + Base.k + b.count


@right
def it_is_bound_by_a_branch_that_is_not_taken(x):
    b = Base()
    if x[0] > 5.0:
        b.k = 3.0
    return b.k * x[0]


@right
def it_is_bound_by_a_branch_that_is_taken(x):
    b = Base()
    if x[0] > 0.0:
        b.k = 3.0
    return b.k * x[0]


@right
def it_is_deleted_by_a_branch(x):
    b = Base()
    b.k = x[0]
    if x[1] > 0.0:
        del b.k
    return b.k * x[0]


@refused
def it_is_changed_after_a_branch_has_decided(x):
    b = Base()
    if x[0] > 5.0:
        b.k = 3.0
    Base.k = 10.0
    return b.k * x[0]


@right
def by_the_type_of_an_object(x):
    b = Base()
    type(b).count += 1
    b.tick()
    return b.count * x[0]


@right
def by_the_type_of_an_object_in_a_loop(x):
    b, s = Base(), 0.0
    for _ in range(6):
        type(b).count += 1
        b.tick()
        s += x[0]
    return b.count * s


@right
def a_traced_attribute_of_a_class(x):
    b, c = Base(), Base()
    b.k = x[0]
    Base.k = x[1]
    type.__setattr__(Double, "k", x[2])
    return b.k + 10.0 * c.k + Double().k


@refused
def an_attribute_of_a_class_in_a_while(x):
    s = 0.0
    while s < 1.0:
        s += x[0]
        Base.k = Base.k + 1
    return s + Base.k


@right
def a_class_made_by_type(x):
    made = type("Made", (), {"k": 2.0, "m": lambda self, y: self.k * y})
    one = made()
    r = one.m(x[0])
    made.k = x[1]
    return r + one.m(x[0])


# --- attributes by their names -------------------------------------------------------------------


@right
def the_dict_of_an_object(x):
    b = Base()
    b.__dict__["u"] = 3.0 * x[0]
    vars(b)["w"] = x[1]
    b.__dict__.update(v=x[2])
    return b.u + b.p + b.w + b.v + len(vars(b))


@right
def the_dict_of_an_object_from_outside(x):
    SHARED.__dict__["u"] = 3.0 * x[0]
    SHARED.__dict__.update(v=x[1])
    return SHARED.u + SHARED.v


@right
def the_dict_of_an_object_in_a_loop(x):
    b = Base()
    for _ in range(6):
        vars(b)["u"] = vars(b)["u"] + x[0]
    return b.u


@right
def read_by_the_dict_and_bound_by_name(x):
    b, s = Base(), 0.0
    d = b.__dict__
    for i in range(6):
        s += d["u"] + vars(b)["u"]
        b.u = x[0] * i
    return s


@right
def all_of_them_listed(x):
    b, s = Base(), 0.0
    for i in range(6):
        s += sum(vars(b).values())
        b.u = x[0] * i
    return s + sum([b.__dict__[name] for name in dir(b) if name == "u"])


@right
def the_dict_replaced(x):
    b = Base()
    b.__dict__ = {"u": 4.0 * x[0]}
    return b.u


@right
def the_dict_replaced_in_a_loop(x):
    b = Base()
    for _ in range(6):
        b.__dict__ = {"u": b.u + 4.0 * x[0]}
    return b.u


class Borg:
    shared: ClassVar[dict[str, Any]] = {}

    def __init__(self):
        self.__dict__ = self.shared


@right
def objects_of_one_dict(x):
    a, b, s = Borg(), Borg(), 0.0
    a.u = x[0]
    for _ in range(6):
        s += b.u
        a.u = a.u * 0.5
    return s


@right
def by_setattr_and_getattr(x):
    b = Base()
    for _ in range(6):
        setattr(b, "u", getattr(b, "u") + x[0])  # noqa: B009, B010
    setattr(SHARED, "u", x[1])  # noqa: B010
    return b.u + SHARED.u


@right
def deleted(x):
    b = Base()
    b.k = x[0]
    r = b.k
    del b.k
    r += b.k
    b.k = x[1]
    delattr(b, "k")
    return r + b.k


@right
def deleted_in_a_loop(x):
    b, s = Base(), 0.0
    for _ in range(6):
        b.k = x[0]
        s += b.k
        del b.k
        s += b.k
    return s


@right
def deleted_outside(x):
    del SHARED.u
    SHARED.u = x[0]
    del SHARED.u
    return x[0]


@right
def asked_for(x):
    b, s = Base(), 0.0
    for i in range(6):
        if hasattr(b, "z"):
            s += b.z
        s += getattr(b, "w", 0.5)
        b.z = b.w = x[0] * i
    return s


@right
def asked_for_after_a_branch(x):
    b = Base()
    if x[0] > 0.0:
        b.z = x[1]
    return b.z * x[0] if hasattr(b, "z") else x[0]


@right
def by_the_rules_of_object(x):
    b = Base()
    b.__setattr__("n", x[0])
    object.__setattr__(b, "o", x[1])
    return b.__getattribute__("n") + object.__getattribute__(b, "o")


@right
def of_a_namespace(x):
    n = SimpleNamespace(u=x[0], k=0)
    for _ in range(8):
        n.u = n.u * 0.5 + 1.0
        n.k += 1
    return n.u * n.k


class Slots:
    __slots__ = ("u", "v")

    def __init__(self, u):
        self.u = u

    def step(self):
        self.u = self.u * 0.5 + 1.0


SLOTS = Slots(1.0)


@right
def in_slots(x):
    s = Slots(x[0])
    s.v = s.u * 2.0
    for _ in range(8):
        s.step()
    return s.u * s.v


@right
def in_slots_of_an_object_from_outside(x):
    SLOTS.u = x[0]
    for _ in range(8):
        SLOTS.step()
    return SLOTS.u


@right
def arrays_in_slots_exchanged(x):
    s = Slots(x.copy())
    s.v = 2.0 * x
    for _ in range(7):
        s.u, s.v = s.v, s.u
    s.u[0] = 9.0
    return s.u.sum() + 10.0 * s.v.sum()


@right
def slots_that_are_empty(x):
    s, r = Slots(x[0]), 0.0
    for i in range(8):
        r += getattr(s, "v", 0.5)
        s.v = x[0] * i
    del s.u
    return r if hasattr(s, "u") else 2.0 * r


class Parent:
    def __init__(self, u):
        self.__u = u

    def first(self):
        return self.__u

    def __twice(self, y):
        return 2.0 * y

    def by_a_private_method(self, y):
        return self.__twice(y)


class Child(Parent):
    def __init__(self, u, v):
        super().__init__(u)
        self.__u = v

    def second(self):
        __own = self.__u
        return __own


PARENT = Parent(3.0)


@right
def private_names(x):
    p = Child(x[0], x[1])
    return p.first() + 10.0 * p.second() + PARENT.first() * PARENT.by_a_private_method(x[2])


# --- attributes that functions of the user compute ------------------------------------------------


@right
def a_property_with_a_setter(x):
    b = Base()
    for _ in range(6):
        b.p = b.p * 0.1 + x[0]
    return b.u


@right
def a_property_replaced(x):
    b = Base()
    b.u = x[0]
    r = b.p
    Base.p = property(lambda self: self.u * 100.0)
    return r + b.p


class Logged:
    def __init__(self):
        self._u, self.log = 1.0, 0

    @property
    def u(self):
        self.log += 1
        return self._u

    @u.setter
    def u(self, value):
        self.log += 1
        self._u = value

    @u.deleter
    def u(self):
        self.log += 100
        self._u = 0.0


class LoggedToo(Logged):
    @property
    def u(self):
        return super().u * 2.0

    @u.setter
    def u(self, value):
        Logged.u.fset(self, value + 1.0)


@right
def a_property_that_counts(x):
    p = Logged()
    for _ in range(8):
        p.u += x[0]
    r = p.u
    del p.u
    return (r + p.u) * p.log


@right
def a_property_of_the_parent(x):
    p = LoggedToo()
    for _ in range(8):
        p.u = p.u * 0.1 + x[0]
    return p.u * p.log


class Missing:
    def __init__(self):
        self.hits = 0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.hits += 1
        return 2.0 * len(name)


@right
def getattr_of_the_user(x):
    g, s = Missing(), 0.0
    for _ in range(8):
        s += g.ab * x[0]
    return s + g.hits


@right
def getattr_of_the_user_until_it_is_bound(x):
    g, s = Missing(), 0.0
    for i in range(8):
        s += g.ab
        g.ab = x[0] * i
    return s


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


@right
def attributes_of_another_object(x):
    inner, s = SimpleNamespace(u=x[0] * 2.0), 0.0
    w = Wrapper(inner)
    for _ in range(8):
        s += w.u
        inner.u = inner.u * 0.5
    return s


class Everything:
    k = 3.0

    def __init__(self):
        self.n = 0

    def __getattribute__(self, name):
        if name == "n" or name.startswith("__"):
            return object.__getattribute__(self, name)
        self.n += 1
        return super().__getattribute__(name) * 2.0


@right
def getattribute_of_the_user(x):
    g, s = Everything(), 0.0
    for _ in range(8):
        s += g.k * x[0]
    return s * g.n


class Doubling:
    def __init__(self):
        self.u = 1.0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2.0)


class ByDict:
    def __setattr__(self, name, value):
        self.__dict__[name] = value * 2.0
        self.__dict__["last"] = name


class BySuper:
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        super().__setattr__("n", getattr(self, "n", 0) + 1)

    def __delattr__(self, name):
        super().__setattr__("n", self.n + 100)
        super().__delattr__(name)


@right
def setattr_of_the_user(x):
    a, b, c = Doubling(), ByDict(), BySuper()
    b.u = x[0]
    for i in range(8):
        a.u = a.u * 0.1 + x[0]
        b.u = b.u * 0.1 + x[1]
        c.u = x[0] * i
    r = c.u
    del c.u
    return a.u + b.u * len(b.last) + r * c.n


class Plus:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, kind=None):
        return self if obj is None else getattr(obj, self.name, 1.0) * 10.0

    def __set__(self, obj, value):
        setattr(obj, self.name, value + 1.0)


class Fivefold:
    def __get__(self, obj, kind=None):
        return self if obj is None else obj.k * 5.0


class Described:
    d, f = Plus(), Fivefold()
    k = 2.0


@right
def descriptors(x):
    h = Described()
    for _ in range(8):
        h.d = h.d * 0.01 + x[0]
    r = h.f
    h.k = x[0]
    r += h.f
    h.f = x[1]
    return h.d + r + h.f


@right
def a_descriptor_replaced(x):
    h = Described()
    h.d = x[0]
    Described.f = property(lambda self: 100.0 * self.d)
    return h.f


class Remembering:
    def __init__(self, u):
        self.u, self.runs = u, 0

    @functools.cached_property
    def total(self):
        self.runs += 1
        s = 0.0
        for i in range(3):
            s += self.u[i]
        return s


REMEMBERING = Remembering(None)


@right
def a_cached_property(x):
    c, s = Remembering(x), 0.0
    for _ in range(8):
        s += c.total
        c.u = c.u * 2.0
    return s * c.runs


@right
def a_cached_property_of_an_object_from_outside(x):
    REMEMBERING.u = x
    return REMEMBERING.total + REMEMBERING.runs


# --- how objects are made ------------------------------------------------------------------------


class Meta(type):
    count = 0

    def __call__(cls, *args):
        Meta.count += 1
        made = super().__call__(*args)
        made.tag = Meta.count
        return made

    @property
    def scale(cls):
        return 4.0 * cls.base

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return 6.0


class WithMeta(metaclass=Meta):
    base = 1.0

    def __init__(self, u=0.0):
        self.u = u


@right
def a_metaclass_that_counts(x):
    a, b, s = WithMeta(x[0]), WithMeta(x[1]), 0.0
    for _ in range(8):
        s += WithMeta(x[0]).tag * x[0]
    return a.u * a.tag + b.u * b.tag + s


@right
def attributes_of_a_metaclass(x):
    r = WithMeta.scale
    WithMeta.base = x[0]
    return r + WithMeta.scale + WithMeta.whatever * x[1]


class Numbered:
    made = 0

    def __new__(cls, *args):
        cls.made += 1
        new = super().__new__(cls)
        new.k = cls.made
        return new

    def __init__(self, u):
        self.u = u


@right
def new_of_the_user(x):
    a, b, s = Numbered(x[0]), Numbered(x[1]), 0.0
    for _ in range(8):
        s += Numbered(x[0]).k * x[0]
    return a.u * a.k + b.u * b.k + s


class Single:
    one = None

    def __new__(cls):
        if cls.one is None:
            cls.one = super().__new__(cls)
            cls.one.u = 0.0
        return cls.one


@right
def a_single_object(x):
    a, b = Single(), Single()
    a.u = x[0]
    return b.u


@dataclass
class Derived:
    u: Any
    k: float = 2.0
    w: list[Any] = field(default_factory=list)
    t: Any = field(init=False)
    c: dataclasses.InitVar[float] = 3.0
    made: dataclasses.InitVar[int] = 0

    def __post_init__(self, c, made):
        self.t = self.u * self.k * c
        s = 0.0
        for _ in range(8):
            s += self.t
        self.k = s


@dataclass
class Counted:
    u: Any

    def __post_init__(self):
        Numbered.made += 1
        self.k = Numbered.made


@dataclass(frozen=True)
class Frozen:
    u: Any

    def grown(self):
        return Frozen(self.u * 2.0)


@dataclass(slots=True)
class Slotted:
    u: Any
    v: float = 1.0


@right
def dataclasses_that_compute(x):
    p, f, d, s = Derived(x[0], c=x[1]), Frozen(x[0]), Slotted(x[0]), 0.0
    for i in range(8):
        s += Derived(x[0], k=i * 1.0).k + Counted(x[0]).k * x[0]
        f = f.grown()
        d.u = d.u * 0.5 + d.v
        d.v = d.v + x[1]
    return p.t + p.k + len(p.w) + s + f.u + d.u * d.v


class Letter(enum.Enum):
    A = 1
    B = 2


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


class Concrete(Abstract):
    def f(self):
        return 2.0


@right
def classes_of_libraries(x):
    return x[0] * Letter.B.value + Letter(1).value * Concrete().f()


class Items(list):
    def __init__(self, *args):
        super().__init__(*args)
        self.n = 0

    def append(self, value):
        self.n += 1
        super().append(value)


@right
def a_list_with_a_method(x):
    items = Items()
    for i in range(8):
        items.append(x[0] * i)
    return sum(items) * items.n


@right
def a_copy_of_an_object(x):
    b = copy.copy(SHARED)
    b.u = x[0]
    return b.u + SHARED.u


# --- functions that Python runs ------------------------------------------------------------------


class Counting:
    def __init__(self):
        self.n = 0

    def bump(self):
        self.n += 1


def counting(o):
    for _ in range(3):
        o.n += 1
        yield o.n


def matching(o):
    match o.n:
        case _:
            o.bump()
    return 1.0


@right
def a_generator_that_changes_an_object(x):
    o, s = Counting(), 0.0
    for _ in range(8):
        for value in counting(o):
            s += value * x[0]
    return s + o.n


@right
def a_function_that_is_not_read_calls_a_method(x):
    o, s = Counting(), 0.0
    for _ in range(8):
        s += matching(o) * x[0]
    return s + o.n


@right
def a_list_appended_to_by_the_class(x):
    items, n = [], 0.0
    for _ in range(8):
        list.append(items, x[0])
        n += x[1]
    return len(items) * n


# --- methods that Python calls by itself ----------------------------------------------------------


class Observed:
    """Counts whatever is asked of it."""

    def __init__(self):
        self.n = 0

    def _seen(self, answer):
        self.n += 1
        return answer

    def __len__(self):
        return self._seen(3)

    def __float__(self):
        return self._seen(2.0)

    def __int__(self):
        return self._seen(2)

    def __index__(self):
        return self._seen(2)

    def __abs__(self):
        return self._seen(2.0)

    def __round__(self, digits=0):
        return self._seen(2)

    def __iter__(self):
        return iter(self._seen([1.0, 2.0]))

    def __contains__(self, item):
        return self._seen(True)

    def __bool__(self):
        return self._seen(True)

    def __hash__(self):
        return self._seen(3)

    def __eq__(self, other):
        return self._seen(True)

    def __lt__(self, other):
        return self._seen(True)

    def __neg__(self):
        return self._seen(1.0)

    def __getitem__(self, index):
        return self._seen(2.0)

    def __add__(self, other):
        return self._seen(2.0 + other)

    def __radd__(self, other):
        return self._seen(3.0 + other)

    def __str__(self):
        return self._seen("a")

    def __format__(self, spec):
        return self._seen("b")


EXPRESSIONS = """len(o);float(o);int(o);abs(o);round(o);list(o);tuple(o);sum(o);sorted(o);max(o);
any(o);1 in o;bool(o);not o;o if o else 1;hash(o);{o};{o: 1};dict([(o, 1)]);o == 1;o < 1;-o;o[0];
o + 1.0;1.0 + o;str(o);format(o);f'{o}';'%s' % o;[4, 5, 6][o];range(o);[q for q in o];
enumerate(o);zip(o, o);list(zip(o, o));list(map(abs, [o]));operator.index(o);
isinstance(o, Observed)"""

TEXT = """
def observed(x):
    o, s = Observed(), 0.0
    for _ in range(8):
        v = {}
        s += x[0]
    return s * o.n
"""
assert operator.index(Observed()) == 2
