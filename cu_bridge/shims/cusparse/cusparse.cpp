// cuSPARSE: handles and plain matrix descriptors.

#include "descriptors.h"

using namespace mxmaca;
using Status = cusparseStatus_t;

namespace {

constexpr StatusName kStatuses[] = {
    MXMACA_STATUS(CUSPARSE_STATUS_SUCCESS, "success"),
    MXMACA_STATUS(CUSPARSE_STATUS_NOT_INITIALIZED, "not initialized"),
    MXMACA_STATUS(CUSPARSE_STATUS_ALLOC_FAILED, "allocation failed"),
    MXMACA_STATUS(CUSPARSE_STATUS_INVALID_VALUE, "invalid value"),
    MXMACA_STATUS(CUSPARSE_STATUS_ARCH_MISMATCH, "architecture mismatch"),
    MXMACA_STATUS(CUSPARSE_STATUS_MAPPING_ERROR, "mapping error"),
    MXMACA_STATUS(CUSPARSE_STATUS_EXECUTION_FAILED, "execution failed"),
    MXMACA_STATUS(CUSPARSE_STATUS_INTERNAL_ERROR, "internal error"),
    MXMACA_STATUS(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED, "matrix type not supported"),
    MXMACA_STATUS(CUSPARSE_STATUS_ZERO_PIVOT, "zero pivot"),
    MXMACA_STATUS(CUSPARSE_STATUS_NOT_SUPPORTED, "operation not supported"),
    MXMACA_STATUS(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, "insufficient resources"),
};

template <class Field>
Status set(cusparseMatDescr_t descr, Field cusparseMatDescr::* field, Field value) {
  MXMACA_REQUIRE(live(descr) && valid(value));
  descr->*field = value;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cusparseCreate(cusparseHandle_t* handle) { return createHandle<Status>(handle); }
Status cusparseDestroy(cusparseHandle_t handle) { return destroyHandle<Status>(handle); }
Status cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) { return setStream<Status>(handle, stream); }
Status cusparseGetStream(cusparseHandle_t handle, cudaStream_t* stream) { return getStream<Status>(handle, stream); }
Status cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
  return setField<Status>(handle, &LibraryHandle::pointerMode, mode,
                          mode == CUSPARSE_POINTER_MODE_HOST || mode == CUSPARSE_POINTER_MODE_DEVICE);
}
Status cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t* mode) {
  return getField<Status>(handle, &LibraryHandle::pointerMode, mode);
}
Status cusparseGetVersion(cusparseHandle_t handle, int* version) {
  return live(handle) ? getVersion<Status>(version, CUSPARSE_VERSION) : CUSPARSE_STATUS_NOT_INITIALIZED;
}
const char* cusparseGetErrorName(Status status) {
  return statusText(kStatuses, status, &StatusName::name, "unrecognized error code");
}
const char* cusparseGetErrorString(Status status) {
  return statusText(kStatuses, status, &StatusName::text, "unrecognized error code");
}

Status cusparseCreateMatDescr(cusparseMatDescr_t* descr) { return createDescriptor<Status>(descr); }
Status cusparseDestroyMatDescr(cusparseMatDescr_t descr) { return destroyDescriptor<Status>(descr); }
Status cusparseSetMatType(cusparseMatDescr_t descr, cusparseMatrixType_t type) {
  return set(descr, &cusparseMatDescr::type, type);
}
Status cusparseSetMatFillMode(cusparseMatDescr_t descr, cusparseFillMode_t mode) {
  return set(descr, &cusparseMatDescr::fill, mode);
}
Status cusparseSetMatDiagType(cusparseMatDescr_t descr, cusparseDiagType_t type) {
  return set(descr, &cusparseMatDescr::diagonal, type);
}
Status cusparseSetMatIndexBase(cusparseMatDescr_t descr, cusparseIndexBase_t base) {
  return set(descr, &cusparseMatDescr::base, base);
}

}  // extern "C"
#pragma GCC visibility pop
