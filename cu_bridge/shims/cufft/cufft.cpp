// cuFFT: plans and their execution.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "library.h"
#include "mc_runtime.h"
#include "numbers.h"
#include "plan.h"

MXMACA_ANSWERS(cufftResult, CUFFT_SUCCESS, CUFFT_SETUP_FAILED, CUFFT_INVALID_VALUE, CUFFT_ALLOC_FAILED,
               CUFFT_EXEC_FAILED);

namespace {

using mxmaca::Callback;
using mxmaca::Callbacks;
using mxmaca::Fft;
using mxmaca::Layout;
using mxmaca::Plan;

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, std::shared_ptr<Plan>> byHandle;
  cufftHandle next = 1;
};
Plans& plans() {
  static auto* const instance = new Plans;
  return *instance;
}
std::shared_ptr<Plan> find(cufftHandle handle) {
  const std::lock_guard<std::mutex> lock(plans().mutex);
  const auto found = plans().byHandle.find(handle);
  return found == plans().byHandle.end() ? nullptr : found->second;
}

struct Types {
  cudaDataType in, out;
  cudaDataType execution() const { return mxmaca::isComplex(in) ? in : out; }
};
bool typesOf(cufftType type, Types* types) {
  switch (type) {
    case CUFFT_C2C: *types = {CUDA_C_32F, CUDA_C_32F}; return true;
    case CUFFT_R2C: *types = {CUDA_R_32F, CUDA_C_32F}; return true;
    case CUFFT_C2R: *types = {CUDA_C_32F, CUDA_R_32F}; return true;
    case CUFFT_Z2Z: *types = {CUDA_C_64F, CUDA_C_64F}; return true;
    case CUFFT_D2Z: *types = {CUDA_R_64F, CUDA_C_64F}; return true;
    case CUFFT_Z2D: *types = {CUDA_C_64F, CUDA_R_64F}; return true;
  }
  return false;
}
// Both sides and the execution are of one precision, and not both sides real.
bool goTogether(cudaDataType in, cudaDataType out, cudaDataType execution) {
  constexpr cudaDataType precisions[][2] = {
      {CUDA_R_32F, CUDA_C_32F}, {CUDA_R_64F, CUDA_C_64F}, {CUDA_R_16F, CUDA_C_16F}, {CUDA_R_16BF, CUDA_C_16BF}};
  for (const auto& pair : precisions) {
    const auto has = [&](cudaDataType type) { return type == pair[0] || type == pair[1]; };
    if (has(in)) return has(out) && has(execution) && (in == pair[1] || out == pair[1]);
  }
  return false;
}

// Whether a transform can be planned. What is needed for one is taken from the host: the work area is empty.
template <class Integer>
cufftResult check(int rank, const Integer* n, const Integer* inembed, int64_t istride, int64_t idist, cudaDataType in,
                  const Integer* onembed, int64_t ostride, int64_t odist, cudaDataType out, int64_t batch,
                  size_t* workSize, cudaDataType execution) {
  if (rank < 1 || rank > 3 || n == nullptr || workSize == nullptr || batch < 1) return CUFFT_INVALID_VALUE;
  if (!goTogether(in, out, execution)) return CUFFT_INVALID_TYPE;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
  }
  if (inembed != nullptr && onembed != nullptr) {
    if (istride < 1 || ostride < 1 || idist < 0 || odist < 0) return CUFFT_INVALID_VALUE;
    for (int i = 1; i < rank; ++i) {  // the outermost is not used
      if (inembed[i] < 1 || onembed[i] < 1) return CUFFT_INVALID_VALUE;
    }
  }
  *workSize = 0;
  return CUFFT_SUCCESS;
}

