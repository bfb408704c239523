// cublasLtMatmul and cublasLtMatrixTransform.

#include "matmul.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include "gemm.h"
#include "mc_runtime.h"
#include "numbers.h"
#include "stream_work.h"

namespace mxmaca {
namespace lt {
namespace {

const Layout& inside(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<const Layout*>(layout); }
const Operation& inside(cublasLtMatmulDesc_t operation) { return *reinterpret_cast<const Operation*>(operation); }

// ---- What an epilogue consists of: its number is a set of bits ----------------------------------------------------
enum EpilogueBits {
  kRelu = 2,
  kBias = 4,
  kBackward = 8,
  kBiasGradient = 16,
  kGelu = 32,
  kGeluBackward = 64,
  kAux = 128
};
constexpr int kGradientA = 256;
constexpr int kGradientB = 512;
constexpr int kEpilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_RELU,        CUBLASLT_EPILOGUE_RELU_AUX,
    CUBLASLT_EPILOGUE_BIAS,     CUBLASLT_EPILOGUE_RELU_BIAS,   CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DRELU,    CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_GELU,
    CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_BIAS,   CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,
    CUBLASLT_EPILOGUE_BGRADB,
};

bool isFp8(int32_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

struct Types {
  int compute, ab, c, d, scale;
  Arithmetic arithmetic;
};
constexpr Types kTypes[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, Arithmetic::Half},
    {CUBLAS_COMPUTE_32I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUDA_R_32I, Arithmetic::Integer},
    {CUBLAS_COMPUTE_32I, CUDA_R_8I, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, Arithmetic::Double},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_8I, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Double},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, Arithmetic::Double},
    {CUBLAS_COMPUTE_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, Arithmetic::Double},
};

bool arithmeticOf(const Operation& op, const Layout& a, const Layout& b, const Layout& c, const Layout& d,
                  Arithmetic* arithmetic) {
  if (isFp8(a.type) && isFp8(b.type)) {
    const bool wide = d.type == CUDA_R_16BF || d.type == CUDA_R_16F || d.type == CUDA_R_32F;
    const bool c16 = c.type == CUDA_R_16BF || c.type == CUDA_R_16F;
    *arithmetic = Arithmetic::Float;
    return base(op.compute) == CUBLAS_COMPUTE_32F && op.scaleType == CUDA_R_32F &&
           !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) && (wide ? c.type == d.type : isFp8(d.type) && c16);
  }
  for (const Types& entry : kTypes) {
    if (entry.compute == base(op.compute) && entry.ab == a.type && entry.ab == b.type && entry.c == c.type &&
        entry.d == d.type && entry.scale == op.scaleType) {
      *arithmetic = entry.arithmetic;
      return true;
    }
  }
  return false;
}

bool plainOrder(const Layout& layout) {
  return layout.order == CUBLASLT_ORDER_COL || layout.order == CUBLASLT_ORDER_ROW;
}
// Beyond it the number of elements does not fit into 64 bits.
constexpr uint64_t kGreatestSize = uint64_t{1} << 31;
bool validLd(const Layout& layout) {
  if (layout.rows > kGreatestSize || layout.columns > kGreatestSize) return false;
  const uint64_t inner = layout.order == CUBLASLT_ORDER_ROW ? layout.columns : layout.rows;
  return layout.ld >= static_cast<int64_t>(std::max<uint64_t>(inner, 1));
}

// Element (row, column) of one matrix of the batch.
int64_t place(const Layout& layout, int64_t row, int64_t column) {
  return layout.order == CUBLASLT_ORDER_ROW ? row * layout.ld + column : row + column * layout.ld;
}
template <class Pointer>
Pointer matrixOf(Pointer data, const Layout& layout, int64_t index) {
  using Byte = std::conditional_t<std::is_const<std::remove_pointer_t<Pointer>>::value, const char, char>;
  const auto bytes = static_cast<int64_t>(elementBytes(static_cast<cudaDataType>(layout.type)));
  return static_cast<Byte*>(data) + index * layout.stride * bytes;
}

