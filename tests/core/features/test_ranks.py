"""Which parts are whose: --shard, RANK and WORLD_SIZE; every part is one shard's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.features.ranks import Shard, choose_shard
from pttool.errors import UsageError


@given(st.integers(1, 9), st.integers(0, 50))
def test_part_k_is_the_shard_k_mod_n(count: int, parts: int) -> None:
    shards = [choose_shard(f"{number}/{count}", {}) for number in range(count)]
    owned = [shard.own(range(parts)) for shard in shards]
    assert sorted(part for own in owned for part in own) == list(range(parts))
    assert all(part % count == number for number, own in enumerate(owned) for part in own)


def test_torchrun_says_it_by_rank_and_world_size() -> None:
    assert choose_shard(None, {"RANK": "1", "WORLD_SIZE": "4"}) == Shard(1, 4, is_rank=True)
    assert choose_shard(None, {"RANK": "0", "WORLD_SIZE": "1"}) == Shard()
    assert choose_shard("0/2", {"RANK": "0", "WORLD_SIZE": "1"}) == Shard(0, 2)
    assert choose_shard(None, {"WORLD_SIZE": "4"}) == Shard()


@pytest.mark.parametrize("text", ["", "1", "4/4", "0/0", "a/2", "-1/2", "1/2/3", "0.5/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no shard"):
        choose_shard(text, {})


def test_a_rank_that_is_none_and_two_ways_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="name no rank"):
        choose_shard(None, {"RANK": "4", "WORLD_SIZE": "4"})
    with pytest.raises(UsageError, match="name no rank"):
        choose_shard(None, {"RANK": "x", "WORLD_SIZE": "4"})
    with pytest.raises(UsageError, match="already say"):
        choose_shard("0/2", {"RANK": "0", "WORLD_SIZE": "2"})
