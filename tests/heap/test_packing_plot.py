"""`HeapPlan.plot` against recorded axes, and without matplotlib."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import msa
from msa.errors import UnsupportedError


class RecordedAxes:
    """Keeps what is drawn."""

    def __init__(self):
        self.patches, self.lines, self.limits = [], {}, {}

    def add_patch(self, patch):
        self.patches.append(patch)

    def axhline(self, y, *, label, **_):
        self.lines[label] = y

    def set_xlim(self, low, high):
        self.limits["x"] = (low, high)

    def set_ylim(self, low, high):
        self.limits["y"] = (low, high)

    def set_xlabel(self, text):
        self.limits["time"] = text

    def set_ylabel(self, text):
        self.limits["address"] = text

    def set_title(self, text):
        self.limits["title"] = text

    def legend(self, **_):
        pass


@pytest.fixture
def matplotlib(monkeypatch):
    """Just enough of matplotlib to see what is drawn."""
    pyplot, patches = ModuleType("matplotlib.pyplot"), ModuleType("matplotlib.patches")
    pyplot.subplots = lambda **_: (None, RecordedAxes())
    pyplot.get_cmap = lambda _: lambda number: ("colour", number)
    patches.Rectangle = lambda corner, width, height, **look: SimpleNamespace(
        corner=corner, width=width, height=height, **look
    )
    package = ModuleType("matplotlib")
    package.pyplot, package.patches = pyplot, patches
    for module in (package, pyplot, patches):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_plot_draws_a_rectangle_for_every_piece(matplotlib):
    # A block with a gap, and one pinned above it; an empty one is not drawn.
    rows = [
        {"id": "a", "start": 0, "end": 6, "size": 4, "offset": 0, "gaps": [(2, 4)]},
        {"id": "b", "start": 1, "end": 3, "size": 2, "offset": 4},
        ("empty", 0, 9, 0),
    ]
    axes = msa.pack(rows, capacity=10).plot()
    drawn = [(p.corner, p.width, p.height) for p in axes.patches]
    assert drawn == [((0, 0), 2, 4), ((4, 0), 2, 4), ((1, 4), 2, 2)]
    assert axes.patches[0].facecolor == axes.patches[1].facecolor
    assert axes.patches[0].facecolor != axes.patches[2].facecolor
    assert axes.lines == {"lower bound": 6, "capacity": 10}
    assert axes.limits["x"] == (0, 6)
    assert axes.limits["y"][0] == 0
    assert axes.limits["y"][1] > 10
    assert "3 buffers in 6 B" in axes.limits["title"]


def test_plot_into_given_axes(matplotlib):
    mine = RecordedAxes()
    assert msa.pack([("a", 0, 2, 8)]).plot(mine) is mine
    assert len(mine.patches) == 1
    assert "capacity" not in mine.lines


def test_plot_of_nothing(matplotlib):
    assert msa.pack([]).plot().patches == []


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r"pip install msa\[viz\]") as caught:
        msa.pack([("a", 0, 2, 8)]).plot()
    assert caught.value.subject == "matplotlib"
