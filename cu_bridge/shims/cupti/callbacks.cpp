// Callbacks: a subscriber is told of calls of the runtime and of the driver interface when they begin and when they are
// over.
//
// Those are the calls whose arguments the runtime hands over (mcWorkRecord), and NVTX's pushes and pops. Nobody can
// subscribe to others, nor to waits and the state, so that nobody waits for a callback that does not come. Profilers
// insist on some more, and get them, though they never come: the begin and the end of a context, since a device's
// primary one is there as long as the process is, and launches by functions that are not there. What becomes of
// streams, graphs and nodes is in resources.cpp.

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <mutex>
#include <vector>

#include "handle_table.h"
#include "records.h"

#pragma GCC visibility push(default)
#include "driver_types.h"
#pragma GCC visibility pop

using namespace mxmaca::cupti;

namespace {

// What a callback is handed, in CUPTI's layout.
struct CallbackData {
  uint32_t site;  // 0 when the call begins, 1 when it is over
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;  // of the kernel
  void* context;
  uint32_t contextUid;
  uint64_t* correlationData;  // the subscriber's own, from a call's begin to its end
  uint32_t correlationId;
};
static_assert(sizeof(CallbackData) == 72 && offsetof(CallbackData, correlationId) == 64, "CUPTI's layout");

// The same of NVTX.
struct NvtxData {
  const char* function;
  const void* parameters;
  const void* result;  // NULL: the depth is not known here
};

constexpr uint32_t kContextCreated = 1, kContextDestroyed = 2;
constexpr uint32_t kLastDomain = 6, kFunctions = 1024;

// A function of an interface: the bytes of each of its parameters. CUPTI lists the runtime interface's with the CUDA
// version (10020: 10.2) from which a function has its parameters, as `cudaMalloc_v3020`.
struct Function {
  uint32_t id;
  const char* name;
  std::vector<size_t> bytes;
  const char* listed = name;
};
using Functions = std::vector<Function>;

constexpr size_t kPointer = sizeof(void*), kSize = sizeof(size_t), kInt = sizeof(int), kDim = 3 * sizeof(int);

// Functions of the runtime interface, and those of the driver's by which they work.
constexpr uint32_t kLaunch = 211, kCooperative = 269, kLaunchWithAttributes = 430;
struct Nested {
  uint32_t runtimes, drivers;
};
constexpr Nested kNested[] = {{kLaunch, 307}, {kCooperative, 477}, {kLaunchWithAttributes, 307},
                              {311, 514},     {315, 539},          {319, 497}};

const Functions& runtimeFunctions() {
  static const auto* const all = new Functions{
      {20, "cudaMalloc", {kPointer, kSize}, "cudaMalloc_v3020"},
      {22, "cudaFree", {kPointer}, "cudaFree_v3020"},
      {26, "cudaFreeHost", {kPointer}, "cudaFreeHost_v3020"},
      {27, "cudaHostAlloc", {kPointer, kSize, kInt}, "cudaHostAlloc_v3020"},
      {31, "cudaMemcpy", {kPointer, kPointer, kSize, kInt}, "cudaMemcpy_v3020"},
      {41, "cudaMemcpyAsync", {kPointer, kPointer, kSize, kInt, kPointer}, "cudaMemcpyAsync_v3020"},
      {49, "cudaMemset", {kPointer, kInt, kSize}, "cudaMemset_v3020"},
      {51, "cudaMemsetAsync", {kPointer, kInt, kSize, kPointer}, "cudaMemsetAsync_v3020"},
      {131, "cudaStreamSynchronize", {kPointer}, "cudaStreamSynchronize_v3020"},
      {135, "cudaEventRecord", {kPointer, kPointer}, "cudaEventRecord_v3020"},
      {137, "cudaEventSynchronize", {kPointer}, "cudaEventSynchronize_v3020"},
      {147, "cudaStreamWaitEvent", {kPointer, kPointer, kInt}, "cudaStreamWaitEvent_v3020"},
      {165, "cudaDeviceSynchronize", {}, "cudaDeviceSynchronize_v3020"},
      {211, "cudaLaunchKernel", {kPointer, kDim, kDim, kPointer, kSize, kPointer}, "cudaLaunchKernel_v7000"},
      {269,
       "cudaLaunchCooperativeKernel",
       {kPointer, kDim, kDim, kPointer, kSize, kPointer},
       "cudaLaunchCooperativeKernel_v9000"},
      {284, "cudaLaunchHostFunc", {kPointer, kPointer, kPointer}, "cudaLaunchHostFunc_v10000"},
      {311, "cudaGraphLaunch", {kPointer, kPointer}, "cudaGraphLaunch_v10000"},
      {315, "cudaStreamBeginCapture", {kPointer, kInt}, "cudaStreamBeginCapture_v10000"},
      {319, "cudaStreamEndCapture", {kPointer, kPointer}, "cudaStreamEndCapture_v10000"},
      {373, "cudaMallocAsync", {kPointer, kSize, kPointer}, "cudaMallocAsync_v11020"},
      {375, "cudaFreeAsync", {kPointer, kPointer}, "cudaFreeAsync_v11020"},
      {430, "cudaLaunchKernelExC", {kPointer, kPointer, kPointer}, "cudaLaunchKernelExC_v11060"},
  };
  return *all;
}

const Functions& driverFunctions() {
  static const std::vector<size_t> launch{kPointer, kInt, kInt,     kInt,     kInt,    kInt,
                                          kInt,     kInt, kPointer, kPointer, kPointer};
  static const std::vector<size_t> cooperative(launch.begin(), launch.end() - 1);
  static const std::vector<size_t> copy{kPointer, kPointer, kSize}, copyAsync{kPointer, kPointer, kSize, kPointer};
  static const auto* const all = new Functions{
      {17, "cuCtxSynchronize", {}},
      {38, "cuMemFreeHost", {kPointer}},
      {39, "cuMemHostAlloc", {kPointer, kSize, kInt}},
      {119, "cuEventRecord", {kPointer, kPointer}},
      {121, "cuEventSynchronize", {kPointer}},
      {126, "cuStreamSynchronize", {kPointer}},
      {216, "cuMemsetD8Async", {kPointer, sizeof(char), kSize, kPointer}},
      {218, "cuMemsetD16Async", {kPointer, sizeof(short), kSize, kPointer}},
      {220, "cuMemsetD32Async", {kPointer, kInt, kSize, kPointer}},
      {243, "cuMemAlloc_v2", {kPointer, kSize}},
      {245, "cuMemFree_v2", {kPointer}},
      {249, "cuMemsetD8_v2", {kPointer, sizeof(char), kSize}},
      {250, "cuMemsetD16_v2", {kPointer, sizeof(short), kSize}},
      {251, "cuMemsetD32_v2", {kPointer, kInt, kSize}},
      {276, "cuMemcpyHtoD_v2", copy},
      {277, "cuMemcpyHtoDAsync_v2", copyAsync},
      {278, "cuMemcpyDtoH_v2", copy},
      {279, "cuMemcpyDtoHAsync_v2", copyAsync},
      {280, "cuMemcpyDtoD_v2", copy},
      {281, "cuMemcpyDtoDAsync_v2", copyAsync},
      {294, "cuMemAllocHost_v2", {kPointer, kSize}},
      {295, "cuStreamWaitEvent", {kPointer, kPointer, kInt}},
      {305, "cuMemcpy", copy},
      {306, "cuMemcpyAsync", copyAsync},
      {307, "cuLaunchKernel", launch},
      {497, "cuStreamEndCapture", {kPointer, kPointer}},
      {477, "cuLaunchCooperativeKernel", cooperative},
      {514, "cuGraphLaunch", {kPointer, kPointer}},
      {527, "cuLaunchHostFunc", {kPointer, kPointer, kPointer}},
      {539, "cuStreamBeginCapture_v2", {kPointer, kInt}},
      {598, "cuMemAllocAsync", {kPointer, kSize, kPointer}},
      {600, "cuMemFreeAsync", {kPointer, kPointer}},
      {652, "cuLaunchKernelEx", {kPointer, kPointer, kPointer, kPointer}},
  };
  return *all;
}

// Ranges of the default domain, whatever form of the functions begins and ends them.
constexpr uint32_t kPush = 8, kPop = 11;
const Functions& nvtxFunctions() {
  static const auto* const all = new Functions{{kPush, "nvtxRangePushA", {kPointer}}, {kPop, "nvtxRangePop", {}}};
  return *all;
}

const Functions& resourceFunctions() {
  static const auto* const all = [] {
    auto* const made = new Functions;
    for (const uint32_t id : kResources) made->push_back({id, "", {}});
    return made;
  }();
  return *all;
}

constexpr uint32_t kDomains[] = {kDriver, kRuntime, kResource, kNvtx};  // with functions
bool hasFunctions(uint32_t domain) {
  return std::find(std::begin(kDomains), std::end(kDomains), domain) != std::end(kDomains);
}
const Functions& functionsOf(uint32_t domain) {
  switch (domain) {
    case kDriver: return driverFunctions();
    case kRuntime: return runtimeFunctions();
    case kResource: return resourceFunctions();
    default: return nvtxFunctions();
  }
}

const Function* functionOf(uint32_t domain, uint32_t id) {
  for (const Function& function : functionsOf(domain)) {
    if (function.id == id) return &function;
  }
  return nullptr;
}

// Launches and begins of captures that are not there: older ones, ones for several devices, and forms for the default
// stream of each thread, which have no functions of their own here.
constexpr uint32_t kOtherRuntimeLaunches[] = {13, 213, 214, 270, 272, 285, 312, 316, 320, 431};
constexpr uint32_t kOtherDriverLaunches[] = {115, 116, 117, 442, 478, 480, 495, 496, 498, 515, 528, 540, 653, 720, 721};

bool neverComes(uint32_t domain, uint32_t id) {
  const auto among = [id](const auto& ids) { return std::find(std::begin(ids), std::end(ids), id) != std::end(ids); };
  switch (domain) {
    case kDriver: return among(kOtherDriverLaunches);
    case kRuntime: return among(kOtherRuntimeLaunches);
    case kResource: return id == kContextCreated || id == kContextDestroyed;
    default: return false;
  }
}

}  // namespace

