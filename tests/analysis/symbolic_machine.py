"""An independent oracle: runs a schedule with symbols and watches the storage.

Every result node is a *cell*; what is written into it is a *content*. Forwarding
passes contents on, operations in place write a new content into an old cell, loops
demand that the parts of their state keep their cells. Loops make two trips and all
branches of a conditional are run. From the run follow

* which positions must share storage (`groups`), and
* from when to when each content is needed (`contents`),

without any dataflow analysis, merging of values or live-range rules.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

TRIPS = 2
FORWARD_ALL = {"bitcast", "opt-barrier", "add-dependency"}


class Groups:
    """Disjoint sets of anything hashable."""

    def __init__(self):
        self.parent = {}

    def find(self, x):
        self.parent.setdefault(x, x)
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def join(self, a, b):
        self.parent[self.find(a)] = self.find(b)


@dataclass(eq=False)
class Content:
    """What was written into a cell.

    `written` and `read` are ticks of the run; `defined` is the position that wrote
    it; `times` are the steps at which it is named or read.
    """

    cell: int
    written: int
    defined: tuple
    read: int = -1
    times: set = field(default_factory=set)
    entered_loop: bool = False
    at_root: bool = False


class Machine:
    """One symbolic run of a scheduled module."""

    def __init__(self, module):
        self.module = module
        self.schedule = module.schedule
        self.time = {}
        self.span = {}
        self._lay_out(module.entry)
        self.groups = Groups()
        self.ticks = []
        self.contents = []
        self._cells = itertools.count()
        self._run()

    # -- time -------------------------------------------------------------------

    def _lay_out(self, computation):
        start = len(self.time)
        for x in self.schedule.sequence(computation):
            called = x.called_computations
            if x.opcode == "while":
                called = (called[1], called[0])
            elif x.opcode not in ("call", "conditional", "async-start"):
                called = ()
            for callee in called:
                self._lay_out(callee)
            self.time[x] = len(self.time)
        self.span[computation] = (start, len(self.time))

    # -- the run ------------------------------------------------------------------

    def _run(self):
        entry = self.module.entry
        arguments = []
        for parameter in entry.parameters:
            made = {i: self._new(parameter, i) for i, _ in parameter.shape.nodes()}
            arguments.append(made)
        result = self._computation(entry, arguments)
        self.ticks.append(len(self.time))
        for content in result.values():
            self._read(content)
        given = {(a.parameter_number, a.parameter_index) for a in self.module.aliases}
        for number, nodes in enumerate(arguments):
            for index, content in nodes.items():
                if (number, index) not in given:
                    self._read(content)
        for alias in self.module.aliases:
            source = arguments[alias.parameter_number][alias.parameter_index]
            self._same(source, result[alias.output_index])

    def _computation(self, computation, arguments):
        env = {}
        for x in self.schedule.sequence(computation):
            if x.opcode == "parameter":
                env[x] = dict(arguments[x.parameter_number])
                self.ticks.append(self.time[x])
            else:
                env[x] = self._instruction(x, env)
            self._name(x, env[x])
        root = env[computation.root]
        for content in root.values():
            content.at_root = True
        return root

    def _name(self, x, nodes):
        """A result's nodes name the cells that hold them."""
        for index, content in nodes.items():
            self.groups.join((x, index), content.cell)
            content.times.add(self.time[x])

    def _new(self, x, index, cell=None):
        cell = next(self._cells) if cell is None else cell
        content = Content(cell, len(self.ticks), (x, index))
        self.contents.append(content)
        return content

    def _read(self, content):
        content.read = len(self.ticks) - 1

    def _same(self, a, b):
        self.groups.join(a.cell, b.cell)

    def _use(self, x, content, time=None):
        content.times.add(self.time[x] if time is None else time)
        self._read(content)

    # -- instructions ---------------------------------------------------------------

    def _instruction(self, x, env):
        opcode = x.opcode
        control = {
            "while": self._while,
            "conditional": self._conditional,
            "call": self._call,
            "async-start": self._start,
        }.get(opcode)
        if control is not None:
            return control(x, env)
        self.ticks.append(self.time[x])
        if opcode == "tuple":
            nodes = {(): self._new(x, ())}
            for i, operand in enumerate(x.operands):
                nodes.update({(i, *k): c for k, c in env[operand].items()})
            return nodes
        if opcode == "get-tuple-element":
            source = env[x.operands[0]]
            self._use(x, source[()])
            i = x.tuple_index
            return {k[1:]: c for k, c in source.items() if k[:1] == (i,)}
        for operand in x.operands:
            for content in env[operand].values():
                if opcode not in FORWARD_ALL:
                    self._use(x, content)
                else:
                    content.times.add(self.time[x])
        if opcode in FORWARD_ALL:
            return dict(env[x.operands[0]])
        if opcode == "async-done":
            source = env[x.operands[0]]
            return {k[1:]: c for k, c in source.items() if k[:1] == (1,)}
        if opcode == "async-update":
            source = env[x.operands[0]]
            return {
                i: self._new(x, i) if i in ((), (0,)) else source[i]
                for i, _ in x.shape.nodes()
            }
        if opcode == "fusion":
            return self._fusion(x, env)
        if opcode in ("dynamic-update-slice", "scatter"):
            return {(): self._new(x, (), env[x.operands[0]][()].cell)}
        return {i: self._new(x, i) for i, _ in x.shape.nodes()}

    def _fusion(self, x, env):
        """Fused updates of a whole operand work in its cell."""
        root = x.fused_computation.root
        stated = {
            tuple(output): (number, tuple(inner))
            for output, number, inner in x.attributes.get(
                "output_to_operand_aliasing", ()
            )
        }
        nodes = {}
        for index, shape in x.shape.nodes():
            cell = None
            if index in stated:
                number, inner = stated[index]
                cell = env[x.operands[number]][inner].cell
            source = root
            if root.opcode == "tuple" and index:
                source = root.operands[index[0]]
            if source.opcode == "dynamic-update-slice" and not shape.is_tuple:
                target = source.operands[0]
                if target.opcode == "parameter":
                    operand = x.operands[target.parameter_number]
                    cell = env[operand][()].cell
            nodes[index] = self._new(x, index, cell)
        return nodes

    def _start(self, x, env):
        (wrapped,) = x.called_computations
        result = self._computation(wrapped, [env[o] for o in x.operands])
        self.ticks.append(self.time[x])
        nodes = {(): self._new(x, ()), (0,): self._new(x, (0,))}
        for i, operand in enumerate(x.operands):
            for content in env[operand].values():
                self._use(x, content)
            nodes.update({(0, i, *k): c for k, c in env[operand].items()})
        nodes.update({(1, *k): c for k, c in result.items()})
        for index, _ in x.shape.nodes():
            if index[:1] not in ((0,), (1,)) and index:
                nodes[index] = self._new(x, index)
        return nodes

    def _call(self, x, env):
        (callee,) = x.called_computations
        result = self._computation(callee, [env[o] for o in x.operands])
        self.ticks.append(self.time[x])
        return dict(result)

    def _conditional(self, x, env):
        results = []
        for branch, operand in zip(x.called_computations, x.operands[1:], strict=True):
            results.append(self._computation(branch, [env[operand]]))
        self.ticks.append(self.time[x])
        for operand in x.operands:
            for content in env[operand].values():
                content.times.add(self.time[x])
        self._use(x, env[x.operands[0]][()])
        for other in results[1:]:
            for index, content in results[0].items():
                self._same(content, other[index])
        return dict(results[-1])

    def _while(self, x, env):
        body, condition = x.called_computations
        state = env[x.operands[0]]
        for content in state.values():
            content.entered_loop = True
        for _ in range(TRIPS):
            self._computation(condition, [state])
            after = self._computation(body, [state])
            for index, content in state.items():
                self._same(content, after[index])
                after[index].entered_loop = True
            state = after
        self._computation(condition, [state])
        self.ticks.append(self.time[x])
        return dict(state)
