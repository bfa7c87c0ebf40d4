"""An independent oracle of storage: executes a schedule on tagged bytes.

Every instruction writes fresh tags into the bytes that an assignment gives to its
results and checks that its operands' bytes still hold the tags of what they should.
Loops run twice, conditionals take the branch that the caller chooses. The flow of
tags is worked out here; only places are taken from the assignment.
"""

from __future__ import annotations

import itertools

from sortedcontainers import SortedDict

from msa.analysis.buffer_assignment import BufferAssignment
from msa.hlo.opcode import is_elementwise

FORWARD = {"bitcast", "domain", "opt-barrier", "add-dependency", "all-reduce-done"}
MOVES = {"tuple", "get-tuple-element", "while", "call", "conditional", *FORWARD}
IN_PLACE = {
    "dynamic-update-slice": (0,),
    "scatter": (0,),
    "sort": (0,),
    "triangular-solve": (1,),
}


class Bytes:
    """Tags of byte ranges of one allocation."""

    def __init__(self):
        self.parts = SortedDict()  # offset -> (end, tag)

    def write(self, start, end, tag):
        if start == end:
            return
        at = self.parts.bisect_left(start)
        if at and self.parts.peekitem(at - 1)[1][0] > start:
            at -= 1
        while at < len(self.parts):
            offset, (stop, old) = self.parts.peekitem(at)
            if offset >= end:
                break
            del self.parts[offset]
            if offset < start:
                self.parts[offset] = (start, old)
                at += 1
            if stop > end:
                self.parts[end] = (stop, old)
        self.parts[start] = (end, tag)

    def holds(self, start, end, tag):
        if start == end:
            return True
        at = self.parts.bisect_right(start) - 1
        if at < 0:
            return False
        _, (stop, found) = self.parts.peekitem(at)
        return stop >= end and found == tag


