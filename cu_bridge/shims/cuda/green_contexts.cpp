// Green contexts: contexts of a part of a device's multiprocessors, which the runtime keeps (Note [Parts] there).
//
// A resource is the caller's memory. What it stands for lies in its reserved bytes, so that one that nobody has made,
// or that was changed, is known for it. Workqueues, events of whole contexts and limits of clusters are not there.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "contexts.h"
#include "handle_table.h"

struct CUdevResourceDesc_st {
  int device;
  unsigned int multiprocessors;
};

struct CUgreenCtx_st {
  CUcontext context;
  CUdevResource resource;
  unsigned int part;
};

namespace {

// Of devices of compute capability 8.x.
constexpr unsigned int kSmallest = 4, kAlignment = 2;

// The multiprocessors that a resource stands for, in its reserved bytes.
struct Range {
  uint64_t mark;
  uint64_t split;  // parts of one split can be put together again
  int32_t device;
  uint32_t first, count;
};
constexpr uint64_t kMark = 0x6d78'6d61'6361'736d;

mc::HandleTable<CUdevResourceDesc_st> descriptions;
mc::HandleTable<CUgreenCtx_st> greens;

// What is found by number. Never destroyed: threads may outlive static objects.
struct Found {
  std::mutex mutex;
  std::map<std::pair<int, unsigned int>, CUdevResourceDesc> descriptions;  // one for all that say the same
  std::map<unsigned int, CUgreenCtx> byPart;
  uint64_t splits = 0;
};
Found& found() {
  static auto* const all = new Found;
  return *all;
}

void write(CUdevResource* resource, uint64_t split, int device, uint32_t first, uint32_t count) {
  const Range range{kMark, split, device, first, count};
  static_assert(sizeof range <= sizeof resource->_internal_padding, "it fits");
  *resource = {};
  resource->type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource->_internal_padding, &range, sizeof range);
  resource->sm.smCount = count;
#if MXMACA_CUDA_MAJOR >= 13
  resource->sm.minSmPartitionSize = kSmallest;
  resource->sm.smCoscheduledAlignment = kAlignment;
#endif
}

