"""The LLVM text that makes a compiled kernel a module of the simulated device.

The compiler defines one function for a kernel, which computes one program (one block of the grid)::

    define internal void @"NAME.program"(ptr %arguments, i32 %grid_x, i32 %grid_y, i32 %grid_z,
                                         i32 %pid_x, i32 %pid_y, i32 %pid_z, ptr %scratch)

``arguments[i]`` points at the value of parameter ``i``; ``scratch`` at memory for tiles. ``chunk_text`` adds what the
runtime calls, the loop over the programs that a worker is to run, and ``table_text`` what it reads, the table of
kernels. Both follow ``mc_kernel.h`` of the SDK: the layout of ``mcKernelContext``, and the ``mcModuleTable`` under the
name ``mxmaca.module``. The table may be added after the optimisation.
"""

from typing import Sequence

TABLE_VERSION = 3
# The largest alignment that a parameter of a kernel has.
MOST_ALIGNMENT = 16

# Offsets in mcKernelContext.
_CHUNK = """
declare ptr @mcKernelEnter()
{declarations}
define void @"{name}.chunk"() {{
entry:
  %context = call ptr @mcKernelEnter()
  %first_place = getelementptr i8, ptr %context, i64 56
  %first = load i32, ptr %first_place
  %runs = icmp eq i32 %first, 0
  br i1 %runs, label %start, label %end
start:
  %arguments = load ptr, ptr %context
  %grid_place = getelementptr i8, ptr %context, i64 8
  %grid = load [3 x i32], ptr %grid_place
  %grid_x = extractvalue [3 x i32] %grid, 0
  %grid_y = extractvalue [3 x i32] %grid, 1
  %grid_z = extractvalue [3 x i32] %grid, 2
  %block_place = getelementptr i8, ptr %context, i64 32
  %block = load [3 x i32], ptr %block_place
  %first_x = extractvalue [3 x i32] %block, 0
  %first_y = extractvalue [3 x i32] %block, 1
  %first_z = extractvalue [3 x i32] %block, 2
  %count_place = getelementptr i8, ptr %context, i64 48
  %count = load i64, ptr %count_place
{scratch}  br label %program
program:
  %left = phi i64 [ %count, %start ], [ %less, %next ]
  %x = phi i32 [ %first_x, %start ], [ %next_x, %next ]
  %y = phi i32 [ %first_y, %start ], [ %next_y, %next ]
  %z = phi i32 [ %first_z, %start ], [ %next_z, %next ]
  call void @"{name}.program"(
      ptr %arguments, i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %x, i32 %y, i32 %z,
      ptr {memory})
  %less = sub i64 %left, 1
  %done = icmp eq i64 %less, 0
  br i1 %done, label %end, label %next
next:
  %more_x = add i32 %x, 1
  %row_ends = icmp eq i32 %more_x, %grid_x
  %next_x = select i1 %row_ends, i32 0, i32 %more_x
  %carry_y = zext i1 %row_ends to i32
  %more_y = add i32 %y, %carry_y
  %plane_ends = icmp eq i32 %more_y, %grid_y
  %next_y = select i1 %plane_ends, i32 0, i32 %more_y
  %carry_z = zext i1 %plane_ends to i32
  %next_z = add i32 %z, %carry_z
  ; where a failure says that it happened
  %block_y = getelementptr i8, ptr %context, i64 36
  %block_z = getelementptr i8, ptr %context, i64 40
  store i32 %next_x, ptr %block_place
  store i32 %next_y, ptr %block_y
  store i32 %next_z, ptr %block_z
  br label %program
end:
  ret void
}}
"""

_TABLE = """
@"{name}.name" = internal constant [{name_bytes} x i8] c"{name}\\00"
@"{name}.facts" = internal constant [{fact_count} x i32] [{facts}]
@"{name}.shared" = internal constant [1 x i64] [i64 {static_shared}]
@"{name}.kernels" = internal constant {{ ptr, ptr, ptr, ptr }} {{ ptr @"{name}.chunk", ptr @"{name}.chunk",
    ptr @"{name}.name", ptr @"{name}.facts" }}
@"mxmaca.module" = constant {{ i64, i64, ptr, i64, ptr, ptr }} {{ i64 {version}, i64 1, ptr @"{name}.kernels",
    i64 0, ptr null, ptr @"{name}.shared" }}
"""


def _checked(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(f"'{name}' is no name of a kernel")
    return name


def chunk_text(name: str, scratch_bytes: int = 0) -> str:
    """Return the LLVM text of ``@"NAME.chunk"``, which runs ``@"NAME.program"`` for a chunk of the grid.

    :param name: the kernel's name.
    :param scratch_bytes: how much memory a program needs for its tiles; 0 gives it a null pointer.
    """
    return _CHUNK.format(
        name=_checked(name),
        declarations="declare ptr @mcKernelScratch(i64)" if scratch_bytes else "",
        scratch=f"  %scratch = call ptr @mcKernelScratch(i64 {scratch_bytes})\n" if scratch_bytes else "",
        memory="%scratch" if scratch_bytes else "null",
    )


def table_text(name: str, parameters: Sequence[int], static_shared: int = 0, work: int = 1) -> str:
    """Return the LLVM text of the table that names ``@"NAME.chunk"`` to the runtime.

    :param name: the kernel's name, as ``cuModuleGetFunction`` looks it up.
    :param parameters: the size in bytes of each parameter, in order.
    :param static_shared: bytes of shared memory that the kernel is to be accounted for.
    :param work: about how many elements a program computes for each thread that its launch names; with it the runtime
        decides whether a grid is worth several workers.
    """
    if any(size <= 0 for size in parameters):
        raise ValueError(f"sizes of parameters are positive, not {list(parameters)}")
    facts = [0, work]
    for size in parameters:
        alignment = size & -size
        facts += [size, min(alignment, MOST_ALIGNMENT)]
    facts += [0, 0]
    return _TABLE.format(
        name=_checked(name),
        name_bytes=len(name.encode()) + 1,
        fact_count=len(facts),
        facts=", ".join(f"i32 {fact}" for fact in facts),
        static_shared=static_shared,
        version=TABLE_VERSION,
    )
