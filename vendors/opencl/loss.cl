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
    float all = GROUP_SUM(add_lanes(sum));
    all = isinf(high) ? high : high + logarithm(all);
    if (LID == 0) {
      INDEX t = AT(target)[r];
      AT(lse)[r] = all;
      AT(losses)[r] = t == ignore ? 0.0f : NO_TARGET(t) || isinf(all) ? NAN : all - LOAD(X, x + t, 0);
    }
  }
}

// LARGE_LSE is the log-sum-exp from which its rounding to f32 counts.
#define LARGE_LSE 32.0f

// loss_bwd computes the gradient. Where lse is the rounded log-sum-exp of the row, the sum of the
// exponentials is 1 but for that rounding, and they are divided by it.
KERNEL void loss_bwd(MAT(X, x), MAT(X, dx), BUFFER(INDEX, target), VEC(F32, lse), VEC(F32, dlosses), uint rows, uint cols, uint per, long ignore) {
  SHARED;
  GROUP_ROWS(r) {
    __global const TYPE(X) *x = ROW(x, r);
    __global TYPE(X) *dx = ROW(dx, r);
    INDEX t = AT(target)[r];
    float all = AT(lse)[r], d = AT(dlosses)[r];
    bool ignored = t == ignore;
    if (!ignored && NO_TARGET(t))
      d = NAN;
    float scale = 1.0f;
    if (isinf(all)) {
      d = NAN;
      all = 0.0f;
    } else if (fabs(all) >= LARGE_LSE) {
      VF part = 0.0f;
      WHOLE_VECTORS(c) part += exponential(LOADS(X, x, c) - all);
      LAST_VECTOR(c) part += first_lanes(exponential(GET(X, x + c, cols - c) - all), cols - c, 0.0f);
      const float sum = GROUP_SUM(add_lanes(part));
      if (fabs(sum - 1.0f) <= fabs(all) * 0x1p-23f)
        scale = 1.0f / sum;
    }
    COLUMNS(c) {
      uint n = cols - c;
      VF v = exponential(GET(X, x + c, n) - all) * scale;
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
