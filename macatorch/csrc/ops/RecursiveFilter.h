#pragma once

namespace macatorch {

/// The kernel behind torchaudio's lfilter, which chooses it by the tensor's device without the dispatcher.
void register_recursive_filter();

}  // namespace macatorch
