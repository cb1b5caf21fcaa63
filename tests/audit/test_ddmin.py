"""Delta debugging."""

from hypothesis import given
from hypothesis import strategies as st

from resume_audit.ddmin import BudgetError, ddmin


@given(size=st.integers(1, 20), data=st.data())
def test_the_needed_items_are_what_is_left(size: int, data: st.DataObject) -> None:
    """Where a fixed set of items is needed, just that set is left."""
    needed = frozenset(data.draw(st.sets(st.integers(0, size - 1))))

    assert frozenset(ddmin(list(range(size)), lambda items: needed <= items)) == needed


@given(size=st.integers(2, 12), data=st.data())
def test_no_single_item_of_the_result_can_be_left_out(size: int, data: st.DataObject) -> None:
    """Where one of several sets is enough, the result is enough and minimal."""
    ways = data.draw(st.lists(st.frozensets(st.integers(0, size - 1), min_size=1), min_size=1, max_size=3))

    def enough(items: frozenset[int]) -> bool:
        return any(way <= items for way in ways)

    left = frozenset(ddmin(list(range(size)), enough)) if enough(frozenset(range(size))) else frozenset()

    assert not left or enough(left)
    assert not any(enough(left - {item}) for item in left)


def test_a_used_up_budget_leaves_what_was_found() -> None:
    """When no more tests may be made, the smallest set that was found is returned."""

    def enough(items: frozenset[int]) -> bool:
        if len(items) == 4:
            raise BudgetError
        return 0 in items

    assert 0 in ddmin(list(range(16)), enough)
