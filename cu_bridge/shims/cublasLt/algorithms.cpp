// Algorithms of a product: there is one, so what can be asked and set of it is data. Every number stands for it, as
// programs name one that was best on some GPU; what is set of tiles, stages and splits is kept and changes nothing.

#include <cstddef>
#include <cstring>

#include "matmul.h"

using namespace mxmaca;
using namespace mxmaca::lt;
using Status = cublasStatus_t;

namespace {

constexpr int kIds = 128;  // numbers that an algorithm may have; that of ours is 0

// Behind the mark of an algorithm, in the caller's memory.
struct Configuration {
  int32_t id;
  uint32_t tile;
  int32_t splits;
  uint32_t reduction, swizzling, custom, stages;
  uint16_t innerShape, clusterShape;
};
constexpr size_t kPlace = sizeof(uint64_t);
static_assert(kPlace + sizeof(Configuration) <= sizeof(cublasLtMatmulAlgo_t), "fits beside the mark");

struct Field {
  size_t offset, size;
};
#define FIELD(name) {offsetof(Configuration, name), sizeof(Configuration::name)}
constexpr Field kFields[] = {FIELD(id),     FIELD(tile),   FIELD(splits),     FIELD(reduction),   FIELD(swizzling),
                             FIELD(custom), FIELD(stages), FIELD(innerShape), FIELD(clusterShape)};

// Whether there is a product of these types at all: asked of a small one.
Status checkTypes(cublasComputeType_t compute, cudaDataType scale, const cudaDataType (&types)[4]) {
  constexpr int kSize = 16;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layouts[4] = {};
  Status status = cublasLtMatmulDescCreate(&operation, compute, scale);
  for (int i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; ++i) {
    status = cublasLtMatrixLayoutCreate(&layouts[i], types[i], kSize, kSize, kSize);
  }
  // Narrow types have a product only with the first matrix transposed.
  for (const int32_t transposed : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    if (operation == nullptr || layouts[3] == nullptr) break;
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    status = check(operation, layouts[0], layouts[1], layouts[2], layouts[3]);
    if (status == CUBLAS_STATUS_SUCCESS) break;
  }
  for (cublasLtMatrixLayout_t layout : layouts) {
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  return status;
}

template <class Value>
Status tell(const Value& value, void* to, size_t size, size_t* written) {
  if (written != nullptr) *written = sizeof value;
  if (size == 0) return written != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;  // the size alone
  if (to == nullptr || size < sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, &value, sizeof value);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT Status cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType scale,
                                       cudaDataType a, cudaDataType b, cudaDataType c, cudaDataType d, int wanted,
                                       int* ids, int* found) {
  if (!isHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (ids == nullptr || found == nullptr || wanted <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  const Status status = checkTypes(compute, scale, {a, b, c, d});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  *ids = 0;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT Status cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType scale,
                                     cudaDataType a, cudaDataType b, cudaDataType c, cudaDataType d, int id,
                                     cublasLtMatmulAlgo_t* algorithm) {
  if (!isHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algorithm == nullptr || id < 0 || id >= kIds) return CUBLAS_STATUS_INVALID_VALUE;
  const Status status = checkTypes(compute, scale, {a, b, c, d});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  *algorithm = theAlgorithm();
  std::memcpy(reinterpret_cast<char*>(algorithm) + kPlace + offsetof(Configuration, id), &id, sizeof id);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT Status cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                cublasLtMatmulAlgoCapAttributes_t attribute, void* to, size_t size,
                                                size_t* written) {
  constexpr int32_t kNo = 0, kYes = 1;
  constexpr uint32_t kAllPointerModes = 31, kByte = 1;
  constexpr uint32_t kEpilogues = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_AUX_BIAS |
                                  CUBLASLT_EPILOGUE_DRELU_BGRAD | CUBLASLT_EPILOGUE_GELU_AUX_BIAS |
                                  CUBLASLT_EPILOGUE_DGELU_BGRAD | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB;
  if (algorithm == nullptr || !isAlgorithm(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
    case CUBLASLT_ALGO_CAP_UPLO_SUPPORT:
    case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
    case CUBLASLT_ALGO_CAP_LD_NEGATIVE: return tell(kNo, to, size, written);
    case CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT:
    case CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT:
    case CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER: return tell(kYes, to, size, written);
    case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
      return tell(uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}, to, size, written);
    case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT: return tell(uint32_t{0}, to, size, written);
    case CUBLASLT_ALGO_CAP_TILE_IDS: return tell(uint32_t{CUBLASLT_MATMUL_TILE_UNDEFINED}, to, size, written);
    case CUBLASLT_ALGO_CAP_STAGES_IDS: return tell(uint32_t{CUBLASLT_MATMUL_STAGES_UNDEFINED}, to, size, written);
    case CUBLASLT_ALGO_CAP_POINTER_MODE_MASK: return tell(kAllPointerModes, to, size, written);
    case CUBLASLT_ALGO_CAP_EPILOGUE_MASK: return tell(kEpilogues, to, size, written);
    case CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS: return tell(uint64_t{0}, to, size, written);
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES: return tell(kByte, to, size, written);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

EXPORT Status cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                   cublasLtMatmulAlgoConfigAttributes_t attribute, const void* from,
                                                   size_t size) {
  constexpr int kLast = CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  // The number is the algorithm's own.
  if (algorithm == nullptr || !isAlgorithm(*algorithm) || from == nullptr || attribute <= CUBLASLT_ALGO_CONFIG_ID ||
      attribute > kLast || size < kFields[attribute].size) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(reinterpret_cast<char*>(algorithm) + kPlace + kFields[attribute].offset, from, kFields[attribute].size);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT Status cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                   cublasLtMatmulAlgoConfigAttributes_t attribute, void* to,
                                                   size_t size, size_t* written) {
  constexpr int kLast = CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  if (algorithm == nullptr || !isAlgorithm(*algorithm) || attribute < 0 || attribute > kLast) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Field& field = kFields[attribute];
  if (written != nullptr) *written = field.size;
  if (size == 0) return written != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;  // the size alone
  if (to == nullptr || size < field.size) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<const char*>(algorithm) + kPlace + field.offset, field.size);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
