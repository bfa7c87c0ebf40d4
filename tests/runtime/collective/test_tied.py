from __future__ import annotations

import pytest

from msa.errors import InternalError
from msa.runtime.collective import TiedContainer, TiedRef


def test_lock_works_while_the_container_lives_D1() -> None:
    with TiedContainer().tie([1]) as ref, ref.lock() as strong:  # type: ignore[union-attr]
        assert strong.value == [1]
        assert not ref.expired


def test_closing_the_container_expires_D2() -> None:
    box, destroyed = TiedContainer(), []
    ref = box.tie("a", destroyed.append)
    box.close()
    assert ref.expired
    assert ref.lock() is None
    assert destroyed == ["a"]


def test_closing_the_reference_destroys_at_once_D3() -> None:
    box, destroyed = TiedContainer(), []
    ref = box.tie("a", destroyed.append)
    ref.close()
    ref.close()
    assert destroyed == ["a"]
    assert len(box) == 0


def test_references_are_independent_D4() -> None:
    box = TiedContainer()
    a, b = box.tie("a"), box.tie("b")
    a.close()
    assert a.lock() is None
    assert b.lock().value == "b"  # type: ignore[union-attr]


def test_a_new_container_gives_new_references_D5() -> None:
    box = TiedContainer()
    old = box.tie("a")
    box.close()
    box = TiedContainer()
    new = box.tie("b")
    assert old.expired
    assert new.lock().value == "b"  # type: ignore[union-attr]


def test_untie_moves_the_value_out_D6() -> None:
    box, destroyed = TiedContainer(), []
    ref = box.tie("a", destroyed.append)
    mine = ref.untie()
    assert mine is not None
    assert ref.expired
    box.close()
    assert destroyed == []
    assert mine.value == "a"
    mine.close()
    mine.close()
    assert destroyed == ["a"]
    with pytest.raises(InternalError):
        _ = mine.value


def test_nothing_to_untie_D7() -> None:
    box = TiedContainer()
    ref = box.tie("a")
    box.close()
    assert ref.untie() is None
    assert TiedRef().untie() is None
    assert box.tie("late").expired
    assert TiedContainer().tie(None).expired


def test_types_share_a_container_D8() -> None:
    box = TiedContainer()
    number, text = box.tie(1), box.tie("a")
    box.close()
    assert number.expired
    assert text.expired


def test_a_strong_reference_outlives_both() -> None:
    box, destroyed = TiedContainer(), []
    ref = box.tie("a", destroyed.append)
    strong = ref.lock()
    assert strong is not None
    ref.close()
    box.close()
    assert destroyed == []
    strong.close()
    assert destroyed == ["a"]


def test_assign_releases_the_old_value() -> None:
    box, destroyed = TiedContainer(), []
    a, b = box.tie("a", destroyed.append), box.tie("b", destroyed.append)
    a.assign(b)
    assert destroyed == ["a"]
    assert b.expired
    assert a.lock().value == "b"  # type: ignore[union-attr]
