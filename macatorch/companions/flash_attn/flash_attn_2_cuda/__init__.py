"""The extension module behind the package flash_attn, on the simulated device.

Names, arguments and results are those of upstream's module of this name (flash_attn 2.7 and 2.8). Tensors are float16
or bfloat16 on the device; heads come after positions. A mask that depends on places is aligned at the ends: the last
query stands at the last key. Every function raises RuntimeError with upstream's words for arguments that it does not
take. ``gen`` is a generator of the device, or None for the default one.
"""

import torch

if getattr(torch.version, "maca", None) is None:
    raise ImportError(
        "flash_attn_2_cuda: this package computes on the simulated device of torch's +maca wheels, and this torch is "
        f"{torch.__version__}. Install flash_attn without the label +maca, or torch with it."
    )

from .api import bwd, fwd, fwd_kvcache, varlen_bwd, varlen_fwd

__all__ = ["bwd", "fwd", "fwd_kvcache", "varlen_bwd", "varlen_fwd"]