// A row-major matrix is the transpose of a column-major one.
char effectiveOperation(const Layout& layout, int32_t op) {
  if (layout.order == CUBLASLT_ORDER_COL) return "NTC"[op];
  return op == CUBLAS_OP_N ? 'T' : 'N';
}

template <class T>
T gelu(T x) {
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}
template <class T>
T geluSlope(T x) {
  const T scale = T(0.7978845608028654);
  const T t = std::tanh(scale * (x + T(0.044715) * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * scale * (T(1) + T(3 * 0.044715) * x * x);
}

template <class T>
T valueAs(std::complex<double> value) {
  if constexpr (kComplex<T>) {
    return {static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag())};
  } else {
    return static_cast<T>(value.real());
  }
}
template <class T>
std::complex<double> widened(T value) {
  return std::complex<double>(value);
}

struct Work {
  const Operation& op;
  const Layout &a, &b, &c, &d;
  const void *alpha, *beta;
  const void *dataA, *dataB, *dataC;
  void* dataD;
  int64_t m, n, k;
  Arithmetic arithmetic;
};

cudaDataType typeOf(int32_t type) { return static_cast<cudaDataType>(type); }

// The types of bias and auxiliary matrix where the caller has not set them.
cudaDataType biasType(const Work& w) {
  if (w.op.biasType >= 0) return typeOf(w.op.biasType);
  return isFp8(w.d.type) ? typeOf(w.c.type) : w.d.type == CUDA_R_8I ? CUDA_R_32F : typeOf(w.d.type);
}
cudaDataType auxType(const Work& w) {
  if (w.op.auxType >= 0) return typeOf(w.op.auxType);
  return isFp8(w.d.type) ? typeOf(w.c.type) : typeOf(w.d.type);
}
template <class Pointer>
Pointer advance(Pointer data, cudaDataType type, int64_t elements) {
  return reinterpret_cast<Pointer>(reinterpret_cast<char*>(data) + elements * static_cast<int64_t>(elementBytes(type)));
}

// The gradient of a bias that was added to A or B: sums along the product's inner dimension.
void sumInner(const Work& w, int64_t index, void* bias, bool ofA) {
  const Layout& layout = ofA ? w.a : w.b;
  const void* const data = matrixOf(ofA ? w.dataA : w.dataB, layout, index);
  const bool plain = (ofA ? w.op.transA : w.op.transB) == CUBLAS_OP_N;
  for (int64_t i = 0; i < (ofA ? w.m : w.n); ++i) {
    std::complex<double> sum = 0;
    for (int64_t l = 0; l < w.k; ++l) {
      const bool first = plain == ofA;  // whether i counts the stored matrix's rows
      sum += readElement(data, typeOf(layout.type), first ? place(layout, i, l) : place(layout, l, i));
    }
    writeElement(bias, biasType(w), i, sum);
  }
}

// The product of one pair of matrices of the batch, as far as it does not depend on the types.
Product productOf(const Work& w, int64_t index) {
  Product p;
  p.transA = effectiveOperation(w.a, w.op.transA);
  p.transB = effectiveOperation(w.b, w.op.transB);
  p.m = w.m;
  p.n = w.n;
  p.k = w.k;
  p.a = matrixOf(w.dataA, w.a, index);
  p.aType = typeOf(w.a.type);
  p.lda = w.a.ld;
  p.b = matrixOf(w.dataB, w.b, index);
  p.bType = typeOf(w.b.type);
  p.ldb = w.b.ld;
  return p;
}

template <class T>
void computeOne(const Work& w, int64_t index, float* greatest) {
  const Operation& op = w.op;
  const int epilogue = op.epilogue == CUBLASLT_EPILOGUE_DEFAULT ? 0 : op.epilogue;
  const Product p = productOf(w, index);
  const std::unique_ptr<T[]> product(new T[static_cast<size_t>(w.m * w.n)]);
  plainProduct<T>(p, T(1), product.get());

  const bool alphaVector = op.pointerMode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
  const bool betaVector = op.pointerMode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
  const bool betaZero = op.pointerMode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO;
  const cudaDataType scale = typeOf(op.scaleType);
  const auto scalarAt = [&](const void* pointer, bool vector, int64_t row) {
    return valueAs<T>(readElement(pointer, scale, vector ? row + index * op.alphaStride : 0));
  };
  const bool outerA = op.modeA == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  const bool outerB = op.modeB == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  const auto factor = [](const float* pointer, bool vector, int64_t i) {
    return pointer == nullptr ? 1.F : pointer[vector ? i : 0];
  };
  const void* const c = w.dataC == nullptr ? nullptr : matrixOf(w.dataC, w.c, index);
  void* const d = matrixOf(w.dataD, w.d, index);
  char* const bias = advance(static_cast<char*>(op.bias), biasType(w), index * op.biasStride);
  const bool reluMask = (epilogue & kRelu) != 0 || (epilogue & (kBackward | kGeluBackward)) == kBackward;
  // The mask of relu has one bit for each element; its leading dimension counts bits.
  char* const aux = reluMask ? static_cast<char*>(op.aux) + index * op.auxStride / 8
                             : advance(static_cast<char*>(op.aux), auxType(w), index * op.auxStride);

  for (int64_t j = 0; j < w.n; ++j) {
    for (int64_t i = 0; i < w.m; ++i) {
      T value = product[static_cast<size_t>(i + j * w.m)] * scalarAt(w.alpha, alphaVector, i);
      value *= T(factor(op.scaleA, outerA, i) * factor(op.scaleB, outerB, j));
      if (!betaZero) {
        const T beta = scalarAt(w.beta, betaVector, i);
        if (beta != T(0)) {
          value +=
              beta * T(factor(op.scaleC, false, 0)) * valueAs<T>(readElement(c, typeOf(w.c.type), place(w.c, i, j)));
        }
      }
      if ((epilogue & kBias) != 0) value += valueAs<T>(readElement(bias, biasType(w), i));
      if constexpr (!kComplex<T>) {
        const int64_t at = i + j * op.auxLd;
        if ((epilogue & kRelu) != 0) {
          if ((epilogue & kAux) != 0) {
            const auto bit = static_cast<char>(1 << at % 8);
            aux[at / 8] = static_cast<char>(value > 0 ? aux[at / 8] | bit : aux[at / 8] & ~bit);
          }
          value = value > 0 ? value : value != value ? value : T(0);
        } else if ((epilogue & kGeluBackward) != 0) {
          value *= geluSlope(valueAs<T>(readElement(aux, auxType(w), at)));
        } else if ((epilogue & kGelu) != 0) {
          if ((epilogue & kAux) != 0) {
            writeElement(aux, auxType(w), at, value);
            value = valueAs<T>(value);
          }
          value = gelu(value);
        } else if ((epilogue & kBackward) != 0) {
          value = (aux[at / 8] >> at % 8 & 1) != 0 ? value : T(0);
        }
        *greatest = std::max(*greatest, static_cast<float>(std::fabs(value)));
      }
      product[static_cast<size_t>(i + j * w.m)] = value;
      if (isFp8(w.d.type)) value *= T(factor(op.scaleD, false, 0));
      writeElement(d, typeOf(w.d.type), place(w.d, i, j), widened(value));
    }
  }
  if ((epilogue & kBiasGradient) != 0) {
    for (int64_t i = 0; i < w.m; ++i) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < w.n; ++j) sum += widened(product[static_cast<size_t>(i + j * w.m)]);
      writeElement(bias, biasType(w), i, sum);
    }
  }
  if ((epilogue & kGradientA) != 0) sumInner(w, index, bias, true);
  if ((epilogue & kGradientB) != 0) sumInner(w, index, bias, false);
}

