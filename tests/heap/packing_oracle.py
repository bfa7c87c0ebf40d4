"""Oracles for packing that share no code with the library."""

from itertools import permutations


def alive(row, time):
    """Whether a row `(start, end, size, …)` lives at a time."""
    return row[0] <= time < row[1]


def share_time(a, b):
    return a[0] < b[1] and b[0] < a[1]


def overlaps(rows, offsets):
    """Pairs of rows `(start, end, size)` that share a time and an address."""
    found = []
    for i, a in enumerate(rows):
        for j, b in enumerate(rows[:i]):
            apart = offsets[i] + a[2] <= offsets[j] or offsets[j] + b[2] <= offsets[i]
            if a[2] and b[2] and share_time(a, b) and not apart:
                found.append((j, i))
    return found


def load_bound(rows):
    """The largest sum of sizes that live at once."""
    return max(
        (sum(r[2] for r in rows if alive(r, t)) for t in {r[0] for r in rows}),
        default=0,
    )


def height_of(rows, offsets):
    used = [o + r[2] for r, o in zip(rows, offsets, strict=True) if r[0] < r[1]]
    return max(used, default=0)


def best_height(rows, pins=None, alignments=None):
    """The optimum by brute force: every order, each row as low as it goes.

    An optimal packing sorted by offset is such an order.
    """
    pins = pins or [None] * len(rows)
    alignments = alignments or [1] * len(rows)
    free = [i for i, pin in enumerate(pins) if pin is None]
    best = None
    for order in permutations(free):
        at = {i: pin for i, pin in enumerate(pins) if pin is not None}
        for i in order:
            spans = sorted(
                (at[j], at[j] + rows[j][2]) for j in at if share_time(rows[i], rows[j])
            )
            step = alignments[i]
            offset = 0
            for low, high in spans:
                if offset + rows[i][2] > low and offset < high:
                    offset = -(-high // step) * step
            at[i] = offset
        top = max((at[i] + rows[i][2] for i in at), default=0)
        best = top if best is None else min(best, top)
    return best or 0


def guillotine(count, random, capacity, duration):
    """`count` rectangles that tile a full one: `(start, end, size)` and no more.

    The optimum is `capacity`: every moment is full.
    """
    pieces = [(0, duration, 0, capacity)]
    while len(pieces) < count:
        index = random.randrange(len(pieces))
        start, end, low, high = pieces[index]
        if random.random() < 0.5:
            if end - start < 2:
                continue
            cut = random.randrange(start + 1, end)
            new = [(start, cut, low, high), (cut, end, low, high)]
        else:
            if high - low < 2:
                continue
            cut = random.randrange(low + 1, high)
            new = [(start, end, low, cut), (start, end, cut, high)]
        pieces[index : index + 1] = new
    random.shuffle(pieces)
    return [(start, end, high - low) for start, end, low, high in pieces]
