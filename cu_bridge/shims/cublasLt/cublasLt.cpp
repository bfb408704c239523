// cuBLASLt: handles and descriptors. What is computed is in matmul.cpp.

#include "matmul.h"

#include <algorithm>

using namespace mxmaca;
using namespace mxmaca::lt;
using Status = cublasStatus_t;

namespace {

// Where an attribute lies in its descriptor.
struct Field {
  int attribute;
  size_t offset, size;
};
#define FIELD(Type, attribute, member) {attribute, offsetof(Type, member), sizeof(Type::member)}

constexpr Field kLayoutFields[] = {
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_ORDER, order),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_COLS, columns),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_LD, ld),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride),
    FIELD(Layout, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, plane),
};
constexpr Field kOperationFields[] = {
    FIELD(Operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scaleType),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, pointerMode),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_TRANSA, transA),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_TRANSB, transB),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_TRANSC, transC),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_FILL_MODE, fillMode),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, biasStride),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, auxLd),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, auxStride),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, alphaStride),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scaleA),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scaleB),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, scaleC),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, scaleD),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, amaxD),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, auxType),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, scaleAux),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, amaxAux),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fastAccumulation),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, biasType),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, modeA),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, modeB),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_C_SCALE_MODE, modeC),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_D_SCALE_MODE, modeD),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, modeAux),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, outScaleD),
    FIELD(Operation, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, outModeD),
};
constexpr Field kPreferenceFields[] = {
    FIELD(Preference, CUBLASLT_MATMUL_PREF_SEARCH_MODE, searchMode),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentA),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentB),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentC),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentD),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, waves),
    FIELD(Preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, implementations),
};
constexpr Field kTransformFields[] = {
    FIELD(Transform, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, scaleType),
    FIELD(Transform, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, pointerMode),
    FIELD(Transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, transA),
    FIELD(Transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, transB),
};
#undef FIELD

template <size_t count>
const Field* find(const Field (&fields)[count], int attribute) {
  const auto* const found =
      std::find_if(fields, fields + count, [=](const Field& field) { return field.attribute == attribute; });
  return found == fields + count ? nullptr : found;
}

template <class Opaque, size_t count>
Status set(Opaque* descriptor, const Field (&fields)[count], int attribute, const void* from, size_t size) {
  const Field* const field = find(fields, attribute);
  if (!live(descriptor) || from == nullptr || field == nullptr || size < field->size) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(reinterpret_cast<char*>(descriptor) + field->offset, from, field->size);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Opaque, size_t count>
Status get(const Opaque* descriptor, const Field (&fields)[count], int attribute, void* to, size_t size,
           size_t* written) {
  const Field* const field = find(fields, attribute);
  if (!live(descriptor) || field == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (written != nullptr) *written = field->size;
  if (size == 0 && written != nullptr) return CUBLAS_STATUS_SUCCESS;  // the size alone was asked for
  if (to == nullptr || size < field->size) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<const char*>(descriptor) + field->offset, field->size);
  return CUBLAS_STATUS_SUCCESS;
}

// The descriptor inside the caller's opaque memory.
template <class Inside, class Opaque>
Status initialize(Opaque* opaque, size_t size, const Inside& value) {
  static_assert(sizeof(Inside) <= sizeof(Opaque), "the descriptor must fit into the caller's memory");
  if (opaque == nullptr || size < sizeof(Inside)) return CUBLAS_STATUS_INVALID_VALUE;
  if (mcHandleAdd(opaque, KindOf<Opaque>::value) == 0) return CUBLAS_STATUS_ALLOC_FAILED;
  new (opaque) Inside(value);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Inside, class Opaque>
Status create(Opaque** opaque, const Inside& value) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto created = std::unique_ptr<Opaque>(new (std::nothrow) Opaque());
  if (created == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  const Status status = initialize(created.get(), sizeof(Opaque), value);
  if (status == CUBLAS_STATUS_SUCCESS) *opaque = created.release();
  return status;
}
Layout makeLayout(cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  Layout layout;
  layout.type = type;
  layout.rows = rows;
  layout.columns = columns;
  layout.ld = ld;
  return layout;
}
Operation makeOperation(cublasComputeType_t compute, cudaDataType scaleType) {
  Operation operation;
  operation.compute = compute;
  operation.scaleType = scaleType;
  return operation;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT Status cublasLtCreate(cublasLtHandle_t* handle) { return createHandle<Status>(handle); }
EXPORT Status cublasLtDestroy(cublasLtHandle_t handle) { return destroyHandle<Status>(handle); }
EXPORT size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
EXPORT size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }
EXPORT Status cublasLtGetProperty(libraryPropertyType type, int* value) {
  return getProperty<Status>(type, value, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH);
}
EXPORT const char* cublasLtGetStatusName(Status status) {
  return statusText(kCublasStatuses, status, &StatusName::name, "CUBLAS_STATUS_UNKNOWN");
}
EXPORT const char* cublasLtGetStatusString(Status status) { return cublasLtGetStatusName(status); }

EXPORT Status cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                uint64_t rows, uint64_t columns, int64_t ld) {
  return initialize(layout, size, makeLayout(type, rows, columns, ld));
}
EXPORT Status cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                         uint64_t columns, int64_t ld) {
  return create(layout, makeLayout(type, rows, columns, ld));
}

