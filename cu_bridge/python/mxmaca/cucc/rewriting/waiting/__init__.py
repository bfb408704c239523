"""What phases.py knows of a kernel before it goes through its statements.

Note: what is taken
~~~~~~~~~~~~~~~~~~~
No types are known here (expressions.py), so only what is understood in full is taken: everything else is `Unfit`, and
the kernel keeps its threads' stacks. Wanted are: waits as statements of their own, or in loops and `if` whose
conditions are the same for all threads (constants, parameters, block indices); no `return` before the last wait but
those behind such conditions; variables that live across a wait of arithmetic, vector or pointer type; and calls only of
functions that do not wait, which are listed or defined in the same text (callees.py): those that wait have been taken
into the kernel (inlining.py). A block of cooperative groups is one with its `sync`. Shuffles may stand in an `if` that
whole warps take: each loop then asks its condition.
Variables that change may be in such conditions as well, if they are the same for all threads (common.py, loops.py).
An `if` or a loop may ask what the block votes.
"""
