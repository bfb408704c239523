#include "net/ucx.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "net/interfaces.h"
#include "report/debug.h"

namespace nccl::net {
namespace {

// UCX's structures as far as they are used; what lies behind is for fields that no mask names.
struct ContextParameters {
  uint64_t fields;
  uint64_t features;
  uint64_t unused[4];
  int workersShared;
  char rest[128];
};
struct WorkerParameters {
  uint64_t fields;
  int threadMode;
  char rest[320];
};
struct PeerParameters {
  uint64_t fields;
  const void* address;
  int errorMode;
  void (*failed)(void*, void*, int8_t);
  void* failedData;
  char rest[128];
};
struct RequestParameters {
  uint32_t fields;
  uint32_t flags;
  void* request;
  void* callback;
  uint64_t datatype;
  void* userData;
  void* reply;
  int memoryType;
  void* information;
  char rest[64];
};
static_assert(offsetof(ContextParameters, workersShared) == 48 && offsetof(PeerParameters, failed) == 24 &&
                  offsetof(RequestParameters, memoryType) == 48 && offsetof(RequestParameters, information) == 56,
              "UCX's layouts");
struct Received {
  uint64_t tag;
  size_t bytes;
};

constexpr uint64_t kContextFeatures = 1, kContextShared = 0x20, kFeatureTags = 1;
constexpr uint64_t kWorkerThreadMode = 1;
constexpr int kSerialized = 1;
constexpr uint64_t kPeerAddress = 1, kPeerErrorMode = 2, kPeerHandler = 4;
constexpr int kTellErrors = 1;
constexpr uint32_t kOpFlags = 0x10, kOpMemoryType = 0x40, kOpNotAtOnce = 0x10000, kCloseNow = 1;
constexpr int8_t kInProgress = 1, kTruncated = -9, kLastError = -100;

bool isError(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) >= static_cast<uintptr_t>(static_cast<intptr_t>(kLastError));
}
int8_t errorOf(const void* pointer) { return static_cast<int8_t>(reinterpret_cast<intptr_t>(pointer)); }

// A peer that fails: its requests end with an error, and that is enough.
void noteNothing(void*, void*, int8_t) {}

}  // namespace

struct Library {
  int8_t (*configRead)(const char*, const char*, void**);
  int8_t (*configModify)(void*, const char*, const char*);
  void (*configRelease)(void*);
  int8_t (*init)(unsigned, unsigned, const ContextParameters*, const void*, void**);
  int8_t (*workerCreate)(void*, const WorkerParameters*, void**);
  void (*workerDestroy)(void*);
  int8_t (*workerAddress)(void*, void**, size_t*);
  void (*workerReleaseAddress)(void*, void*);
  unsigned (*progress)(void*);
  void* (*flush)(void*, const RequestParameters*);
  int8_t (*peerCreate)(void*, const PeerParameters*, void**);
  void* (*peerClose)(void*, const RequestParameters*);
  void* (*send)(void*, const void*, size_t, uint64_t, const RequestParameters*);
  void* (*receive)(void*, void*, size_t, uint64_t, uint64_t, const RequestParameters*);
  int8_t (*status)(void*);
  int8_t (*received)(void*, Received*);
  void (*cancel)(void*, void*);
  void (*release)(void*);
  const char* (*text)(int8_t);
  void* context;
  int process;  // a forked child cannot use its parent's context
};

namespace {

void* openLibrary(bool* packaged) {
  // The package libucx-cu12 or -cu13, beside ours in site-packages.
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&openLibrary), &info) != 0 && info.dli_fname != nullptr) {
    const std::string own(info.dli_fname);
    const std::string folder = own.substr(0, own.find_last_of('/') + 1);
    void* const found = dlopen((folder + "../../../libucx/lib/libucp.so.0").c_str(), RTLD_NOW | RTLD_LOCAL);
    *packaged = found != nullptr;
    if (found != nullptr) return found;
  }
  return dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Sets what the program has not set for UCX itself.
