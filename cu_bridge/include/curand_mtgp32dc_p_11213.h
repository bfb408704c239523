// cuRAND's MTGP32 has no counterpart here: its 200 sets of parameters cannot be derived.
#pragma once

#error \
    "MTGP32's parameters: this generator of cuRAND is not part of the MXMACA SDK; use XORWOW, Philox, MRG32k3a or Sobol"
