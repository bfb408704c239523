#pragma once

namespace macatorch {

/// The kernel behind torch.cuda._sleep.
void register_sleep();

}  // namespace macatorch
