"""The words of programs: functions by what they take, and how often each family of steps comes."""

from __future__ import annotations

from typing import Dict

UNARY = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj_physical", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "i0", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit", "nan_to_num", "neg",
    "positive", "rad2deg", "real", "reciprocal", "relu", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc", "special.entr", "special.i0e", "special.i1", "special.i1e",
    "special.ndtr", "special.log_ndtr", "special.erfcx", "special.ndtri", "resolve_conj", "resolve_neg", "clone", "detach",
    "ones_like", "zeros_like", "selu", "celu", "special.bessel_j0", "special.expit", "special.psi",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "float_power", "atan2", "copysign",
    "nextafter", "hypot", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "xlogy", "special.xlog1py",
    "special.zeta", "heaviside", "gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift", "logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge", "isclose", "ldexp",
    "igamma", "igammac", "rsub", "complex", "polar", "dist", "equal", "allclose", "can_cast",
)  # fmt: skip
# Those that also take a number on either side.
COMMON = (
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "remainder",
    "fmod",
    "floor_divide",
    "copysign",
    "xlogy",
    "atan2",
    "nextafter",
    "true_divide",
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">=", "&", "|", "^", "<<", ">>")
NO_OUT = ("positive", "real", "resolve_conj", "resolve_neg", "clone", "detach", "ones_like", "zeros_like", "isfinite", "isinf",
          "isnan", "isreal", "relu", "isclose", "dist", "equal", "allclose", "rsub", "selu", "celu", "can_cast")  # fmt: skip
REDUCTIONS = (
    "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "nansum", "nanmean", "std", "var",
    "std_mean", "var_mean", "median", "nanmedian", "mode", "logsumexp", "norm", "count_nonzero", "cumsum", "cumprod", "cummax",
    "cummin", "logcumsumexp", "softmax", "log_softmax", "aminmax", "linalg.vector_norm", "sort", "argsort", "unique", "msort", "diff",
)  # fmt: skip
WITHOUT_DIM = ("unique", "msort", "linalg.vector_norm", "logsumexp_")
NEED_DIM = (
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "softmax",
    "log_softmax",
    "logsumexp",
    "amax",
    "amin",
    "mode",
    "sort",
)
LISTS_OF_DIMS = (
    "sum",
    "mean",
    "amax",
    "amin",
    "nansum",
    "nanmean",
    "std",
    "var",
    "std_mean",
    "var_mean",
    "logsumexp",
    "norm",
    "count_nonzero",
    "any",
    "all",
)
KEEPDIM = ("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "nansum", "nanmean", "std", "var",
           "std_mean", "var_mean", "median", "nanmedian", "mode", "logsumexp", "norm", "linalg.vector_norm")  # fmt: skip
DTYPE_ARGUMENT = (
    "sum",
    "mean",
    "prod",
    "nansum",
    "nanmean",
    "cumsum",
    "cumprod",
    "softmax",
    "log_softmax",
    "norm",
    "linalg.vector_norm",
)
TENSOR_METHODS_INPLACE = (
    "abs_", "acos_", "atan_", "ceil_", "cos_", "exp_", "expm1_", "floor_", "frac_", "log_", "log1p_", "logical_not_", "neg_",
    "reciprocal_", "relu_", "round_", "rsqrt_", "sigmoid_", "sign_", "sgn_", "sin_", "sqrt_", "square_", "tanh_", "trunc_", "zero_",
    "erf_", "erfinv_", "digamma_", "lgamma_", "i0_", "sinc_", "nan_to_num_", "bitwise_not_", "conj_physical_", "deg2rad_", "t_",
    "squeeze_", "detach_", "exp2_", "asinh_",
)  # fmt: skip
BINARY_INPLACE = (
    "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "fmod_", "pow_", "atan2_", "copysign_", "nextafter_", "hypot_",
    "xlogy_", "bitwise_and_", "bitwise_or_", "bitwise_xor_", "logical_and_", "logical_or_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
    "copy_", "heaviside_", "float_power_", "ldexp_", "gcd_", "lcm_", "igamma_", "true_divide_",
)  # fmt: skip
ACTIVATIONS = (
    "F.relu", "F.gelu", "F.silu", "F.elu", "F.selu", "F.celu", "F.leaky_relu", "F.hardtanh", "F.hardswish", "F.hardsigmoid",
    "F.softplus", "F.mish", "F.logsigmoid", "F.softsign", "F.tanhshrink", "F.hardshrink", "F.softshrink", "F.relu6", "F.glu",
    "F.normalize", "torch.tanh", "torch.sigmoid",
)  # fmt: skip
LOSSES = (
    "F.mse_loss", "F.l1_loss", "F.smooth_l1_loss", "F.huber_loss", "F.kl_div", "F.binary_cross_entropy_with_logits",
    "F.soft_margin_loss", "F.poisson_nll_loss", "F.cosine_similarity", "F.pairwise_distance", "F.binary_cross_entropy",
    "F.hinge_embedding_loss",
)  # fmt: skip
# A family's share of the steps.
FAMILIES: Dict[str, int] = {
    "leaf": 6, "unary": 10, "activation": 3, "binary": 14, "operator": 6, "inplace": 12, "augmented": 5, "getitem": 4, "view": 14,
    "ternary": 6, "reduction": 10, "ordering": 5, "indexing": 9, "rearranged": 6, "copying": 9, "products": 8, "network": 9, "fourier": 2,
    "linalg": 2, "random": 2, "lists": 2, "gradient": 7, "differentiable": 2, "switch": 1, "traced": 2, "transformed": 2,
    "graphed": 1, "trained": 1, "functional_module": 2, "sample": 12,
}  # fmt: skip
