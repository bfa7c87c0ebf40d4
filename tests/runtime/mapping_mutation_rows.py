"""Faults put into multicast, look-up and acquisition, and the tests that notice.

Rows as in `collective_mutation_rows`.
"""

from __future__ import annotations

from msa.runtime.collective import Kind
from runtime.collective_mutation_rows import WORLD, Row

_C = "msa.runtime.collective."
_BUF = f"{_C}allocations:BufferAllocations."
_MC = f"{_C}multicast:MulticastMemory."
_CM = f"{_C}memory:CollectiveMemory."
_ACQ = f"{_C}acquire:"
_CACHE = f"{_C}cache:CollectiveMemoryCache."
_SPACE = f"{_C}devices:AddressSpace."
_KERNEL = f"{_C}kernels:"

MULTICAST: list[Row] = [
    (
        "E1 subscribe twice",
        f"{_MC}subscribe",
        "if device in self._subscribed:",
        "if False:",
        "test_double_subscription_E1",
        (WORLD,),
    ),
    (
        "E2 map before all are there",
        f"{_MC}map",
        "if len(self._subscribed) < self.num_devices:",
        "if False:",
        "test_map_before_all_subscribed_E2",
        (WORLD,),
    ),
    (
        "E3 subscribe too many",
        f"{_MC}subscribe",
        "if len(self._subscribed) == self.num_devices:",
        "if False:",
        "test_third_subscription_E3",
        (WORLD,),
    ),
    (
        "E4 load from one device",
        f"{_MC}load_reduce",
        "combine(views,",
        "combine(views[:1],",
        "test_load_reduce",
        (WORLD, (0, 0)),
    ),
    (
        "E5 bind anywhere",
        f"{_MC}map",
        "if offset % step:",
        "if False:",
        "test_misaligned_bind_E5",
        (WORLD,),
    ),
    (
        "E6 ignore where the memory is bound",
        f"{_MC}_views",
        "begin = start + offset",
        "begin = offset",
        "test_load_reduce",
        (WORLD, (4096, 0)),
    ),
    (
        "E7 let unknown devices in",
        f"{_C}devices:DeviceWorld.can_access",
        "return False",
        "return True",
        "test_peer_capability_E7",
        (),
    ),
    (
        "E8 multicast over one device",
        f"{_MC}__init__",
        "or num_devices <= 1",
        "or num_devices < 1",
        "test_creation_errors_E8",
        (WORLD,),
    ),
    (
        "E22 free what is bound",
        f"{_C}devices:DeviceWorld.free",
        "if physical.bound:",
        "if False:",
        "test_free_while_bound_E22",
        (WORLD,),
    ),
    (
        "E23 take down from the last device",
        f"{_MC}close",
        "sorted(self._bound)",
        "sorted(self._bound, reverse=True)",
        "test_teardown_order_E23",
        (WORLD,),
    ),
    (
        "E24 forget what was unmapped",
        f"{_SPACE}unmap",
        "self._retired[address] = (entry.size, entry.site)",
        "pass",
        "test_use_after_teardown_E24",
        (WORLD,),
    ),
    (
        "E27 grant everything",
        f"{_SPACE}check_rights",
        "if right is None or (write and not right):",
        "if False:",
        "test_access_needs_a_grant_E27",
        (),
    ),
    (
        "E reduce into one device",
        f"{_MC}reduce",
        "in self._views(offset, kind, count):",
        "in self._views(offset, kind, count)[:1]:",
        "test_operations_against_numpy",
        (WORLD, "i32", "add"),
    ),
    (
        "E25 sum half precision in half precision",
        f"{_C}multicast:_widen",
        'part.astype(np.float32) if dtype == "f16" else part',
        "part",
        "test_half_precision_accumulates_in_single",
        (),
    ),
]

