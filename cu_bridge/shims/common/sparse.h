// The plain description of a sparse matrix that cuSPARSE hands out and cuSOLVER takes.
#pragma once

#include "library.h"

#pragma GCC visibility push(default)
#include "cusparse.h"
#pragma GCC visibility pop

struct cusparseMatDescr {
  cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};

MXMACA_OBJECT(cusparseMatDescr, CusparseMatrix);
MXMACA_RANGE(cusparseIndexBase_t, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_INDEX_BASE_ONE);
MXMACA_RANGE(cusparseMatrixType_t, CUSPARSE_MATRIX_TYPE_GENERAL, CUSPARSE_MATRIX_TYPE_TRIANGULAR);
MXMACA_RANGE(cusparseFillMode_t, CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER);
MXMACA_RANGE(cusparseDiagType_t, CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_DIAG_TYPE_UNIT);
