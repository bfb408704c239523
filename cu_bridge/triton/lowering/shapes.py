"""Tiles that are put together from others in memory: cat, and the one element of unsplat."""

from .ir import Operation
from .lanes import ZERO
from .tiles import Buffer, Tiles


class Shapes(Tiles):
    """tt.cat and tt.unsplat."""

    def concatenate(self, operation: Operation) -> None:
        """One tile after the other along dimension 0."""
        result = operation.results[0]
        buffer = self.new_buffer(result.type)
        offset = 0
        for operand in operation.operands:
            size = offset * result.type.bytes
            pointer = self.b.emit(f"getelementptr i8, ptr {buffer.pointer}, i64 {size}")
            self.keep(operand, Buffer(pointer, operand.type))
            offset += operand.type.count
        self.buffers[result] = buffer

    def unsplat(self, operation: Operation) -> None:
        """The one element of a tile."""
        operand = operation.operands[0]
        with self.lanes_of(1):
            self.b.level.memo.clear()
            self.scalars[operation.results[0]] = self.element(operand, tuple(ZERO for _ in operand.type.shape)).scalar
