"""Gradients of one forward operator, seen from hooks on its nodes of the autograd graph.

Note [Hooks on nodes]
Identity nodes around an operator, as torch's full backward hooks insert them, would change the graph: views could no
longer be written in place and gradients would arrive in another order. Here nothing is inserted. From the outputs'
grad_fn the graph is walked back until an edge leads to what fed the operator (known from before the call). Hooks on the
nodes found see the gradient of every output and the operator's own contribution to the gradient of every input, which
a hook on the input tensor could not: that one sees the sum over all users of the tensor.
"""

from typing import Any, Dict, List, Optional, Tuple

_MAX_NODES = 2000


class Boundary:
    """What the graph looked like before an operator ran; made just before the call and dropped after it."""

    def __init__(self, inputs: List[Tuple[str, Any]]) -> None:
        self._leaves: Dict[int, str] = {}
        self._edges: Dict[Tuple[int, int], str] = {}
        self._nodes: List[Any] = []
        for path, tensor in inputs:
            if not tensor.requires_grad:
                continue
            node = tensor.grad_fn
            if node is None:
                self._leaves.setdefault(id(tensor), path)
            else:
                # Holding the node keeps its id unique for the life of the boundary.
                self._nodes.append(node)
                self._edges.setdefault((id(node), tensor.output_nr), path)
        self._node_ids = {id(node) for node in self._nodes}

    def empty(self) -> bool:
        return not self._leaves and not self._edges

    def input_at(self, node: Any, number: int) -> Optional[str]:
        path = self._edges.get((id(node), number))
        if path is None and self._leaves:
            variable = getattr(node, "variable", None)
            if variable is not None:
                path = self._leaves.get(id(variable))
        return path

    def has_node(self, node: Any) -> bool:
        return id(node) in self._node_ids

    def nodes_of(self, outputs: List[Tuple[str, Any]]) -> "List[Found]":
        """The nodes to hook: those that make the outputs and those with an edge to an input."""
        roots: Dict[int, Found] = {}
        stack: List[Any] = []
        path: Optional[str]
        for path, tensor in outputs:
            node = tensor.grad_fn if tensor.requires_grad else None
            if node is None or self.input_at(node, tensor.output_nr) is not None:
                continue
            if id(node) not in roots:
                roots[id(node)] = Found(node)
                stack.append(node)
            roots[id(node)].outputs.append((path, tensor.output_nr))
        seen = dict.fromkeys(roots)
        keep = list(stack)
        found = dict(roots)
        while stack and len(seen) < _MAX_NODES:
            node = stack.pop()
            for edge, (following, number) in enumerate(node.next_functions):
                if following is None:
                    continue
                path = self.input_at(following, number)
                if path is not None:
                    found.setdefault(id(node), Found(node)).inputs.append((path, edge))
                elif not self.has_node(following) and id(following) not in seen and not hasattr(following, "variable"):
                    seen[id(following)] = None
                    keep.append(following)
                    stack.append(following)
        return list(found.values())


class Found:
    """A node, the outputs of the operator that it makes and its edges that lead to inputs of the operator."""

    __slots__ = ("node", "outputs", "inputs")

    def __init__(self, node: Any) -> None:
        self.node = node
        self.outputs: List[Tuple[str, int]] = []
        self.inputs: List[Tuple[str, int]] = []
