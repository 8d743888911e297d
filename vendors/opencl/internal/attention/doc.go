// Package attention has the fused attention of vendor.opencl, forward and backward, in tiles of
// queries by keys as in Dao et al. 2022, arXiv:2205.14135. Every sum is computed by one work-item
// in a fixed order: the backward pass goes over the tiles twice, once by queries for dQ and once by
// keys for dK and dV.
package attention