void configure(const Library& library, void* config, bool packaged) {
  const auto prefer = [&](const char* name, const std::string& value) {
    if (std::getenv((std::string("UCX_") + name).c_str()) == nullptr && !value.empty()) {
      library.configModify(config, name, value.c_str());
    }
  };
  // Ranks of one host share memory without UCX. Two hosts may be containers of one machine, which cannot share any.
  // The package has a module for CUDA, which would find the simulated device. Others warn of a name they do not know.
  prefer("TLS", packaged ? "^shm,cuda" : "^shm");
  if (access("/sys/class/infiniband", F_OK) != 0) prefer("NET_DEVICES", chosenInterface());
}

const Library* loadOnce(std::string* why) {
  auto* const made = new Library{};
  bool packaged = false;
  void* const handle = openLibrary(&packaged);
  if (handle == nullptr) {
    *why = "a communicator over several hosts needs UCX: install `mxmaca[net]`, or libucx of the system";
    return nullptr;
  }
  const bool all =
      find(handle, "ucp_config_read", &made->configRead) && find(handle, "ucp_config_modify", &made->configModify) &&
      find(handle, "ucp_config_release", &made->configRelease) && find(handle, "ucp_init_version", &made->init) &&
      find(handle, "ucp_worker_create", &made->workerCreate) &&
      find(handle, "ucp_worker_destroy", &made->workerDestroy) &&
      find(handle, "ucp_worker_get_address", &made->workerAddress) &&
      find(handle, "ucp_worker_release_address", &made->workerReleaseAddress) &&
      find(handle, "ucp_worker_progress", &made->progress) && find(handle, "ucp_ep_flush_nbx", &made->flush) &&
      find(handle, "ucp_ep_create", &made->peerCreate) && find(handle, "ucp_ep_close_nbx", &made->peerClose) &&
      find(handle, "ucp_tag_send_nbx", &made->send) && find(handle, "ucp_tag_recv_nbx", &made->receive) &&
      find(handle, "ucp_request_check_status", &made->status) &&
      find(handle, "ucp_tag_recv_request_test", &made->received) && find(handle, "ucp_request_cancel", &made->cancel) &&
      find(handle, "ucp_request_free", &made->release) && find(handle, "ucs_status_string", &made->text);
  if (!all) {
    *why = "the UCX of this system is older than 1.10, which communicators over several hosts need";
    return nullptr;
  }
  void* config = nullptr;
  int8_t status = made->configRead(nullptr, nullptr, &config);
  if (status == 0) {
    configure(*made, config, packaged);
    ContextParameters parameters{};
    parameters.fields = kContextFeatures | kContextShared;
    parameters.features = kFeatureTags;
    parameters.workersShared = 1;
    status = made->init(1, 10, &parameters, config, &made->context);
    made->configRelease(config);
  }
  made->process = getpid();
  if (status == 0) return made;
  *why = std::string("UCX cannot be used: ") + made->text(status);
  return nullptr;
}

const Library* load(std::string* why) {
  static std::mutex mutex;
  static const Library* loaded = nullptr;  // stays: other threads may use it while the process exits
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr || loaded->process != getpid()) loaded = loadOnce(why);
  return loaded;
}

}  // namespace

// ---- Transfer -------------------------------------------------------------------------------------------------------

Transfer::Transfer(const Library* library, void* worker, void* request, size_t expected)
    : library_(library), worker_(worker), request_(request), expected_(expected) {}
Transfer::Transfer(Transfer&& other) noexcept
    : library_(other.library_),
      worker_(other.worker_),
      request_(std::exchange(other.request_, nullptr)),
      expected_(other.expected_) {}

Transfer::~Transfer() {
  if (request_ == nullptr || isError(request_)) return;
  if (library_->status(request_) == kInProgress) library_->cancel(worker_, request_);
  library_->release(request_);
}

