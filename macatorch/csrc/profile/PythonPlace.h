#pragma once

namespace macatorch {

/// Lets the runtime's reports name lines of Python (MACA_ASYNC=late). Nothing where Python is not the program.
void register_python_place();

}  // namespace macatorch