template <class Integer>
cufftResult make(cufftHandle handle, int rank, const Integer* n, const Integer* inembed, int64_t istride, int64_t idist,
                 cudaDataType in, const Integer* onembed, int64_t ostride, int64_t odist, cudaDataType out,
                 int64_t batch, size_t* workSize, cudaDataType execution) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (!plan->lengths.empty()) return CUFFT_INVALID_PLAN;  // made already
  const cufftResult checked =
      check(rank, n, inembed, istride, idist, in, onembed, ostride, odist, out, batch, workSize, execution);
  if (checked != CUFFT_SUCCESS) return checked;
  if (mcCaptureForbids() != mcSuccess) return CUFFT_ALLOC_FAILED;  // a plan allocates on the device
  plan->basic = inembed == nullptr || onembed == nullptr;
  plan->realIn = !mxmaca::isComplex(in);
  plan->realOut = !mxmaca::isComplex(out);
  plan->wide = in == CUDA_R_64F || in == CUDA_C_64F;
  plan->batch = batch;
  std::vector<int64_t> lengths(n, n + rank);
  const auto layout = [&](cudaDataType type, const Integer* embed, int64_t stride, int64_t distance, bool half) {
    Layout result;
    result.type = type;
    result.embed = lengths;
    if (half) result.embed.back() = lengths.back() / 2 + 1;
    if (plan->basic) {
      result.distance = 1;
      for (const int64_t length : result.embed) result.distance *= length;
    } else {
      for (int i = 1; i < rank; ++i) result.embed[static_cast<size_t>(i)] = embed[i];
      result.stride = stride;
      result.distance = distance;
    }
    return result;
  };
  plan->in = layout(in, inembed, istride, idist, plan->realOut);
  plan->out = layout(out, onembed, ostride, odist, plan->realIn);
  try {
    for (const int64_t length : lengths) {
      if (plan->wide) {
        plan->twice.push_back(std::make_shared<Fft<double>>(length));
      } else {
        plan->single.push_back(std::make_shared<Fft<float>>(length));
      }
    }
  } catch (const std::bad_alloc&) {
    return CUFFT_ALLOC_FAILED;
  }
  plan->lengths = lengths;
  return CUFFT_SUCCESS;
}

template <class Integer>
cufftResult makeTyped(cufftHandle handle, int rank, const Integer* n, const Integer* inembed, int64_t istride,
                      int64_t idist, const Integer* onembed, int64_t ostride, int64_t odist, cufftType type,
                      int64_t batch, size_t* workSize) {
  Types types;
  if (find(handle) == nullptr) return CUFFT_INVALID_PLAN;
  if (!typesOf(type, &types)) return CUFFT_INVALID_TYPE;
  return make(handle, rank, n, inembed, istride, idist, types.in, onembed, ostride, odist, types.out, batch, workSize,
              types.execution());
}
template <class Integer>
cufftResult estimate(int rank, const Integer* n, const Integer* inembed, int64_t istride, int64_t idist,
                     const Integer* onembed, int64_t ostride, int64_t odist, cufftType type, int64_t batch,
                     size_t* workSize) {
  Types types;
  if (!typesOf(type, &types)) return CUFFT_INVALID_TYPE;
  return check(rank, n, inembed, istride, idist, types.in, onembed, ostride, odist, types.out, batch, workSize,
               types.execution());
}

cufftResult run(cufftHandle handle, const void* input, void* output, int direction) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr || plan->lengths.empty()) return CUFFT_INVALID_PLAN;
  if (input == nullptr || output == nullptr) return CUFFT_INVALID_VALUE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  const bool forward = plan->realIn || (!plan->realOut && direction == CUFFT_FORWARD);
  const auto compute = [plan, callbacks = plan->callbacks, input, output, forward]() -> cufftResult {
    mxmaca::execute(*plan, callbacks, input, output, forward);
    return CUFFT_SUCCESS;
  };
  // A plan does not change once it is made, but for its callbacks, so that work for later keeps it.
  const auto stream = reinterpret_cast<mcStream_t>(plan->stream);
  if (mxmaca::defers(stream) && mxmaca::isDeviceMemory(input) && mxmaca::isDeviceMemory(output)) {
    const mcError_t error = mxmaca::submitLater(stream, "cufftExec", [compute] {
      return mxmaca::attempt("cufftExec", compute) == CUFFT_SUCCESS ? mcSuccess : mcErrorLaunchFailure;
    });
    return error == mcSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
  }
  if (mcStreamCheck(stream) != mcSuccess) return CUFFT_EXEC_FAILED;
  return mxmaca::attempt("cufftExec", compute);
}
cufftResult runTyped(cufftHandle handle, cufftType type, const void* input, void* output, int direction) {
  const std::shared_ptr<Plan> plan = find(handle);
  Types types;
  if (plan == nullptr || plan->lengths.empty()) return CUFFT_INVALID_PLAN;
  if (!typesOf(type, &types) || plan->in.type != types.in || plan->out.type != types.out) return CUFFT_INVALID_TYPE;
  return run(handle, input, output, direction);
}

