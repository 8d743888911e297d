// Options: X names the storage of the elements.

// A work-item takes BLOCK elements at a time: lane l of the vectors has the four numbers of
// elements 4l to 4l + 3.
#define BLOCK (4 * W)

// apply scales the elements whose bit is set and clears the others.
void apply(__global const TYPE(X) *x, __global TYPE(X) *y, ulong bits, ulong n, float by) {
  for (uint i = 0; i < BLOCK && i < n; i += W) {
    VU keep = (VU)(uint)(bits >> i) >> PHILOX_LANES & 1u;
    SET(X, y + i, select((VF)0.0f, GET(X, x + i, n - i) * by, keep != 0u), n - i);
  }
}

KERNEL void dropout_fwd(VEC(X, x), VEC(X, y), BUFFER(uchar, mask), ulong n, uint per, float by, uint limit,
                        ulong seed, ulong offset) {
  ITEMS(i, (n + BLOCK - 1) / BLOCK, per) {
    ulong first = i * BLOCK, left = min(n - first, (ulong)BLOCK), bits = 0;
    uint lane[W];
    VSTORE(at_least(offset + i * W, seed, limit), 0, lane);
    for (uint l = 0; l < W; l++)
      bits |= (ulong)lane[l] << 4 * l;
    if (left < BLOCK)
      bits &= (1ul << left) - 1;
    __global uchar *mask = AT(mask) + first / 8;
    for (uint j = 0; 8 * j < left; j++)
      mask[j] = (uchar)(bits >> 8 * j);
    apply(AT(x) + first, AT(y) + first, bits, left, by);
  }
}

KERNEL void dropout_bwd(VEC(X, dy), BUFFER(uchar, mask), VEC(X, dx), ulong n, uint per, float by) {
  ITEMS(i, (n + BLOCK - 1) / BLOCK, per) {
    ulong first = i * BLOCK, left = min(n - first, (ulong)BLOCK), bits = 0;
    __global const uchar *mask = AT(mask) + first / 8;
    for (uint j = 0; 8 * j < left; j++)
      bits |= (ulong)mask[j] << 8 * j;
    apply(AT(dy) + first, AT(dx) + first, bits, left, by);
  }
}
