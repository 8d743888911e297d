// Options: X names the storage of the logits, INDEX is the type of the targets.

#define NO_TARGET(t) ((t) < 0 || (t) >= (INDEX)cols)

// loss_fwd computes the log-sum-exp of each row and the loss of its target. A target outside of the
// row gives NaN.
KERNEL void loss_fwd(MAT(X, x), BUFFER(INDEX, target), VEC(F32, losses), VEC(F32, lse), uint rows, uint cols, uint per, long ignore) {
  SHARED;
  GROUP_ROWS(r) {
    __global const TYPE(X) *x = ROW(x, r);
    VF top = -INFINITY, sum = 0.0f;
    WHOLE_VECTORS(c) top = larger(top, LOADS(X, x, c));
    LAST_VECTOR(c) top = larger(top, first_lanes(GET(X, x + c, cols - c), cols - c, -INFINITY));
    float high = GROUP_MAX(max_lanes(top));
    WHOLE_VECTORS(c) sum += exponential(LOADS(X, x, c) - high);
    LAST_VECTOR(c) sum += first_lanes(exponential(GET(X, x + c, cols - c) - high), cols - c, 0.0f);
    float all = high + logarithm(GROUP_SUM(add_lanes(sum)));
    if (LID == 0) {
      INDEX t = AT(target)[r];
      AT(lse)[r] = all;
      AT(losses)[r] = t == ignore ? 0.0f : NO_TARGET(t) ? NAN : all - LOAD(X, x + t, 0);
    }
  }
}

KERNEL void loss_bwd(MAT(X, x), MAT(X, dx), BUFFER(INDEX, target), VEC(F32, lse), VEC(F32, dlosses), uint rows, uint cols, uint per, long ignore) {
  GROUP_ROWS(r) {
    __global const TYPE(X) *x = ROW(x, r);
    __global TYPE(X) *dx = ROW(dx, r);
    INDEX t = AT(target)[r];
    float all = AT(lse)[r], d = AT(dlosses)[r];
    bool ignored = t == ignore;
    if (!ignored && NO_TARGET(t))
      d = NAN;
    COLUMNS(c) {
      uint n = cols - c;
      VF v = exponential(GET(X, x + c, n) - all);
      if (t >= c && t < c + W) {
        float part[W];
        VSTORE(v, 0, part);
        part[t - c] -= 1.0f;
        v = VLOAD(0, part);
      }
      SET(X, dx + c, ignored ? (VF)0.0f : d * v, n);
    }
  }
}