void computeIntegers(const Work& w, int64_t index) {
  const Product p = productOf(w, index);
  const std::unique_ptr<double[]> product(new double[static_cast<size_t>(w.m * w.n)]);
  plainProduct(p, 1.0, product.get());
  const auto alpha = static_cast<uint32_t>(*static_cast<const int32_t*>(w.alpha));
  const auto beta = static_cast<uint32_t>(*static_cast<const int32_t*>(w.beta));
  const auto* const c = static_cast<const uint32_t*>(w.dataC == nullptr ? nullptr : matrixOf(w.dataC, w.c, index));
  auto* const d = static_cast<uint32_t*>(matrixOf(w.dataD, w.d, index));
  for (int64_t j = 0; j < w.n; ++j) {
    for (int64_t i = 0; i < w.m; ++i) {
      const auto sum = static_cast<uint32_t>(static_cast<int64_t>(product[static_cast<size_t>(i + j * w.m)]));
      d[place(w.d, i, j)] = alpha * sum + (beta == 0 ? 0 : beta * c[place(w.c, i, j)]);
    }
  }
}

template <class Work_>
cublasStatus_t guarded(cublasLtHandle_t handle, cudaStream_t stream, Work_&& work,
                       const char* function = __builtin_FUNCTION()) {
  if (phase() == Phase::Plain) {
    if (!isHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (mcStreamCheck(reinterpret_cast<mcStream_t>(stream)) != mcSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return attempt(function, std::forward<Work_>(work));
}

// The functions here name their stream themselves, and the pointer mode lies in a descriptor.
#define LATER(function, handle, ...)                                                                     \
  do {                                                                                                   \
    cublasStatus_t answer_;                                                                              \
    const auto stream_ = reinterpret_cast<mcStream_t>(stream);                                           \
    if (isHandle(handle) && defers(stream_) &&                                                           \
        madeLater(&answer_, stream_, __func__, function, unread(handle), __VA_ARGS__, unread(stream))) { \
      return answer_;                                                                                    \
    }                                                                                                    \
  } while (false)

// Where the descriptor is none, the checks say so.
template <class Inside, class Descriptor>
Scalars<void> scalarsOf(const Descriptor* descriptor, const void* pointer, bool beta) {
  const int32_t mode = live(descriptor) ? reinterpret_cast<const Inside*>(descriptor)->pointerMode : 0;
  const bool mixed = mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST;
  return {pointer, mode == CUBLASLT_POINTER_MODE_HOST || (beta && mixed), 1};
}

bool validOperation(int32_t op) { return op >= CUBLAS_OP_N && op <= CUBLAS_OP_C; }

}  // namespace

cublasStatus_t check(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t layoutA, cublasLtMatrixLayout_t layoutB,
                     cublasLtMatrixLayout_t layoutC, cublasLtMatrixLayout_t layoutD) {
  if (!live(operation) || !live(layoutA) || !live(layoutB) || !live(layoutC) || !live(layoutD)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Operation& op = inside(operation);
  const Layout &a = inside(layoutA), &b = inside(layoutB), &c = inside(layoutC), &d = inside(layoutD);
  if (!validOperation(op.transA) || !validOperation(op.transB)) return CUBLAS_STATUS_INVALID_VALUE;
  if (op.pointerMode < CUBLASLT_POINTER_MODE_HOST ||
      op.pointerMode > CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool plainA = op.transA == CUBLAS_OP_N;
  const bool plainB = op.transB == CUBLAS_OP_N;
  const bool fits = (plainA ? a.rows : a.columns) == d.rows && (plainB ? b.columns : b.rows) == d.columns &&
                    (plainA ? a.columns : a.rows) == (plainB ? b.rows : b.columns) && c.rows == d.rows &&
                    c.columns == d.columns && a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
  if (!fits || d.batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (!plainOrder(*layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!validLd(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  Arithmetic arithmetic;
  if (!arithmeticOf(op, a, b, c, d, &arithmetic)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (std::find(std::begin(kEpilogues), std::end(kEpilogues), op.epilogue) == std::end(kEpilogues)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool plainEpilogue = op.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  const bool complex = isComplex(typeOf(a.type));
  if (!plainEpilogue && (arithmetic == Arithmetic::Integer || complex)) return CUBLAS_STATUS_NOT_SUPPORTED;
  // The conjugate of a row-major matrix without its transpose is nothing that BLAS has.
  if (complex && ((op.transA == CUBLAS_OP_C && a.order == CUBLASLT_ORDER_ROW) ||
                  (op.transB == CUBLAS_OP_C && b.order == CUBLASLT_ORDER_ROW))) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool scalarModes = op.modeC == 0 && op.modeD == 0 && op.modeAux == 0 && op.outModeD == 0;
  const auto simple = [](int32_t mode) {
    return mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F || mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  };
  if (!scalarModes || !simple(op.modeA) || !simple(op.modeB) || op.outScaleD != nullptr || op.scaleAux != nullptr ||
      op.amaxAux != nullptr) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (op.transC != CUBLAS_OP_N || op.fillMode != CUBLAS_FILL_MODE_FULL) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (arithmetic == Arithmetic::Integer && op.pointerMode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

cublasStatus_t matmul(const Work& w) {
  const Operation& op = w.op;
  const int epilogue = op.epilogue == CUBLASLT_EPILOGUE_DEFAULT ? 0 : op.epilogue;
  const bool wantsBias = (epilogue & (kBias | kBiasGradient | kGradientA | kGradientB)) != 0;
  const bool wantsAux = (epilogue & (kAux | kBackward | kGeluBackward)) != 0;
  if ((wantsBias && op.bias == nullptr) || (wantsAux && (op.aux == nullptr || op.auxLd < w.m))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (w.m == 0 || w.n == 0) return CUBLAS_STATUS_SUCCESS;
  reachData();
  const bool complex = isComplex(typeOf(w.a.type));
  float greatest = 0;
  for (int64_t index = 0; index < w.d.batch; ++index) {
    if (w.arithmetic == Arithmetic::Integer) {
      computeIntegers(w, index);
    } else if (w.arithmetic == Arithmetic::Double) {
      complex ? computeOne<std::complex<double>>(w, index, &greatest) : computeOne<double>(w, index, &greatest);
    } else {
      complex ? computeOne<std::complex<float>>(w, index, &greatest) : computeOne<float>(w, index, &greatest);
    }
  }
  if (op.amaxD != nullptr) *op.amaxD = greatest;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace lt
}  // namespace mxmaca

using namespace mxmaca;
using namespace mxmaca::lt;

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                                     const void* A, cublasLtMatrixLayout_t layoutA, const void* B,
                                     cublasLtMatrixLayout_t layoutB, const void* beta, const void* C,
                                     cublasLtMatrixLayout_t layoutC, void* D, cublasLtMatrixLayout_t layoutD,
                                     const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspaceBytes,
                                     cudaStream_t stream) {
  LATER(cublasLtMatmul, handle, operation, scalarsOf<Operation>(operation, alpha, false), A, layoutA, B, layoutB,
        scalarsOf<Operation>(operation, beta, true), C, layoutC, D, layoutD, hostArray(algorithm, 1), unread(workspace),
        workspaceBytes);
  return guarded(handle, stream, [&]() -> cublasStatus_t {
    const cublasStatus_t status = check(operation, layoutA, layoutB, layoutC, layoutD);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const Operation& op = inside(operation);
    const bool betaZero = op.pointerMode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO;
    if (alpha == nullptr || (beta == nullptr && !betaZero) || D == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace == nullptr && workspaceBytes != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (algorithm != nullptr && !isAlgorithm(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
    const Layout& a = inside(layoutA);
    const Layout& d = inside(layoutD);
    const auto k = static_cast<int64_t>(op.transA == CUBLAS_OP_N ? a.columns : a.rows);
    if (k > 0 && d.rows > 0 && d.columns > 0 && (A == nullptr || B == nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
    Work work{op,
              a,
              inside(layoutB),
              inside(layoutC),
              d,
              alpha,
              beta,
              A,
              B,
              C,
              D,
              static_cast<int64_t>(d.rows),
              static_cast<int64_t>(d.columns),
              k,
              Arithmetic::Float};
    arithmeticOf(op, a, work.b, work.c, d, &work.arithmetic);
    if (C == nullptr && !betaZero) {
      const auto scale = typeOf(op.scaleType);
      const bool vector = op.pointerMode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
      if (vector || readElement(beta, scale, 0) != std::complex<double>(0)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    return matmul(work);
  });
}

EXPORT cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t descriptor,
                                              const void* alpha, const void* A, cublasLtMatrixLayout_t layoutA,
                                              const void* beta, const void* B, cublasLtMatrixLayout_t layoutB, void* C,
                                              cublasLtMatrixLayout_t layoutC, cudaStream_t stream) {
  LATER(cublasLtMatrixTransform, handle, descriptor, scalarsOf<Transform>(descriptor, alpha, false), A, layoutA,
        scalarsOf<Transform>(descriptor, beta, true), B, layoutB, C, layoutC);
  return guarded(handle, stream, [&]() -> cublasStatus_t {
    if (!live(descriptor) || !live(layoutA) || !live(layoutC) || alpha == nullptr || A == nullptr || C == nullptr ||
        (B != nullptr && (beta == nullptr || !live(layoutB)))) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    const auto& transform = *reinterpret_cast<const Transform*>(descriptor);
    const Layout& a = inside(layoutA);
    const Layout& b = B != nullptr ? inside(layoutB) : a;
    const Layout& c = inside(layoutC);
    if (!validOperation(transform.transA) || !validOperation(transform.transB)) return CUBLAS_STATUS_INVALID_VALUE;
    for (const Layout* layout : {&a, &b, &c}) {
      if (!plainOrder(*layout) || elementBytes(typeOf(layout->type)) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
      if (!validLd(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    const auto fits = [&](const Layout& x, int32_t op) {
      return (op == CUBLAS_OP_N ? x.rows : x.columns) == c.rows &&
             (op == CUBLAS_OP_N ? x.columns : x.rows) == c.columns && x.batch == c.batch;
    };
    if (!fits(a, transform.transA) || (B != nullptr && !fits(b, transform.transB))) return CUBLAS_STATUS_INVALID_VALUE;
    const auto scale = typeOf(transform.scaleType);
    if (elementBytes(scale) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    reachData();
    const std::complex<double> factorA = readElement(alpha, scale, 0);
    const std::complex<double> factorB = B != nullptr ? readElement(beta, scale, 0) : 0;
    const auto term = [](std::complex<double> factor, const void* data, const Layout& x, int32_t op, int64_t i,
                         int64_t j) -> std::complex<double> {
      if (factor == std::complex<double>(0)) return 0;
      const int64_t at = op == CUBLAS_OP_N ? place(x, i, j) : place(x, j, i);
      const std::complex<double> value = readElement(data, typeOf(x.type), at);
      return factor * (op == CUBLAS_OP_C ? std::conj(value) : value);
    };
    for (int64_t index = 0; index < c.batch; ++index) {
      for (int64_t j = 0; j < static_cast<int64_t>(c.columns); ++j) {
        for (int64_t i = 0; i < static_cast<int64_t>(c.rows); ++i) {
          std::complex<double> value = term(factorA, matrixOf(A, a, index), a, transform.transA, i, j);
          if (B != nullptr) value += term(factorB, matrixOf(B, b, index), b, transform.transB, i, j);
          writeElement(matrixOf(C, c, index), typeOf(c.type), place(c, i, j), value);
        }
      }
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}

}  // extern "C"