struct Subscriber {
  Callback callback;
  void* userData;
  bool wants[kNvtx + 1][kFunctions] = {};  // by domain
};

namespace {

mc::HandleTable<Subscriber> subscribers;

// What a subscriber has kept of a call that is under way. Its number is no other thread's.
struct Open {
  uint32_t correlation;
  Subscriber* subscriber;
  uint32_t domain;
  uint64_t data;
};

// Never destroyed: calls go on while the process ends.
struct Live {
  std::mutex mutex;
  std::vector<Subscriber*> all;
  std::vector<Open> open;
  std::atomic<int> wanted{0};  // functions of all of them
};
Live& live() {
  static auto* const all = new Live;
  return *all;
}

// What the subscriber has kept of the call, which is over: 0 if nobody wanted its begin.
uint64_t takeKept(uint32_t correlation, const Subscriber* subscriber, uint32_t domain) {
  const std::lock_guard<std::mutex> lock(live().mutex);
  std::vector<Open>& open = live().open;
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].correlation != correlation || open[i].subscriber != subscriber || open[i].domain != domain) continue;
    const uint64_t data = open[i].data;
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return data;
  }
  return 0;
}

void keep(const Open& call) {
  constexpr size_t kMost = 4096;  // calls whose end nobody wanted any more are among them
  const std::lock_guard<std::mutex> lock(live().mutex);
  std::vector<Open>& open = live().open;
  if (open.size() == kMost) open.erase(open.begin());
  open.push_back(call);
}

