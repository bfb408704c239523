#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace macatorch {

/// While it lives, a function of ours may draw inside of vmap. What vmap says of random operators it has said of the
/// one that is being computed; CUDA's kernels draw for themselves and ask nobody.
class DrawsInside {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{
      c10::DispatchKeySet({c10::DispatchKey::VmapMode, c10::DispatchKey::FuncTorchVmapMode})};
};

}  // namespace macatorch
