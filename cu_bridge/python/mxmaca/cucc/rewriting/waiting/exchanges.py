"""What the lanes of warps and of tiles exchange between two loops over the threads."""

from typing import Callable, NamedTuple

from ..expressions import Tokens
from ..waits import OF_VOTES, REDUCTIONS, Shuffle


class Exchange(NamedTuple):
    """The statement that gives a lane's value, one that all then do in a loop of its own, and what the value is."""

    put: str
    between: str
    taken: str


def exchange(shuffle: Shuffle, lanes: str, value: str, spell: Callable[[Tokens], str]) -> Exchange:
    """A shuffle or a vote by an array of that name."""
    if shuffle.kind in OF_VOTES:
        put = f"::mxmaca::put_vote({lanes}, __mxmaca_thread, {value});"
        return Exchange(put, "", f"::mxmaca::lane_{shuffle.kind}({lanes}, __mxmaca_thread)")
    of_tile = shuffle.call[0].text.startswith("__tile_")
    call = f"decltype(::mxmaca::lane_value({value}))" if of_tile else f"decltype({spell(shuffle.call)})"
    put = f"::mxmaca::put_lane<{call}>({lanes}, __mxmaca_thread, {value});"
    width = spell(shuffle.width) if shuffle.width else "32"
    kind, lane, between = shuffle.kind, spell(shuffle.lane), ""
    if kind in REDUCTIONS:
        # The last thread of a tile does it for all.
        operation = f"::cooperative_groups::{kind}<>()"
        between = f" ::mxmaca::reduce_lanes<{call}>({lanes}, __mxmaca_thread, {width}, {operation});"
        kind, lane = "index", "0"
    return Exchange(put, between, f"::mxmaca::lane_{kind}<{call}>({lanes}, __mxmaca_thread, {lane}, {width})")