// The arguments as a structure, each at its natural place.
size_t pack(const Function& function, const void* const* arguments, unsigned char* to) {
  size_t used = 0;
  for (const size_t bytes : function.bytes) {
    const size_t alignment = bytes % sizeof(void*) == 0 ? sizeof(void*) : sizeof(int);
    used = (used + alignment - 1) / alignment * alignment;
    std::memcpy(to + used, *arguments++, bytes);
    used += bytes;
  }
  return used;
}

// With the lock.
void want(Subscriber* subscriber, uint32_t domain, uint32_t id, bool on) {
  if (subscriber->wants[domain][id] == on) return;
  subscriber->wants[domain][id] = on;
  live().wanted += on ? 1 : -1;
}

int change(uint32_t enable, Subscriber* subscriber, uint32_t domain, const uint32_t* id) {
  {
    const std::lock_guard<std::mutex> lock(live().mutex);
    if (!subscribers.contains(subscriber) || domain == 0 || domain > kLastDomain) return kInvalidParameter;
    if (id != nullptr && neverComes(domain, *id)) return kSuccess;
    const bool known = hasFunctions(domain) && (id == nullptr || functionOf(domain, *id) != nullptr);
    if (!known) return enable != 0 ? kNotSupported : kSuccess;
    for (const Function& function : functionsOf(domain)) {
      if (id == nullptr || function.id == *id) want(subscriber, domain, function.id, enable != 0);
    }
  }
  callbacksHaveChanged();
  return kSuccess;
}

// With the lock.
void forget(Subscriber* subscriber) {
  for (const uint32_t domain : kDomains) {
    for (const Function& function : functionsOf(domain)) want(subscriber, domain, function.id, false);
  }
  for (auto one = live().all.begin(); one != live().all.end(); ++one) {
    if (*one == subscriber) {
      live().all.erase(one);
      break;
    }
  }
  subscribers.destroy(subscriber);
}

}  // namespace