EXPORT Status cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size, cublasComputeType_t compute,
                                              cudaDataType scaleType) {
  return initialize(operation, size, makeOperation(compute, scaleType));
}
EXPORT Status cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                       cudaDataType scaleType) {
  return create(operation, makeOperation(compute, scaleType));
}

EXPORT Status cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  return initialize(preference, size, Preference());
}
EXPORT Status cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference());
}

EXPORT Status cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* transform, cudaDataType scaleType) {
  Transform value;
  value.scaleType = scaleType;
  return create(transform, value);
}

// What every kind of descriptor has.
#define SET_ATTRIBUTE(Kind, Attribute, fields)                                                                     \
  EXPORT Status cublasLt##Kind##Destroy(cublasLt##Kind##_t descriptor) {                                           \
    return destroyDescriptor<Status>(descriptor);                                                                  \
  }                                                                                                                \
  EXPORT Status cublasLt##Kind##SetAttribute(cublasLt##Kind##_t descriptor, Attribute attribute, const void* from, \
                                             size_t size) {                                                        \
    return set(descriptor, fields, attribute, from, size);                                                         \
  }
#define GET_ATTRIBUTE(Kind, Attribute, fields)                                                             \
  EXPORT Status cublasLt##Kind##GetAttribute(cublasLt##Kind##_t descriptor, Attribute attribute, void* to, \
                                             size_t size, size_t* written) {                               \
    return get(descriptor, fields, attribute, to, size, written);                                          \
  }
SET_ATTRIBUTE(MatrixLayout, cublasLtMatrixLayoutAttribute_t, kLayoutFields)
GET_ATTRIBUTE(MatrixLayout, cublasLtMatrixLayoutAttribute_t, kLayoutFields)
SET_ATTRIBUTE(MatmulDesc, cublasLtMatmulDescAttributes_t, kOperationFields)
GET_ATTRIBUTE(MatmulDesc, cublasLtMatmulDescAttributes_t, kOperationFields)
SET_ATTRIBUTE(MatmulPreference, cublasLtMatmulPreferenceAttributes_t, kPreferenceFields)
GET_ATTRIBUTE(MatmulPreference, cublasLtMatmulPreferenceAttributes_t, kPreferenceFields)
SET_ATTRIBUTE(MatrixTransformDesc, cublasLtMatrixTransformDescAttributes_t, kTransformFields)

// One algorithm is all there is; a product that it cannot do has none.
EXPORT Status cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                      const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  if (!isHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (result == nullptr || algorithm == nullptr || !isAlgorithm(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  const Status status = check(operation, a, b, c, d);
  *result = {};
  result->algo = *algorithm;
  result->state = status;
  result->wavesCount = 1;
  return status;
}
EXPORT Status cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                             cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                             cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                             cublasLtMatmulPreference_t preference, int wanted,
                                             cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!isHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (found == nullptr || results == nullptr || !live(preference) || wanted < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *found = 0;
  const cublasLtMatmulAlgo_t algorithm = theAlgorithm();
  const Status status = cublasLtMatmulAlgoCheck(handle, operation, a, b, c, d, &algorithm, results);
  if (status == CUBLAS_STATUS_SUCCESS) *found = 1;
  return status;
}

}  // extern "C"