ACQUIRE: list[Row] = [
    (
        "A10 take the index round the table",
        f"{_BUF}address",
        "if not 0 <= where < len(self._addresses):",
        "where %= len(self._addresses)\n    if False:",
        "test_unknown_index_fails_on_every_rank_A10",
        (),
    ),
    (
        "E9 leave the offset of the slice out",
        f"{_CM}find_symmetric",
        "entry[1] + place[1]",
        "entry[1]",
        "test_every_lookup_form_E9",
        (),
    ),
    (
        "E9 give the peer's whole allocation",
        f"{_CM}find_peer",
        "whole.slice(place[1], place[2])",
        "whole",
        "test_every_lookup_form_E9",
        (),
    ),
    (
        "E9 ranks in the wrong order",
        f"{_ACQ}_exchange",
        "part.rank: part",
        "len(ordered) - 1 - part.rank: part",
        "test_every_lookup_form_E9",
        (),
    ),
    (
        "E10 carry the address of this rank to the others",
        f"{_CM}_resolve",
        "what.opaque - base.opaque, what.size",
        "what.opaque, what.size",
        "test_every_lookup_form_E9",
        (),
    ),
    (
        "E11 look in every clique",
        f"{_CM}find_symmetric",
        "self._symmetric.get((clique, place[0]))",
        "next(iter(self._symmetric.values()), None)",
        "test_not_found_is_a_value_E11",
        (),
    ),
    (
        "E12 map peers across processes",
        f"{_ACQ}_Acquisition._enter",
        "if kind is not Kind.SYMMETRIC and not key.is_local:",
        "if False:",
        "test_two_processes_E12",
        (),
    ),
    (
        "E13 name no ranks",
        f"{_C}cliques:CliqueTable._acquire",
        "participants=names",
        "participants=()",
        "test_a_missing_rank_is_named",
        (Kind.PEER,),
    ),
    (
        "E14 let sizes differ",
        f"{_ACQ}_check_sizes",
        "if len(set(sizes.values())) > 1:",
        "if False:",
        "test_sizes_must_agree",
        (Kind.MULTICAST,),
    ),
    (
        "E15 let indices differ",
        f"{_ACQ}_sorted_parts",
        "if part.indices != first.indices:",
        "if False:",
        "test_index_sets_must_agree",
        (Kind.PEER,),
    ),
    (
        "E16 another order on the first rank",
        f"{_ACQ}_Acquisition._enter",
        "self.trace.events.append(",
        "self.trace.events.insert(rank and len(self.trace.events), ",
        "test_random_arrival_orders_never_deadlock_E16",
        (),
    ),
    (
        "E17 never find in the cache",
        f"{_CACHE}find",
        "with self._lock:",
        "return None\n    with self._lock:",
        "test_second_execution_hits_the_cache_E17_E18",
        (),
    ),
    (
        "E17 keep memories of all cliques under one key",
        f"{_CACHE}find",
        "self._entries.get((kind, clique), {})",
        "{a: r for t in self._entries.values() for a, r in t.items()}",
        "test_cliques_do_not_share_cached_windows_E17",
        (),
    ),
    (
        "E18 count nothing as expired",
        f"{_CACHE}_lock_entry",
        "self.stats.expired += 1",
        "pass",
        "test_second_execution_hits_the_cache_E17_E18",
        (),
    ),
    (
        "E19 do not tell of disagreement",
        f"{_ACQ}_Acquisition._vote",
        "self.cache.count(inconsistent=1)",
        "pass",
        "test_ranks_that_disagree_about_hits_E19",
        (),
    ),
    (
        "E20 join nothing",
        f"{_ACQ}plan_runs",
        "touching = rows[i - 1][1].end == rows[i][1].opaque",
        "touching = False",
        "test_merging",
        (0, 0, "adjacent", 1, 0, Kind.SYMMETRIC),
    ),
    (
        "E20 everything at the start of the run",
        f"{_C}merging:_run",
        "a.opaque - base",
        "0",
        "test_merging",
        (0, 0, "adjacent", 1, 0, Kind.MULTICAST),
    ),
    (
        "E21 trust the layouts",
        f"{_ACQ}_same_layout",
        "len(layouts) == 1",
        "True",
        "test_merging",
        (4096, 4096, "span", 3, 1, Kind.SYMMETRIC),
    ),
    (
        "E25 every rank reduces the first share",
        f"{_KERNEL}_share",
        "total * number // parts, total * (number + 1) // parts",
        "0, total // parts",
        "test_all_reduce_E25",
        ("i32", 7),
    ),
    (
        "E25 store to one device",
        f"{_MC}store",
        "in self._views(offset, kind, count):",
        "in self._views(offset, kind, count)[:1]:",
        "test_the_other_collectives",
        (),
    ),
    (
        "E25 drop the barrier before the result is written",
        f"{_KERNEL}all_reduce_peer",
        "total = combine(parts, dtype, operation)\n    context.barrier()",
        "total = combine(parts, dtype, operation)",
        "test_no_rank_writes_before_all_have_read_E25",
        (),
    ),
    (
        "E26 meet though nothing was asked for",
        "collective_support:execute_stages",
        "if cliques:",
        "if True:",
        "test_nothing_requested_E26",
        (),
    ),
]

POOL: list[Row] = [
    (
        "E28 accept different offsets",
        f"{_C}symmetric:_make_window",
        "if clique.require_symmetric_offsets and len(set(offsets.values())) > 1:",
        "if False:",
        "test_another_order_on_one_rank_is_refused_E28",
        (),
    ),
]

FILES: dict[str, list[Row]] = {
    "collective/test_multicast.py": MULTICAST,
    "collective/test_acquire.py": ACQUIRE,
    "collective/test_symmetric_pool.py": POOL,
}
