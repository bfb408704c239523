#pragma once

#include <torch/library.h>

namespace macatorch {

/// convolution and its backward, cudnn_convolution*, depthwise convolutions.
void register_convolutions(torch::Library& cuda);
/// cudnn_batch_norm and the batch_norm_* parts of SyncBatchNorm.
void register_normalizations(torch::Library& cuda);
/// Dropout that draws from the CUDA generator.
void register_dropout(torch::Library& cuda);
/// _cudnn_rnn and its backward, flattened weights, fused LSTM and GRU cells.
void register_recurrent(torch::Library& cuda);
/// grid_sample and affine_grid in cuDNN's form.
void register_grid_samplers(torch::Library& cuda);
/// softmax and log_softmax that change the dtype on the way.
void register_softmax(torch::Library& cuda);
/// Integers and booleans where only CUDA's kernel takes them: histc, trace, abs.
void register_dtypes(torch::Library& cuda);
/// Three-dimensional pooling of one volume, and into an `out` that is not contiguous.
void register_pooling(torch::Library& cuda);
/// ctc_loss.
void register_losses(torch::Library& cuda);
/// scaled_dot_product_attention: flash, memory-efficient and cuDNN forms, forward and backward.
void register_attention(torch::Library& cuda);
/// Flash and memory-efficient attention as libraries call them: sequences of different lengths.
void register_sequence_attention(torch::Library& cuda);
/// Random numbers that are a function of a key alone.
void register_stateless_random(torch::Library& cuda);
/// Random numbers in place, in the order of memory.
void register_random_fills(torch::Library& cuda);
/// Products of batches of compressed sparse matrices.
void register_sparse_products();
/// Sums of two coordinate lists.
void register_sparse_sums();
/// embedding_bag and what its backward passes are given.
void register_embedding_bag(torch::Library& cuda);
/// Where LAPACK raises and CUDA's solvers do not.
void register_linear_algebra(torch::Library& cuda);
/// Functions of complex numbers at infinities, near zero and where a square overflows.
void register_complex_functions(torch::Library& cuda);
/// Operators on lists: complex numbers, booleans, and where a list's scalars lie.
void register_foreach(torch::Library& cuda);
/// Sums and differences of low precision with a factor, rounded once.
void register_sums(torch::Library& cuda);
/// Products of dense matrices: integers, which CUDA refuses, and results whose rows are not aligned.
void register_dense_products(torch::Library& cuda);
/// Integer quotients and remainders by 0 and -1.
void register_integer_division(torch::Library& cuda);
/// Fourier transforms, laid out as cuFFT's.
void register_fourier(torch::Library& cuda);
/// Sums without NaN, permutations of nothing, scattered reductions, distances.
void register_reductions(torch::Library& cuda);
/// log_sigmoid without a buffer.
void register_log_sigmoid(torch::Library& cuda);
/// Nested tensors times dense ones.
void register_nested();
/// Function tables of sparse operators.
void register_sparse_stubs();
/// Matrix products with scales, groups, another result dtype, or packed 4-bit weights.
void register_matrix_products(torch::Library& cuda);
/// 2:4 semi-structured sparse matrices.
void register_semi_structured(torch::Library& cuda);

}  // namespace macatorch