bool Transfer::over(Result* result, std::string* why) {
  if (request_ == nullptr) return true;
  int8_t status = 0;
  Received received{0, expected_};
  constexpr size_t kNoReceive = ~size_t{0};
  if (isError(request_)) {
    status = errorOf(request_);
  } else {
    status = expected_ == kNoReceive ? library_->status(request_) : library_->received(request_, &received);
    if (status == kInProgress) return false;
    library_->release(request_);
  }
  request_ = nullptr;
  if (status == kTruncated || (status == 0 && received.bytes != expected_)) {
    *result = kInvalidUsage;
    *why = "the message has another size than the " + std::to_string(expected_) + " bytes that were expected";
  } else if (status != 0) {
    *result = kRemoteError;
    *why = library_->text(status);
  }
  return true;
}

// ---- Endpoint -------------------------------------------------------------------------------------------------------

Endpoint::Endpoint(const Library* library, void* worker, std::string address)
    : library_(library), worker_(worker), address_(std::move(address)) {}

std::unique_ptr<Endpoint> Endpoint::create(std::string* why) {
  const Library* const library = load(why);
  if (library == nullptr) return nullptr;
  WorkerParameters parameters{};
  parameters.fields = kWorkerThreadMode;
  parameters.threadMode = kSerialized;
  void* worker = nullptr;
  int8_t status = library->workerCreate(library->context, &parameters, &worker);
  if (status != 0) {
    *why = std::string("UCX cannot make a worker: ") + library->text(status);
    return nullptr;
  }
  void* address = nullptr;
  size_t bytes = 0;
  status = library->workerAddress(worker, &address, &bytes);
  if (status != 0) {
    library->workerDestroy(worker);
    *why = std::string("UCX has no address: ") + library->text(status);
    return nullptr;
  }
  std::string text(static_cast<const char*>(address), bytes);
  library->workerReleaseAddress(worker, address);
  return std::unique_ptr<Endpoint>(new Endpoint(library, worker, std::move(text)));
}

Endpoint::~Endpoint() {
  if (library_->process != getpid()) return;
  for (void* const peer : peers_) {
    if (peer == nullptr) continue;
    RequestParameters parameters{};
    parameters.fields = kOpFlags;
    parameters.flags = kCloseNow;
    void* const request = library_->peerClose(peer, &parameters);
    if (request == nullptr || isError(request)) continue;
    while (library_->status(request) == kInProgress) library_->progress(worker_);
    library_->release(request);
  }
  library_->workerDestroy(worker_);
}

void* Endpoint::peer(int rank, void** error) {
  peers_.resize(addresses_.size());
  void*& known = peers_[static_cast<size_t>(rank)];
  if (known != nullptr) return known;
  PeerParameters parameters{};
  parameters.fields = kPeerAddress | kPeerErrorMode | kPeerHandler;
  parameters.address = addresses_[static_cast<size_t>(rank)].data();
  parameters.errorMode = kTellErrors;
  parameters.failed = noteNothing;
  const int8_t status = library_->peerCreate(worker_, &parameters, &known);
  if (status == 0) return known;
  known = nullptr;
  *error = reinterpret_cast<void*>(static_cast<intptr_t>(status));
  return nullptr;
}

Transfer Endpoint::send(int rank, const void* from, size_t bytes, uint64_t tag) {
  void* request = nullptr;
  void* const to = peer(rank, &request);
  if (to != nullptr) {
    RequestParameters parameters{};
    parameters.fields = kOpMemoryType;  // of the host, which is 0
    request = library_->send(to, from, bytes, tag, &parameters);
  }
  return {library_, worker_, request, ~size_t{0}};
}

Transfer Endpoint::receive(void* to, size_t bytes, uint64_t tag) {
  RequestParameters parameters{};
  parameters.fields = kOpMemoryType | kOpNotAtOnce;
  return {library_, worker_, library_->receive(worker_, to, bytes, tag, ~uint64_t{0}, &parameters), bytes};
}

Transfer Endpoint::flush(int rank) {
  void* request = nullptr;
  void* const to = peer(rank, &request);
  const RequestParameters parameters{};
  if (to != nullptr) request = library_->flush(to, &parameters);
  return {library_, worker_, request, ~size_t{0}};
}

void Endpoint::progress() {
  while (library_->progress(worker_) != 0) {
  }
}

}  // namespace nccl::net