namespace mxmaca::cupti {

uint32_t callbackId(const mcWorkRecord& record) {
  if (record.function != 0) return record.function;
  switch (record.call) {
    case mcCallLaunchKernel: return 211;
    case mcCallLaunchCooperative: return 269;
    case mcCallMemcpyAsync: return 41;
    case mcCallMemcpy: return 31;
    case mcCallMemsetAsync: return 51;
    case mcCallMemset: return 49;
    case mcCallLaunchHostFunction: return 284;
    case mcCallGraphLaunch: return 311;
    case mcCallStreamSynchronize: return 131;
    case mcCallDeviceSynchronize: return 165;
    case mcCallEventSynchronize: return 137;
    case mcCallStreamWaitEvent: return 147;
    case mcCallEventRecord: return 135;
    case mcCallMalloc: return 20;
    case mcCallFree: return 22;
    case mcCallHostAlloc: return 27;
    case mcCallFreeHost: return 26;
    case mcCallMallocAsync: return 373;
    case mcCallFreeAsync: return 375;
    case mcCallOther: return 0;
  }
  return 0;
}

bool anyCallback() { return live().wanted.load() != 0; }

bool anyResource() {
  const std::lock_guard<std::mutex> lock(live().mutex);
  return std::any_of(live().all.begin(), live().all.end(), [](const Subscriber* one) {
    return std::any_of(std::begin(kResources), std::end(kResources),
                       [one](uint32_t id) { return one->wants[kResource][id]; });
  });
}

std::vector<Wanted> wantedBy(uint32_t domain, uint32_t id) {
  std::vector<Wanted> wanted;
  const std::lock_guard<std::mutex> lock(live().mutex);
  for (Subscriber* one : live().all) {
    if (one->wants[domain][id]) wanted.push_back({one, one->callback, one->userData});
  }
  return wanted;
}

void* currentContext() {
  // The driver's library knows contexts; where it is not there, nobody has one.
  static const auto ask = [] {
    void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<int (*)(void**)>(library == nullptr ? nullptr : dlsym(library, "cuCtxGetCurrent"));
  }();
  void* context = nullptr;
  return ask != nullptr && ask(&context) == 0 ? context : nullptr;
}

namespace {

// Hands a call's begin or end to those who want this function.
void callBack(uint32_t domain, uint32_t id, const void* const* arguments, const mcWorkRecord& work, bool entry) {
  const Function* const function = functionOf(domain, id);
  if (function == nullptr || (arguments == nullptr && !function->bytes.empty())) return;
  alignas(8) unsigned char parameters[80];
  if (!function->bytes.empty()) pack(*function, arguments, parameters);
  int status = static_cast<int>(work.result);
  // Without the lock: a callback may subscribe, enable and end.
  for (const Wanted& to : wantedBy(domain, id)) {
    uint64_t data = entry ? 0 : takeKept(work.correlation, to.subscriber, domain);
    CallbackData callback{};
    callback.site = entry ? 0 : 1;
    callback.function = function->name;
    callback.parameters = function->bytes.empty() ? nullptr : parameters;
    callback.result = entry ? nullptr : &status;
    callback.symbol = work.name;
    callback.context = currentContext();
    callback.contextUid = kContext;
    callback.correlationData = &data;
    callback.correlationId = work.correlation;
    to.callback(to.userData, domain, id, &callback);
    if (entry) keep({work.correlation, to.subscriber, domain, data});
  }
}

// A launch by the runtime interface as the driver's function sees it: the arguments of cuLaunchKernel.
struct DriverLaunch {
  DriverLaunch(const void* kernel, mcDim3 of, mcDim3 each, size_t bytes, const void* on, void** given)
      : function(kernel), grid(of), block(each), shared(static_cast<unsigned>(bytes)), stream(on), parameters(given) {}
  const void* function;
  mcDim3 grid, block;
  unsigned shared;
  const void* stream;
  void** parameters;
  void** extra = nullptr;
  const void* arguments[11] = {&function, &grid.x, &grid.y, &grid.z,     &block.x, &block.y,
                               &block.z,  &shared, &stream, &parameters, &extra};
};
DriverLaunch driverLaunch(uint32_t id, const void* const* arguments) {
  if (id == kLaunchWithAttributes) {
    const auto* const config = *static_cast<const cudaLaunchConfig_t* const*>(arguments[0]);
    const dim3 grid = config->gridDim, block = config->blockDim;
    return {*static_cast<const void* const*>(arguments[1]),
            {grid.x, grid.y, grid.z},
            {block.x, block.y, block.z},
            config->dynamicSmemBytes,
            config->stream,
            *static_cast<void** const*>(arguments[2])};
  }
  return {*static_cast<const void* const*>(arguments[0]), *static_cast<const mcDim3*>(arguments[1]),
          *static_cast<const mcDim3*>(arguments[2]),      *static_cast<const size_t*>(arguments[4]),
          *static_cast<const void* const*>(arguments[5]), *static_cast<void** const*>(arguments[3])};
}

// The runtime interface launches and captures by the driver's functions, and some profilers ask for those alone.
void callBackOfDriver(uint32_t id, const mcWorkRecord& work, bool entry) {
  for (const auto& [runtimes, drivers] : kNested) {
    if (runtimes != id || work.arguments == nullptr || wantedBy(kDriver, drivers).empty()) continue;
    const bool launches = id == kLaunch || id == kCooperative || id == kLaunchWithAttributes;
    if (id == kLaunchWithAttributes && *static_cast<const void* const*>(work.arguments[0]) == nullptr) continue;
    if (!launches) {
      callBack(kDriver, drivers, work.arguments, work, entry);
    } else {
      const DriverLaunch launch = driverLaunch(id, work.arguments);
      callBack(kDriver, drivers, launch.arguments, work, entry);
    }
  }
}

}  // namespace

void callBack(const mcWorkRecord& work, bool entry) {
  if (!anyCallback()) return;
  const uint32_t own = work.ofDriver != 0 ? kDriver : kRuntime;
  const uint32_t id = callbackId(work);
  const bool nests = own == kRuntime;
  if (nests && !entry) callBackOfDriver(id, work, entry);
  callBack(own, id, work.arguments, work, entry);
  if (nests && entry) callBackOfDriver(id, work, entry);
}

void callBackOfMark(const mcWorkRecord& work) {
  const bool pushes = work.mark == mcMarkPush;
  if (!anyCallback() || work.domain != nullptr || (!pushes && work.mark != mcMarkPop)) return;
  const uint32_t id = pushes ? kPush : kPop;
  const char* const message = work.name;
  const NvtxData data{functionOf(kNvtx, id)->name, pushes ? &message : nullptr, nullptr};
  for (const Wanted& to : wantedBy(kNvtx, id)) to.callback(to.userData, kNvtx, id, &data);
}

void endCallbacks() {
  {
    const std::lock_guard<std::mutex> lock(live().mutex);
    while (!live().all.empty()) forget(live().all.back());
  }
  callbacksHaveChanged();
}

}  // namespace mxmaca::cupti

