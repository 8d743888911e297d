// Options: X names the storage of the elements.

// A work-item takes BLOCK elements at a time: lane l of the vectors has the four numbers of
// elements 4l to 4l + 3.
#define BLOCK (4 * W)

#if W == 4
#define LANES (VU)(0, 1, 2, 3)
#elif W == 8
#define LANES (VU)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define LANES (VU)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#endif
#define WIDE JOIN(convert_ulong, W)
#define NARROW JOIN(convert_uint, W)

// kept returns for each lane the bits of its four elements that are kept, by Philox4x32-10.
VU kept(ulong counter, uint2 key, uint limit) {
  VU x = (uint)counter + LANES, y = (uint)(counter >> 32), z = 0, w = 0;
  y = select(y, y + 1, x < LANES);
  for (int round = 0; round < 10; round++) {
    JOIN(ulong, W) p = WIDE(x) * 0xD2511F53ul, q = WIDE(z) * 0xCD9E8D57ul;
    x = NARROW(q >> 32) ^ y ^ key.x;
    z = NARROW(p >> 32) ^ w ^ key.y;
    y = NARROW(q);
    w = NARROW(p);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return select((VU)0, (VU)1, x >= limit) | select((VU)0, (VU)2, y >= limit) |
         select((VU)0, (VU)4, z >= limit) | select((VU)0, (VU)8, w >= limit);
}

// apply scales the elements whose bit is set and clears the others.
void apply(__global const TYPE(X) *x, __global TYPE(X) *y, ulong bits, ulong n, float by) {
  for (uint i = 0; i < BLOCK && i < n; i += W) {
    VU keep = (VU)(uint)(bits >> i) >> LANES & 1u;
    SET(X, y + i, select((VF)0.0f, GET(X, x + i, n - i) * by, keep != 0u), n - i);
  }
}

KERNEL void dropout_fwd(VEC(X, x), VEC(X, y), BUFFER(uchar, mask), ulong n, uint per, float by, uint limit,
                        ulong seed, ulong offset) {
  ITEMS(i, (n + BLOCK - 1) / BLOCK, per) {
    ulong first = i * BLOCK, left = min(n - first, (ulong)BLOCK), bits = 0;
    uint lane[W];
    JOIN(vstore, W)(kept(offset + i * W, (uint2)((uint)seed, (uint)(seed >> 32)), limit), 0, lane);
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
