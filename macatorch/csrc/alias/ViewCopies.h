#pragma once

#include <c10/core/Storage.h>

#include <atomic>

namespace macatorch {

// Note [Views that are copies]
// A tensor that the layout rule made channels-last cannot always be viewed as upstream's contiguous one. Where somebody
// else holds its storage (autograd, a saved result), the storage cannot be reordered, and the view is a copy.
// Upstream's view shares memory, so a write to either side would have to show in the other. Such a write raises, for as
// long as both storages live; reads cannot tell the difference.

/// Pairs that may be alive; what the hot path looks at.
extern std::atomic<int> view_copies;

/// `copy` was made in place of a view of `viewed`.
void remember_view_copy(const c10::Storage& viewed, const c10::Storage& copy);

/// Raises if `written` belongs to a pair whose other side lives.
void refuse_write_to_view_copy(const c10::StorageImpl* written);

/// Whether `storage` belongs to a pair whose other side lives.
bool has_view_copy(const c10::StorageImpl* storage);

}  // namespace macatorch
