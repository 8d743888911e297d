// Package gemm holds the impls of matrix products: generic_gemm and te_general_grouped_gemm.
//
// A product is cut into tiles of its result and, along the inner axis, into blocks that stay in the
// caches. Blocks of both operands are packed to panels in the order in which the kernel of the
// machine reads them; bias, GELU and its gradient are applied while the tile is still in the cache.
// Products of few rows are cut by columns and packed nowhere.
package gemm
