"""Faults put into requests, meetings and ties, and the tests that have to notice.

A row is the acceptance row with the fault in words, the function, its text and what
the fault makes of it, and the test with its arguments (`WORLD` makes the fixture).
"""

from __future__ import annotations

from typing import Any

from msa.runtime.collective import Kind

Row = tuple[str, str, str, str, str, tuple[Any, ...]]
WORLD = "a world of four devices"

_C = "msa.runtime.collective."
_ASK = f"{_C}requests:CollectiveMemoryRequests."
_KEY = f"{_C}clique:CliqueKey."
_BUF = f"{_C}allocations:BufferAllocations."
_MEET = f"{_C}rendezvous:Rendezvous."
_REF = f"{_C}tied:TiedRef."

REQUESTS: list[Row] = [
    (
        "A1 visit small cliques first",
        f"{_ASK}ordered",
        "-len(r.clique.devices)",
        "len(r.clique.devices)",
        "test_order_and_ids",
        (Kind.SYMMETRIC,),
    ),
    (
        "A2 number the last request first",
        f"{_ASK}request",
        "(len(table), set())",
        "(-len(table), set())",
        "test_order_and_ids",
        (Kind.MULTICAST,),
    ),
    (
        "A3 take every address for the first buffer",
        f"{_ASK}_index",
        "return index",
        "return 0",
        "test_plural_addresses_share_an_entry_A4",
        (),
    ),
    (
        "A5 record what no buffer contains",
        f"{_ASK}_index",
        "if index is None:",
        "if False:",
        "test_address_outside_records_nothing_A5",
        (),
    ),
    (
        "A6 keep repeats",
        f"{_ASK}request",
        ".add(index)",
        ".add((index, len(table[clique][1])))",
        "test_repeats_collapse_A6",
        (),
    ),
    (
        "A7 know cliques by their devices",
        f"{_ASK}request",
        "index = self._index(what)",
        "index, clique = self._index(what), CliqueKey.local(*clique.devices)",
        "test_communication_ids_separate_A7",
        (),
    ),
    (
        "A8 order by hash",
        f"{_ASK}ordered",
        "r.id)",
        "hash(r.clique))",
        "test_order_never_depends_on_hashing",
        (0,),
    ),
    (
        "A9 forget peer cliques",
        f"{_ASK}requested_cliques",
        "list(self._first)",
        "[c for c in self._first if c not in self._tables[Kind.PEER]]",
        "test_peer_cliques_are_listed_A9",
        (),
    ),
    (
        "B1 ignore communication ids",
        f"{_KEY}is_subset_of",
        "self.communication_id == other.communication_id",
        "True",
        "test_subsets_B1_B2",
        (),
    ),
    (
        "B2 ignore incarnations",
        f"{_KEY}is_subset_of",
        "set(self.incarnations) <= set(other.incarnations)",
        "True",
        "test_subsets_B1_B2",
        (),
    ),
    (
        "B3 cut the clique unevenly",
        f"{_KEY}root_devices",
        "r * (q + 1) + (i - r) * q",
        "i * q",
        "test_roots",
        (3, (0, 2, 3)),
    ),
    (
        "B4 order by devices alone",
        f"{_KEY}_order",
        "len(self.devices),",
        "0,",
        "test_total_order_B4",
        (),
    ),
    (
        "B5 count ranks from one",
        f"{_KEY}rank",
        ".index(device)",
        ".index(device) + 1",
        "test_ranks_B5",
        (),
    ),
    (
        "B6 never shorten",
        f"{_KEY}__str__",
        "len(ids) > 10",
        "False",
        "test_text_B6",
        (),
    ),
    (
        "B7 leave the communication id out of the order",
        f"{_KEY}_order",
        "self.communication_id,",
        "0,",
        "test_communication_id_orders_B7",
        (),
    ),
    (
        "B8 count the end in",
        f"{_BUF}find_index",
        "< base.end",
        "<= base.end",
        "test_find_index",
        (4096 + 64, None),
    ),
    (
        "B9 take the last buffer",
        f"{_BUF}find_index",
        "enumerate(self._addresses)",
        "reversed([*enumerate(self._addresses)])",
        "test_first_of_overlapping_buffers_wins_B9",
        (),
    ),
    (
        "B10 stop at the first failure",
        f"{_BUF}tear_down",
        "first = first or error",
        "raise",
        "test_tear_down_attempts_every_free_B10",
        (),
    ),
]