#pragma GCC visibility push(default)
extern "C" {

int cuptiSubscribe(Subscriber** subscriber, Callback callback, void* userData) {
  if (subscriber == nullptr || callback == nullptr) return kInvalidParameter;
  const std::lock_guard<std::mutex> lock(live().mutex);
  *subscriber = subscribers.create(callback, userData);
  live().all.push_back(*subscriber);
  return kSuccess;
}

int cuptiUnsubscribe(Subscriber* subscriber) {
  {
    const std::lock_guard<std::mutex> lock(live().mutex);
    if (!subscribers.contains(subscriber)) return kInvalidParameter;
    forget(subscriber);
  }
  callbacksHaveChanged();
  return kSuccess;
}

int cuptiEnableCallback(uint32_t enable, Subscriber* subscriber, uint32_t domain, uint32_t id) {
  return change(enable, subscriber, domain, &id);
}
int cuptiEnableDomain(uint32_t enable, Subscriber* subscriber, uint32_t domain) {
  return change(enable, subscriber, domain, nullptr);
}
int cuptiGetCallbackState(uint32_t* enable, Subscriber* subscriber, uint32_t domain, uint32_t id) {
  const std::lock_guard<std::mutex> lock(live().mutex);
  if (enable == nullptr || !subscribers.contains(subscriber) || domain == 0 || domain > kLastDomain) {
    return kInvalidParameter;
  }
  *enable = hasFunctions(domain) && id < kFunctions && subscriber->wants[domain][id] ? 1 : 0;
  return kSuccess;
}

// Names that there are callbacks and records with. Domains that are no interface have none with CUPTI either.
int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char** name) {
  if (name == nullptr || (domain != kRuntime && domain != kDriver)) return kInvalidParameter;
  const Function* const function = functionOf(domain, id);
  if (function == nullptr) return kInvalidParameter;
  *name = function->listed;
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