CUresult read(const CUdevResource* resource, Range* range) {
  RETURN_IF_NULL(resource);
  if (resource->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  std::memcpy(range, resource->_internal_padding, sizeof *range);
  const bool known = range->mark == kMark && range->count != 0 && resource->sm.smCount == range->count;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

CUresult whole(CUdevResource* resource, int device) {
  mcDeviceProperties properties;
  RETURN_IF_WRONG(mcGetDeviceProperties(&properties, device));
  write(resource, 0, device, 0, static_cast<uint32_t>(properties.multiprocessors));
  return CUDA_SUCCESS;
}

CUresult checkType(CUdevResourceType type) {
  return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

#define RETURN_IF_FAILED(call)                   \
  do {                                           \
    const CUresult failed_ = (call);             \
    if (failed_ != CUDA_SUCCESS) return failed_; \
  } while (0)

CUresult createGreen(CUgreenCtx* context, int device, unsigned int multiprocessors) {
  CUgreenCtx green = nullptr;
  unsigned int part = 0;
  RETURN_IF_WRONG(mcPartCreate(&part, device, multiprocessors));
  CUcontext behind = nullptr;
  CUresult error = createPart(&behind, device, part);
  if (error == CUDA_SUCCESS) {
    try {
      green = greens.create();
      const std::lock_guard<std::mutex> lock(found().mutex);
      found().byPart[part] = green;
    } catch (const std::bad_alloc&) {
      greens.destroy(green);
      destroyPart(behind);
      error = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  if (error != CUDA_SUCCESS) {
    mcPartDestroy(part);
    return error;
  }
  green->context = behind;
  green->part = part;
  write(&green->resource, 0, device, 0, multiprocessors);
  *context = green;
  return CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  RETURN_IF_NULL(resource);
  RETURN_IF_WRONG(checkDevice(device));
  RETURN_IF_FAILED(checkType(type));
  return whole(resource, device);
}

CUresult cuCtxGetDevResource(CUcontext context, CUdevResource* resource, CUdevResourceType type) {
  int device = 0;
  unsigned int part = 0;
  RETURN_IF_NULL(resource);
  if (!isContext(context, &device, &part)) return CUDA_ERROR_INVALID_CONTEXT;
  RETURN_IF_FAILED(checkType(type));
  if (part == 0) return whole(resource, device);
  const std::lock_guard<std::mutex> lock(found().mutex);
  const auto green = found().byPart.find(part);
  if (green == found().byPart.end()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *resource = green->second->resource;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource* resource, CUdevResourceType type) {
  RETURN_IF_NULL(resource);
  if (!greens.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  RETURN_IF_FAILED(checkType(type));
  *resource = context->resource;
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* target, unsigned int* groups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned int flags, unsigned int minimum) {
  constexpr unsigned int kFlags = 3;  // about clusters, of which the device has none
  Range range{};
  RETURN_IF_NULL(groups);
  RETURN_IF_FAILED(read(input, &range));
  RETURN_IF_WRONG(checkFlags(flags, kFlags));
  if (minimum > range.count) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned int each = (std::max(minimum, kSmallest) + kAlignment - 1) / kAlignment * kAlignment;
  const unsigned int possible = range.count / each;
  if (target == nullptr) {  // a question
    *groups = possible;
    return CUDA_SUCCESS;
  }
  if (*groups == 0) return CUDA_ERROR_INVALID_VALUE;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *groups = std::min(*groups, possible);
  uint64_t split = 0;
  {
    const std::lock_guard<std::mutex> lock(found().mutex);
    split = ++found().splits;
  }
  for (unsigned int i = 0; i < *groups; ++i) write(&target[i], split, range.device, range.first + i * each, each);
  const unsigned int used = *groups * each;
  if (remaining != nullptr) {
    *remaining = {};
    if (used < range.count) write(remaining, split, range.device, range.first + used, range.count - used);
  }
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* desc, CUdevResource* resources, unsigned int count) {
  RETURN_IF_NULL(desc);
  RETURN_IF_NULL(resources);
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  Range all{};
  for (unsigned int i = 0; i < count; ++i) {
    Range range{};
    RETURN_IF_FAILED(read(&resources[i], &range));
    if (i == 0) {
      all = range;
      continue;
    }
    // Of one split, and none twice.
    bool fits = range.split == all.split && range.device == all.device;
    for (unsigned int other = 0; other < i && fits; ++other) {
      Range earlier{};
      RETURN_IF_FAILED(read(&resources[other], &earlier));
      fits = range.first >= earlier.first + earlier.count || earlier.first >= range.first + range.count;
    }
    if (!fits) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    all.count += range.count;
  }
  try {
    const std::lock_guard<std::mutex> lock(found().mutex);
    CUdevResourceDesc& one = found().descriptions[{all.device, all.count}];
    if (one == nullptr) one = descriptions.create(all.device, all.count);
    *desc = one;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc desc, CUdevice device, unsigned int flags) {
  RETURN_IF_NULL(context);
  RETURN_IF_WRONG(checkDevice(device));
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM || !descriptions.contains(desc)) return CUDA_ERROR_INVALID_VALUE;
  if (desc->device != device) return CUDA_ERROR_INVALID_DEVICE;
  return createGreen(context, device, desc->multiprocessors);
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  if (!greens.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  const CUcontext behind = context->context;
  const unsigned int part = context->part;
  {
    const std::lock_guard<std::mutex> lock(found().mutex);
    if (!greens.destroy(context)) return CUDA_ERROR_INVALID_CONTEXT;
    found().byPart.erase(part);
  }
  const CUresult error = destroyPart(behind);
  mcPartDestroy(part);
  return error;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  RETURN_IF_NULL(context);
  if (!greens.contains(green)) return CUDA_ERROR_INVALID_CONTEXT;
  *context = green->context;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned int flags, int priority) {
  constexpr unsigned int kNonBlocking = 1;  // the only kind that such a context has
  RETURN_IF_NULL(stream);
  if (!greens.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != kNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  return result(mcStreamCreateInPart(own(stream), context->part, flags, priority));
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* context) {
  unsigned int part = 0;
  RETURN_IF_NULL(context);
  RETURN_IF_WRONG(mcStreamGetPart(own(stream), &part));
  const std::lock_guard<std::mutex> lock(found().mutex);
  const auto green = found().byPart.find(part);
  *context = green == found().byPart.end() ? nullptr : green->second;
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