RENDEZVOUS: list[Row] = [
    (
        "C1 give one participant its own value",
        f"{_MEET}join",
        "return function([value])",
        "return value",
        "test_one_participant_C1",
        (),
    ),
    (
        "C2 compute twice",
        f"{_MEET}_lead",
        "result = function(state.values)",
        "result = (function(state.values), function(state.values))[1]",
        "test_two_share_one_object_C2",
        (),
    ),
    (
        "C3 lose the values",
        f"{_MEET}_arrive",
        "state.values.append(value)",
        "state.values.append(0)",
        "test_values_reach_the_function_C3",
        (),
    ),
    (
        "C4 never free the key",
        f"{_MEET}_lead",
        "self._running.pop(place, None)",
        "pass",
        "test_rounds_under_one_key",
        (True,),
    ),
    (
        "C5 never free the key, without outer waits",
        f"{_MEET}_lead",
        "self._running.pop(place, None)",
        "pass",
        "test_rounds_under_one_key",
        (False,),
    ),
    (
        "C6 tell only the leader of a failure",
        f"{_MEET}_lead",
        "= result, error, True",
        "= result, None, True",
        "test_failure_reaches_everyone_C6",
        (),
    ),
    (
        "C7 never complete the flag",
        f"{_C}rendezvous:RendezvousFlag.leave",
        "self._completed = True",
        "pass",
        "test_flag_with_many_keys_C8",
        (),
    ),
    (
        "C9 name nobody",
        f"{_MEET}_timeout",
        "tuple(p for p in participants if p not in arrived)",
        "()",
        "test_missing_participant_is_named_and_state_is_clean_C9_C12",
        (),
    ),
    (
        "C10 blame the missing where all have come",
        f"{_MEET}_timeout",
        "everyone_arrived=len(arrived) >= state.expected",
        "everyone_arrived=False",
        "test_late_leader_times_waiters_out_C10",
        (),
    ),
    (
        "C11 leave the false alarm standing",
        f"{_MEET}_wait",
        "self._record(state, name, number, begin, resolved=True)",
        "pass",
        "test_false_alarm_C11",
        (),
    ),
    (
        "C12 keep the poisoned state",
        f"{_MEET}_wait",
        "if last:",
        "if False:",
        "test_missing_participant_is_named_and_state_is_clean_C9_C12",
        (),
    ),
    (
        "C14 leave the last value out",
        f"{_MEET}_lead",
        "function(state.values)",
        "function(state.values[:-1])",
        "test_groups_with_random_delays_C14",
        (),
    ),
    (
        "C one domain for all",
        f"{_MEET}join",
        "place = (domain, key)",
        'place = ("", key)',
        "test_domains_do_not_meet",
        (),
    ),
    (
        "C13 raise an untyped error",
        f"{_MEET}_arrive",
        'raise RendezvousError(\n                f"{who} arrived',
        'raise KeyError(\n                f"{who} arrived',
        "test_extra_arrival_C13",
        (),
    ),
]

TIED: list[Row] = [
    (
        "D1 never hold",
        f"{_C}tied:_Cell.hold",
        "return True",
        "return False",
        "test_lock_works_while_the_container_lives_D1",
        (),
    ),
    (
        "D2 keep the values of a closed container",
        f"{_C}tied:TiedContainer.close",
        "cell.let_go()",
        "pass",
        "test_closing_the_container_expires_D2",
        (),
    ),
    (
        "D3 keep the value of a closed reference",
        f"{_REF}close",
        "cell.let_go()",
        "pass",
        "test_closing_the_reference_destroys_at_once_D3",
        (),
    ),
    (
        "D4 close all together",
        f"{_REF}close",
        "cell.let_go()",
        "container.close()",
        "test_references_are_independent_D4",
        (),
    ),
    (
        "D5 never expire",
        f"{_REF}expired",
        "not container._holds(cell)",
        "False",
        "test_a_new_container_gives_new_references_D5",
        (),
    ),
    (
        "D6 destroy what is moved out",
        f"{_REF}untie",
        "return Strong(cell)",
        "return cell.let_go() or Strong(cell)",
        "test_untie_moves_the_value_out_D6",
        (),
    ),
    (
        "D7 untie what has expired",
        f"{_REF}untie",
        "or not container._drop(cell)",
        "or container._drop(cell) is None",
        "test_nothing_to_untie_D7",
        (),
    ),
    (
        "D8 keep all when the container closes",
        f"{_C}tied:TiedContainer.close",
        "cells, self._cells = self._cells, {}",
        "cells = dict(self._cells)",
        "test_types_share_a_container_D8",
        (),
    ),
]

FILES: dict[str, list[Row]] = {
    "collective/test_requests.py": REQUESTS,
    "collective/test_rendezvous.py": RENDEZVOUS,
    "collective/test_tied.py": TIED,
}
