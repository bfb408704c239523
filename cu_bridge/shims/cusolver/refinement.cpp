// cuSOLVER: how a program wants solutions refined, and what their refinement took (refinement_families.h).

#include "objects.h"

using namespace mxmaca;
using Status = cusolverStatus_t;
using Params = cusolverDnIRSParams_t;
using Infos = cusolverDnIRSInfos_t;

namespace {
bool isSolver(int solver) {
  return (solver >= CUSOLVER_IRS_REFINE_NONE && solver <= CUSOLVER_IRS_REFINE_GMRES_NOPCOND) ||
         (solver >= CUSOLVER_PREC_DD && solver <= CUSOLVER_PREC_SHT);
}
bool isMain(int type) {
  return type == CUSOLVER_R_64F || type == CUSOLVER_R_32F || type == CUSOLVER_C_64F || type == CUSOLVER_C_32F;
}
bool isFloating(int type) {
  return (type >= CUSOLVER_R_64F && type <= CUSOLVER_R_TF32) || (type >= CUSOLVER_C_64F && type <= CUSOLVER_C_TF32);
}

template <class Value>
Status set(Params params, Value cusolverDnIRSParams::* field, Value value, bool valid = true,
           Status otherwise = CUSOLVER_STATUS_IRS_PARAMS_INVALID) {
  if (!live(params)) return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
  if (!valid) return otherwise;
  params->*field = value;
  return CUSOLVER_STATUS_SUCCESS;
}
Status get(Infos infos, int cusolverDnIRSInfos::* field, int* value) {
  if (!live(infos)) return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
  MXMACA_REQUIRE(value != nullptr);
  *value = infos->*field;
  return CUSOLVER_STATUS_SUCCESS;
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cusolverDnIRSParamsCreate(Params* params) { return createDescriptor<Status>(params); }
Status cusolverDnIRSParamsDestroy(Params params) {
  return destroyObject(params) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
}
Status cusolverDnIRSParamsSetRefinementSolver(Params params, cusolverIRSRefinement_t solver) {
  return set(params, &cusolverDnIRSParams::solver, solver, isSolver(solver), CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE);
}
Status cusolverDnIRSParamsSetSolverMainPrecision(Params params, cusolverPrecType_t type) {
  return set(params, &cusolverDnIRSParams::main, type, isMain(type), CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC);
}
Status cusolverDnIRSParamsSetSolverLowestPrecision(Params params, cusolverPrecType_t type) {
  return set(params, &cusolverDnIRSParams::lowest, type, isFloating(type), CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC);
}
Status cusolverDnIRSParamsSetSolverPrecisions(Params params, cusolverPrecType_t main, cusolverPrecType_t lowest) {
  if (live(params) && !isFloating(lowest)) return CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC;
  MXMACA_RETURN_IF_FAILED(cusolverDnIRSParamsSetSolverMainPrecision(params, main));
  return cusolverDnIRSParamsSetSolverLowestPrecision(params, lowest);
}
Status cusolverDnIRSParamsSetTol(Params params, double tolerance) {
  return set(params, &cusolverDnIRSParams::tolerance, tolerance, tolerance >= 0);
}
Status cusolverDnIRSParamsSetTolInner(Params params, double tolerance) {
  return set(params, &cusolverDnIRSParams::innerTolerance, tolerance, tolerance >= 0);
}
Status cusolverDnIRSParamsSetMaxIters(Params params, cusolver_int_t most) {
  MXMACA_RETURN_IF_FAILED(
      set(params, &cusolverDnIRSParams::iterations, most, most >= 0, CUSOLVER_STATUS_IRS_PARAMS_INVALID_MAXITER));
  if (params->innerIterations > most) params->innerIterations = most;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverDnIRSParamsSetMaxItersInner(Params params, cusolver_int_t most) {
  const bool valid = live(params) && most >= 0 && most <= params->iterations;
  return set(params, &cusolverDnIRSParams::innerIterations, most, valid);
}
Status cusolverDnIRSParamsGetMaxIters(Params params, cusolver_int_t* most) {
  if (!live(params)) return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
  MXMACA_REQUIRE(most != nullptr);
  *most = params->iterations;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverDnIRSParamsEnableFallback(Params params) { return set(params, &cusolverDnIRSParams::fallsBack, true); }
Status cusolverDnIRSParamsDisableFallback(Params params) { return set(params, &cusolverDnIRSParams::fallsBack, false); }

Status cusolverDnIRSInfosCreate(Infos* infos) { return createDescriptor<Status>(infos); }
Status cusolverDnIRSInfosDestroy(Infos infos) {
  return destroyObject(infos) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
}
Status cusolverDnIRSInfosGetNiters(Infos infos, cusolver_int_t* iterations) {
  return get(infos, &cusolverDnIRSInfos::iterations, iterations);
}
// There are no inner iterations.
Status cusolverDnIRSInfosGetOuterNiters(Infos infos, cusolver_int_t* iterations) {
  return get(infos, &cusolverDnIRSInfos::iterations, iterations);
}
Status cusolverDnIRSInfosGetMaxIters(Infos infos, cusolver_int_t* most) {
  return get(infos, &cusolverDnIRSInfos::mostIterations, most);
}
Status cusolverDnIRSInfosRequestResidual(Infos infos) {
  if (!live(infos)) return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
  infos->wantsHistory = true;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverDnIRSInfosGetResidualHistory(Infos infos, void** history) {
  if (!live(infos)) return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
  MXMACA_REQUIRE(infos->wantsHistory && history != nullptr);
  *history = infos->wideHistory.empty() ? static_cast<void*>(infos->history.data()) : infos->wideHistory.data();
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
