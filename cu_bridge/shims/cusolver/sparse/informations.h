// What the handles and informations of cuSOLVER's sparse part are.
#pragma once

#include <memory>

#include "objects.h"
#include "sparse/factors.h"

#pragma GCC visibility push(default)
#include "cusolverRf.h"
#include "cusolverSp_LOWLEVEL_PREVIEW.h"
#pragma GCC visibility pop

namespace mxmaca {
namespace cusolver {

// Something of a type that is known by its letter.
struct AnyType {
  char letter = 0;
  std::shared_ptr<const void> held;

  template <class T, class Held>
  void keep(Held value) {
    held = std::make_shared<const Held>(std::move(value));
    letter = Scalar<T>::letter;
  }
  // Null where nothing, or something of another type, is there.
  template <class T, class Held>
  const Held* get() const {
    return letter == Scalar<T>::letter ? static_cast<const Held*>(held.get()) : nullptr;
  }
};
// A matrix that has been analysed, and then its factors.
struct Analysed {
  int rows = -1, columns = -1, count = 0;  // -1: not yet
  AnyType factors;

  bool isOf(int m, int n, int nnz) const { return rows == m && columns == n && count == nnz; }
};
struct AnalysedQr : Analysed {
  sparse::QrTree tree;
  AnyType matrix;  // as set up, shifted
};

}  // namespace cusolver
}  // namespace mxmaca

struct csrluInfoHost : mxmaca::cusolver::Analysed {};
struct csrcholInfo : mxmaca::cusolver::Analysed {};
struct csrcholInfoHost : mxmaca::cusolver::Analysed {};
struct csrqrInfo : mxmaca::cusolver::AnalysedQr {};
struct csrqrInfoHost : mxmaca::cusolver::AnalysedQr {};

MXMACA_OBJECT(cusolverSpContext, CusolverSparse);
MXMACA_OBJECT(csrluInfoHost, CusolverLu);
MXMACA_OBJECT(csrqrInfo, CusolverQr);
MXMACA_OBJECT(csrqrInfoHost, CusolverQrHost);
MXMACA_OBJECT(csrcholInfo, CusolverCholesky);
MXMACA_OBJECT(csrcholInfoHost, CusolverCholeskyHost);
