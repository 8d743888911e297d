// Options: X names the storage of operands; CAUSAL: row i of sq has the columns up to i + cols -
// sq; REPLACE: a mask of U8 replaces elements; ADDED: a mask with storage K is added.

#ifdef CAUSAL
#define COLUMNS_OF(r) (uint) clamp((int)((r) % sq + 1) + (int)cols - (int)sq, 0, (int)cols)
#else
#define COLUMNS_OF(r) cols
#endif

#if defined(REPLACE)
#define MASKED -10000.0f
VF logits(__global const TYPE(X) *x, __global const uchar *mask, uint n, float scale) {
  float part[W];
  for (uint i = 0; i < W; i++)
    part[i] = i < n ? (mask[i] == 1 ? MASKED : scale * LOAD(X, x + i, 0)) : -INFINITY;
  return VLOAD(0, part);
}
#define LOGITS(c) logits(x + c, mask + c, n - c, scale)
#elif defined(ADDED)
#define LOGITS(c) (scale * GET(X, x + c, n - c) + GET(K, mask + c, n - c))
#else
#define LOGITS(c) (scale * GET(X, x + c, n - c))
#endif

KERNEL void softmax_fwd(MAT(X, x), MAT(X, y),
#ifdef REPLACE
  MAT(U8, mask),
#endif
#ifdef ADDED
  MAT(K, mask),
#endif
  uint rows, uint cols, uint per, float scale, uint sq, uint heads, uint batches) {
  SHARED;
  GROUP_ROWS(r) {
    __global const TYPE(X) *x = ROW(x, r);
    __global TYPE(X) *y = ROW(y, r);
#ifdef REPLACE
    __global const uchar *mask = ROW(mask, r / sq / heads % batches * sq + r % sq);
#endif
#ifdef ADDED
    __global const TYPE(K) *mask = ROW(mask, r / sq / heads % batches * sq + r % sq);
#endif
    uint n = COLUMNS_OF(r);
    VF top = -INFINITY, sum = 0.0f;
    for (uint c = LID * W; c < n; c += GROUP * W)
      top = larger(top, first_lanes(LOGITS(c), n - c, -INFINITY));
    float high = GROUP_MAX(max_lanes(top));
    for (uint c = LID * W; c < n; c += GROUP * W)
      sum += first_lanes(exponential(LOGITS(c) - high), n - c, 0.0f);
    float all = GROUP_SUM(add_lanes(sum));
#ifdef REPLACE
    float by = high == MASKED ? 0.0f : 1.0f / all;
#else
    float by = 1.0f / all;
#endif
    COLUMNS(c) {
      VF v = 0.0f;
      if (c < n)
        v = first_lanes(exponential(LOGITS(c) - high) * by, n - c, 0.0f);
      SET(X, y + c, v, cols - c);
    }
  }
}

KERNEL void softmax_bwd(MAT(X, dy), MAT(X, y), MAT(X, dx), uint rows, uint cols, uint per, float scale, uint sq) {
  SHARED;
  GROUP_ROWS(r) {
    __global const TYPE(X) *dy = ROW(dy, r);
    __global const TYPE(X) *y = ROW(y, r);
    __global TYPE(X) *dx = ROW(dx, r);
    uint n = COLUMNS_OF(r);
    VF sum = 0.0f;
    for (uint c = LID * W; c < n; c += GROUP * W)
      sum += GET(X, dy + c, n - c) * GET(X, y + c, n - c);
    float along = GROUP_SUM(add_lanes(sum));
    COLUMNS(c) {
      VF v = 0.0f;
      if (c < n)
        v = first_lanes(scale * GET(X, y + c, n - c) * (GET(X, dy + c, n - c) - along), n - c, 0.0f);
      SET(X, dx + c, v, cols - c);
    }
  }
}