class Oracle:
    def __init__(self, assignment: BufferAssignment, branch: int = 0, trips: int = 2):
        self.a = assignment
        self.flow = assignment.alias.dataflow
        self.branch = branch
        self.trips = trips
        self.memory = [Bytes() for _ in assignment.allocations]
        self.tags = itertools.count()
        self.problems: list[str] = []
        self.schedule = assignment.module.schedule

    # -- places ----------------------------------------------------------------

    def place(self, x, index):
        values = self.flow.values_at(x, index)
        slices = {self.a.slice_of(v) for v in values if self.a.has_allocation(v)}
        if len(slices) > 1:
            self.problems.append(f"{x.name}{index} lies in {slices}")
        return next(iter(slices), None)

    def nodes(self, x):
        return [(i, s) for i, s in x.shape.nodes() if not s.is_token]

    def check(self, x, index, tag, reader):
        place = self.place(x, index)
        if place is None or tag[0] == "constant":
            return
        held = self.memory[place.allocation]
        if not held.holds(place.offset, place.offset + place.size, tag):
            self.problems.append(
                f"{reader} finds other contents in {x.name}{index} at {place}"
            )

    def write(self, x, index, tag):
        place = self.place(x, index)
        if place is None:
            if tag[0] != "constant" and x.shape.subshape(index).byte_size():
                self.problems.append(f"{x.name}{index} has no storage")
            return
        self.memory[place.allocation].write(
            place.offset, place.offset + place.size, tag
        )

    def handed_over(self, a, b, reader):
        """Storage that changes its name without moving."""
        for index, shape in self.nodes(b):
            one, two = self.place(a, index), self.place(b, index)
            if one is None and two is None:
                continue
            same = (
                one is not None
                and two is not None
                and ((one.allocation, one.offset) == (two.allocation, two.offset))
            )
            if not same and shape.byte_size():
                self.problems.append(f"{reader}: {a.name}{index} {one} is not {two}")

    # -- running ---------------------------------------------------------------

    def run(self):
        module = self.a.module
        entry = module.entry
        arguments = {}
        for parameter in entry.parameters:
            tags = {i: ("argument", next(self.tags)) for i, _ in self.nodes(parameter)}
            arguments[parameter] = tags
            for index, tag in tags.items():
                self.write(parameter, index, tag)
        result = self.computation(entry, list(arguments.values()))
        for index, tag in result.items():
            self.check(entry.root, index, tag, "the caller")
        given = {(p.parameter_number, p.parameter_index) for p in module.aliases}
        for parameter, tags in arguments.items():
            for index, tag in tags.items():
                if (parameter.parameter_number, index) not in given:
                    self.check(parameter, index, tag, "the owner of the argument")
        return self.problems

    def computation(self, computation, arguments):
        env = {}
        for x in self.schedule.sequence(computation):
            if x.opcode == "parameter":
                env[x] = arguments[x.parameter_number]
            else:
                env[x] = self.instruction(x, env)
        root = computation.root
        for index, tag in env[root].items():
            self.check(root, index, tag, f"end of {computation.name}")
        return env[root]

    def instruction(self, x, env):
        if x.opcode in MOVES:
            if x.opcode in ("tuple", "get-tuple-element"):
                table = () if x.opcode == "get-tuple-element" else None
                if table is not None:
                    self.check(x.operands[0], (), env[x.operands[0]][()], x.name)
            return self.move(x, env)
        for operand in dict.fromkeys(x.operands):
            for index, tag in env[operand].items():
                self.check(operand, index, tag, x.name)
        tags = self.results(x, env)
        fresh = [i for i, tag in tags.items() if tag[0] == "new" and tag[2] is x]
        self.check_overwritten(x, fresh)
        for index in fresh:
            self.write(x, index, tags[index])
        return tags

    def new(self, x):
        if x.opcode == "constant":
            return ("constant", x, x)
        return ("new", next(self.tags), x)

    def results(self, x, env):
        """Tags of a result: fresh ones, except for what starts and dones pass on."""
        tags = {i: self.new(x) for i, _ in self.nodes(x)}
        op = x.opcode
        source = env[x.operands[0]] if x.operands else {}
        if op == "copy":
            tags.update({i: t for i, t in source.items() if i})
        elif op == "copy-start":
            tags[(1,)] = source[()]
        elif op == "copy-done":
            tags = {(): source[(0,)]}
        elif op == "send":
            tags[(0,)] = source[()]
        elif op == "recv-done":
            tags[(0,)] = source[(0,)]
        elif op in ("all-gather-start", "collective-permute-start"):
            if len(x.operands) == 1 and () in source and len(source) == 1:
                tags[(0,)] = source[()]
        elif op in ("all-gather-done", "collective-permute-done"):
            tags = {i[1:]: t for i, t in source.items() if i[:1] == (1,)}
        return tags

    def check_overwritten(self, x, fresh):
        """Results may only lie on operands that are updated element by element."""
        places = [(i, self.place(x, i)) for i in fresh]
        places = [(i, p) for i, p in places if p is not None and p.size]
        for (i, a), (j, b) in itertools.combinations(places, 2):
            if a.overlaps(b):
                self.problems.append(f"{x.name}{i} and {x.name}{j} overlap")
        for index, place in places:
            for slot, operand in enumerate(x.operands):
                for at, _ in self.nodes(operand):
                    other = self.place(operand, at)
                    if other is None or not place.overlaps(other):
                        continue
                    if not self.may_overwrite(x, index, slot, at, place, other):
                        self.problems.append(
                            f"{x.name}{index} destroys operand {slot} while reading it"
                        )

    def may_overwrite(self, x, index, slot, at, place, other):
        if place.offset != other.offset:
            return False
        if any(
            (number, inner) == (slot, at) and tuple(output) == index
            for output, number, inner in x.attributes.get(
                "output_to_operand_aliasing", ()
            )
        ):
            return True
        if x.opcode == "fusion":
            return fused_in_place(x, slot, index) if not at else True
        if slot in IN_PLACE.get(x.opcode, ()) or is_elementwise(x, slot):
            return True
        return x.opcode == "sort" and index == (slot,)

    def move(self, x, env):
        op = x.opcode
        if op == "tuple":
            tags = {(): self.new(x)}
            self.write(x, (), tags[()])
            for k, operand in enumerate(x.operands):
                tags.update({(k, *i): t for i, t in env[operand].items()})
            return tags
        source = env[x.operands[0]]
        if op == "get-tuple-element":
            k = x.tuple_index
            return {i[1:]: t for i, t in source.items() if i[:1] == (k,)}
        if op in FORWARD:
            return dict(source)
        if op == "while":
            return self.loop(x, source)
        if op == "call":
            (callee,) = x.called_computations
            for parameter, operand in zip(callee.parameters, x.operands, strict=True):
                self.handed_over(operand, parameter, x.name)
            result = self.computation(callee, [env[o] for o in x.operands])
            self.handed_over(callee.root, x, x.name)
            return result
        number = min(self.branch, len(x.called_computations) - 1)
        branch = x.called_computations[number]
        operand = x.operands[number + 1]
        self.check(x.operands[0], (), env[x.operands[0]][()], x.name)
        self.handed_over(operand, branch.parameters[0], x.name)
        result = self.computation(branch, [env[operand]])
        self.handed_over(branch.root, x, x.name)
        return result

    def loop(self, x, state):
        body, condition = x.called_computations
        self.handed_over(x.operands[0], x, x.name)
        for inner in (body.parameters[0], condition.parameters[0]):
            self.handed_over(x, inner, x.name)
        self.handed_over(body.root, x, x.name)
        for trip in range(self.trips + 1):
            for index, tag in state.items():
                self.check(x, index, tag, f"{x.name}, trip {trip}")
            self.computation(condition, [state])
            if trip < self.trips:
                state = self.computation(body, [state])
        for index, tag in state.items():
            self.check(x, index, tag, f"{x.name}, result")
        return state


def fused_in_place(fusion, slot, index):
    """Whether every path from a fused parameter to the root keeps the place."""
    seen = set()
    work = [fusion.fused_computation.parameters[slot]]
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        for user in value.users:
            if user.opcode in ("tuple", "bitcast", "dynamic-slice"):
                work.append(user)
            elif user.opcode == "fusion":
                if not all(
                    fused_in_place(user, k, ()) for k in user.operand_indices(value)
                ):
                    return False
                work.append(user)
            elif not all(
                k in IN_PLACE.get(user.opcode, ())
                or is_elementwise(user, k)
                or (user.opcode == "dynamic-update-slice" and k == 1)
                for k in user.operand_indices(value)
            ):
                return False
            else:
                work.append(user)
    return True


def storage_problems(assignment: BufferAssignment) -> list[str]:
    """What goes wrong when the program runs in the assigned storage."""
    problems = []
    for branch in (0, 1, 9):
        problems += Oracle(assignment, branch).run()
    return problems
