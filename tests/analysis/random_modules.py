"""Random well-formed modules: loops, branches, calls, tuples, updates in place."""

from __future__ import annotations

import random

import msa
from msa.hlo.module import Module

SIZES = (2, 4)


class _Writer:
    """Writes computations as text, callees first."""

    def __init__(self, seed: int, size: int):
        self.random = random.Random(seed)
        self.size = size
        self.computations: list[str] = []
        self.count = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def body(self, lines, pool, budget, depth):
        """Add about `budget` instructions; `pool` maps sizes to value names."""
        r = self.random
        while budget > 0:
            size = r.choice(SIZES)
            kinds = ["negate", "add", "reverse", "copy", "update", "constant", "pair"]
            if depth < 2:
                kinds += ["while", "conditional", "call"]
            kind = r.choice(kinds)
            budget -= 3 if kind in ("while", "conditional", "call") else 1
            getattr(self, f"_{kind}")(lines, pool, size, depth)

    def _new(self, lines, pool, size, text, stem="v"):
        name = self.name(stem)
        lines.append(f"  {name} = f32[{size}] {text}")
        pool[size].append(name)
        return name

    def _pick(self, pool, size):
        names = pool[size]
        # Recent values often, old ones sometimes: chains and long lifetimes.
        if self.random.random() < 0.6:
            return names[-1 - self.random.randrange(min(3, len(names)))]
        return self.random.choice(names)

    def _negate(self, lines, pool, size, depth):
        self._new(lines, pool, size, f"negate({self._pick(pool, size)})")

    def _copy(self, lines, pool, size, depth):
        self._new(lines, pool, size, f"copy({self._pick(pool, size)})")

    def _add(self, lines, pool, size, depth):
        a, b = self._pick(pool, size), self._pick(pool, size)
        self._new(lines, pool, size, f"add({a}, {b})")

    def _reverse(self, lines, pool, size, depth):
        text = f"reverse({self._pick(pool, size)}), dimensions={{0}}"
        self._new(lines, pool, size, text)

    def _constant(self, lines, pool, size, depth):
        values = ", ".join(str(self.random.randrange(9)) for _ in range(size))
        self._new(lines, pool, size, f"constant({{{values}}})")

    def _update(self, lines, pool, size, depth):
        at = self.name("at")
        lines.append(f"  {at} = s32[] constant({self.random.randrange(3)})")
        a, b = self._pick(pool, 4), self._pick(pool, 2)
        self._new(lines, pool, 4, f"dynamic-update-slice({a}, {b}, {at})")

    def _pair(self, lines, pool, size, depth):
        a, b = self._pick(pool, 2), self._pick(pool, 4)
        pair = self.name("t")
        lines.append(f"  {pair} = (f32[2], f32[4]) tuple({a}, {b})")
        self._new(lines, pool, 2, f"get-tuple-element({pair}), index=0")
        self._new(lines, pool, 4, f"get-tuple-element({pair}), index=1")

    def _state(self, pool):
        sizes = [self.random.choice(SIZES) for _ in range(self.random.randint(1, 3))]
        return sizes, [self._pick(pool, size) for size in sizes]

    def _while(self, lines, pool, size, depth):
        sizes, names = self._state(pool)
        shape = "(" + ", ".join(["s32[]", *(f"f32[{s}]" for s in sizes)]) + ")"
        body, condition = self.name("body"), self.name("cond")
        p, c, one, limit = (self.name(s) for s in ("p", "c", "one", "limit"))
        inner = {s: [] for s in SIZES}
        text = [f"  {p} = {shape} parameter(0)"]
        text.append(f"  {c} = s32[] get-tuple-element({p}), index=0")
        for k, s in enumerate(sizes):
            self._new(text, inner, s, f"get-tuple-element({p}), index={k + 1}", "s")
        for s in SIZES:
            self._constant(text, inner, s, depth)
        self.body(text, inner, self.random.randint(1, 5), depth + 1)
        after = self.name("n")
        text.append(f"  {one} = s32[] constant(1)")
        text.append(f"  {after} = s32[] add({c}, {one})")
        results = [self._pick(inner, s) for s in sizes]
        root = self.name("r")
        text.append(f"  ROOT {root} = {shape} tuple({', '.join([after, *results])})")
        self.computations.append(self._wrap(body, text))
        q, d, less = self.name("q"), self.name("d"), self.name("less")
        text = [
            f"  {q} = {shape} parameter(0)",
            f"  {d} = s32[] get-tuple-element({q}), index=0",
            f"  {limit} = s32[] constant({self.random.randint(1, 3)})",
            f"  ROOT {less} = pred[] compare({d}, {limit}), direction=LT",
        ]
        self.computations.append(self._wrap(condition, text))
        zero, init, loop = self.name("zero"), self.name("init"), self.name("loop")
        lines.append(f"  {zero} = s32[] constant(0)")
        lines.append(f"  {init} = {shape} tuple({', '.join([zero, *names])})")
        lines.append(
            f"  {loop} = {shape} while({init}), condition={condition}, body={body}"
        )
        for k, s in enumerate(sizes):
            self._new(lines, pool, s, f"get-tuple-element({loop}), index={k + 1}", "w")

    def _callee(self, stem, size, depth):
        """A computation from one array to another of the same size."""
        name, p = self.name(stem), self.name("p")
        inner = {s: [] for s in SIZES}
        text = [f"  {p} = f32[{size}] parameter(0)"]
        inner[size].append(p)
        for s in SIZES:
            if s != size:
                self._constant(text, inner, s, depth)
        self.body(text, inner, self.random.randint(0, 4), depth + 1)
        result = self._pick(inner, size)
        for k, line in enumerate(text):
            if line.startswith(f"  {result} = "):
                text[k] = "  ROOT " + line[2:]
        self.computations.append(self._wrap(name, text))
        return name

    def _conditional(self, lines, pool, size, depth):
        branches = [self._callee("branch", size, depth) for _ in range(2)]
        pick = self.name("pick")
        lines.append(f"  {pick} = s32[] constant({self.random.randrange(2)})")
        a, b = self._pick(pool, size), self._pick(pool, size)
        self._new(
            lines,
            pool,
            size,
            f"conditional({pick}, {a}, {b}), "
            f"branch_computations={{{', '.join(branches)}}}",
        )

    def _call(self, lines, pool, size, depth):
        callee = self._callee("callee", size, depth)
        text = f"call({self._pick(pool, size)}), to_apply={callee}"
        name = self._new(lines, pool, size, text)
        if self.random.random() < 0.3:
            # A second call of the same computation: the call graph is not flat.
            self._new(lines, pool, size, f"call({name}), to_apply={callee}")

    @staticmethod
    def _wrap(name, lines):
        return f"{name} {{\n" + "\n".join(lines) + "\n}\n"

    def module(self) -> str:
        pool = {s: [] for s in SIZES}
        lines: list[str] = []
        arguments = []
        for k in range(self.random.randint(2, 4)):
            size = SIZES[k % 2]
            arguments.append(size)
            self._new(lines, pool, size, f"parameter({k})", "arg")
        self.body(lines, pool, self.size, 0)
        sizes = [self.random.choice(SIZES) for _ in range(self.random.randint(1, 4))]
        results = [self._pick(pool, s) for s in sizes]
        shape = "(" + ", ".join(f"f32[{s}]" for s in sizes) + ")"
        lines.append(f"  ROOT result = {shape} tuple({', '.join(results)})")
        aliases = []
        free = list(range(len(arguments)))
        self.random.shuffle(free)
        for k, s in enumerate(sizes):
            match = next((i for i in free if arguments[i] == s), None)
            if match is not None and self.random.random() < 0.5:
                free.remove(match)
                aliases.append(f"{{{k}}}: ({match}, {{}}, may-alias)")
        head = "HloModule random"
        if aliases:
            head += f", input_output_alias={{ {', '.join(aliases)} }}"
        entry = "ENTRY main {\n" + "\n".join(lines) + "\n}\n"
        return "\n".join([head, "", *self.computations, entry])


def random_text(seed: int, size: int = 14) -> str:
    """HLO text of an unscheduled module; equal seeds give equal text."""
    return _Writer(seed, size).module()


def random_module(seed: int, size: int = 14) -> Module:
    """The module of `random_text`."""
    return msa.parse(random_text(seed, size))