// A plan of a new handle, which goes away again if the plan cannot be made.
template <class Make>
cufftResult planned(cufftHandle* handle, Make&& makePlan) {
  if (handle == nullptr) return CUFFT_INVALID_VALUE;
  cufftResult result = cufftCreate(handle);
  if (result != CUFFT_SUCCESS) return result;
  size_t size = 0;
  result = makePlan(*handle, &size);
  if (result != CUFFT_SUCCESS) cufftDestroy(*handle);
  return result;
}

// The place of a plan's callback: of the side and the type that the transform has.
cufftResult callbackOf(cufftHandle handle, cufftXtCallbackType type, Callback** callback) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr || plan->lengths.empty()) return CUFFT_INVALID_PLAN;
  if (type < CUFFT_CB_LD_COMPLEX || type >= CUFFT_CB_UNDEFINED) return CUFFT_INVALID_TYPE;
  const bool loads = type < CUFFT_CB_ST_COMPLEX;
  constexpr cudaDataType types[] = {CUDA_C_32F, CUDA_C_64F, CUDA_R_32F, CUDA_R_64F};
  if ((loads ? plan->in : plan->out).type != types[type % CUFFT_CB_ST_COMPLEX]) return CUFFT_INVALID_TYPE;
  *callback = &plan->callbacks.byType[type];
  return CUFFT_SUCCESS;
}
cufftResult noWorkspace(size_t* size) {
  if (size == nullptr) return CUFFT_INVALID_VALUE;
  *size = 0;
  return CUFFT_SUCCESS;
}

}  // namespace

extern "C" {

cufftResult cufftGetVersion(int* version) { return mxmaca::getVersion<cufftResult>(version, CUFFT_VERSION); }
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  return mxmaca::getProperty<cufftResult>(type, value, CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH);
}

cufftResult cufftCreate(cufftHandle* handle) {
  if (handle == nullptr) return CUFFT_INVALID_VALUE;
  int count = 0;
  if (mcGetDeviceCount(&count) != mcSuccess) return CUFFT_SETUP_FAILED;
  const std::lock_guard<std::mutex> lock(plans().mutex);
  *handle = plans().next++;
  plans().byHandle[*handle] = std::make_shared<Plan>();
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  const std::lock_guard<std::mutex> lock(plans().mutex);
  return plans().byHandle.erase(handle) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (!mxmaca::isStream(stream)) return CUFFT_INVALID_VALUE;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle handle, void*) {
  return find(handle) == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int) {
  return find(handle) == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                              int ostride, int odist, cufftType type, int batch, size_t* size) {
  return makeTyped(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, size);
}
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                                long long int istride, long long int idist, long long int* onembed,
                                long long int ostride, long long int odist, cufftType type, long long int batch,
                                size_t* size) {
  return makeTyped(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, size);
}
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                                long long int istride, long long int idist, cudaDataType in, long long int* onembed,
                                long long int ostride, long long int odist, cudaDataType out, long long int batch,
                                size_t* size, cudaDataType execution) {
  return make(plan, rank, n, inembed, istride, idist, in, onembed, ostride, odist, out, batch, size, execution);
}
cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t* size) {
  return makeTyped<int>(plan, 1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch, size);
}
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t* size) {
  const int n[] = {nx, ny};
  return makeTyped<int>(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, size);
}
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t* size) {
  const int n[] = {nx, ny, nz};
  return makeTyped<int>(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, size);
}
cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch) {
  return planned(plan, [=](cufftHandle h, size_t* size) { return cufftMakePlan1d(h, nx, type, batch, size); });
}
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type) {
  return planned(plan, [=](cufftHandle h, size_t* size) { return cufftMakePlan2d(h, nx, ny, type, size); });
}
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type) {
  return planned(plan, [=](cufftHandle h, size_t* size) { return cufftMakePlan3d(h, nx, ny, nz, type, size); });
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                          int ostride, int odist, cufftType type, int batch) {
  return planned(plan, [=](cufftHandle h, size_t* size) {
    return cufftMakePlanMany(h, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, size);
  });
}

cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t* size) {
  return estimate<int>(1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch, size);
}
cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t* size) {
  const int n[] = {nx, ny};
  return estimate<int>(2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, size);
}
cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t* size) {
  const int n[] = {nx, ny, nz};
  return estimate<int>(3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, size);
}
cufftResult cufftEstimateMany(int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride,
                              int odist, cufftType type, int batch, size_t* size) {
  return estimate(rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, size);
}
cufftResult cufftGetSize(cufftHandle handle, size_t* size) {
  return find(handle) == nullptr ? CUFFT_INVALID_PLAN : noWorkspace(size);
}
cufftResult cufftGetSize1d(cufftHandle handle, int nx, cufftType type, int batch, size_t* size) {
  return find(handle) == nullptr ? CUFFT_INVALID_PLAN : cufftEstimate1d(nx, type, batch, size);
}
cufftResult cufftGetSizeMany(cufftHandle handle, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                             int ostride, int odist, cufftType type, int batch, size_t* size) {
  if (find(handle) == nullptr) return CUFFT_INVALID_PLAN;
  return estimate(rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, size);
}
cufftResult cufftXtGetSizeMany(cufftHandle handle, int rank, long long int* n, long long int* inembed,
                               long long int istride, long long int idist, cudaDataType in, long long int* onembed,
                               long long int ostride, long long int odist, cudaDataType out, long long int batch,
                               size_t* size, cudaDataType execution) {
  if (find(handle) == nullptr) return CUFFT_INVALID_PLAN;
  return check(rank, n, inembed, istride, idist, in, onembed, ostride, odist, out, batch, size, execution);
}

cufftResult cufftXtExec(cufftHandle plan, void* input, void* output, int direction) {
  return run(plan, input, output, direction);
}
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* input, cufftComplex* output, int direction) {
  return runTyped(plan, CUFFT_C2C, input, output, direction);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleComplex* output, int direction) {
  return runTyped(plan, CUFFT_Z2Z, input, output, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* input, cufftComplex* output) {
  return runTyped(plan, CUFFT_R2C, input, output, CUFFT_FORWARD);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* input, cufftDoubleComplex* output) {
  return runTyped(plan, CUFFT_D2Z, input, output, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* input, cufftReal* output) {
  return runTyped(plan, CUFFT_C2R, input, output, CUFFT_INVERSE);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleReal* output) {
  return runTyped(plan, CUFFT_Z2D, input, output, CUFFT_INVERSE);
}

// ---- Callbacks ------------------------------------------------------------------------------------------------------
cufftResult cufftXtSetCallback(cufftHandle handle, void** functions, cufftXtCallbackType type, void** information) {
  Callback* callback = nullptr;
  const cufftResult result = callbackOf(handle, type, &callback);
  if (result != CUFFT_SUCCESS) return result;
  if (functions == nullptr || functions[0] == nullptr) return CUFFT_INVALID_VALUE;
  // What the callback before it wanted in shared memory does not hold for another one.
  *callback = {functions[0], information == nullptr ? nullptr : information[0], 0};
  return CUFFT_SUCCESS;
}
cufftResult cufftXtClearCallback(cufftHandle handle, cufftXtCallbackType type) {
  Callback* callback = nullptr;
  const cufftResult result = callbackOf(handle, type, &callback);
  if (result == CUFFT_SUCCESS) *callback = {};
  return result;
}
cufftResult cufftXtSetCallbackSharedSize(cufftHandle handle, cufftXtCallbackType type, size_t bytes) {
  constexpr size_t kMost = 16384;
  Callback* callback = nullptr;
  const cufftResult result = callbackOf(handle, type, &callback);
  if (result != CUFFT_SUCCESS) return result;
  if (bytes > kMost) return CUFFT_INVALID_VALUE;
  callback->sharedBytes = bytes;
  return CUFFT_SUCCESS;
}

}  // extern "C"
