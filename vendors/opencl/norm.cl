// Options: X, K, B, Y, DZ, A name storage; MU: rows are shifted by their mean. Operands that a call
// lacks are null, and has_x says whether x is there.

// norm_fwd normalises each row by its root mean square, or by its deviation from its mean.
KERNEL void norm_fwd(MAT(X, x), MAT(Y, y), VEC(F32, rsigma), VEC(K, w),
#ifdef MU
  VEC(F32, mu),
#endif
  VEC(B, b), int has_b, uint rows, uint cols, uint per, float eps, float one) {
  SHARED;
  GROUP_ROWS(r) {
    __global const TYPE(X) *x = ROW(x, r);
    __global TYPE(Y) *y = ROW(y, r);
    VF sum = 0.0f;
    float mean = 0.0f;
#ifdef MU
    COLUMNS(c) sum += GET(X, x + c, cols - c);
    mean = GROUP_SUM(add_lanes(sum)) / cols;
    sum = 0.0f;
    COLUMNS(c) {
      VF d = first_lanes(GET(X, x + c, cols - c) - mean, cols - c, 0.0f);
      sum += d * d;
    }
#else
    COLUMNS(c) {
      VF d = GET(X, x + c, cols - c);
      sum += d * d;
    }
#endif
    float sigma = 1.0f / sqrt(GROUP_SUM(add_lanes(sum)) / cols + eps);
    COLUMNS(c) {
      uint n = cols - c;
      VF v = (GET(X, x + c, n) - mean) * sigma * (GET(K, AT(w) + c, n) + one);
      if (has_b)
        v += GET(B, AT(b) + c, n);
      SET(Y, y + c, v, n);
    }
    if (LID == 0) {
      AT(rsigma)[r] = sigma;
#ifdef MU
      AT(mu)[r] = mean;
#endif
    }
  }
}

// norm_bwd stores the gradient of the rows of each group and adds up those of gamma and beta in one
// row of sums for each group: [groups, 2, cols]. Each work-item owns its columns.
KERNEL void norm_bwd(MAT(DZ, dz), MAT(X, x), MAT(Y, dx), VEC(F32, rsigma), VEC(K, w), VEC(F32, sums),
#ifdef MU
  VEC(F32, mu),
#endif
  MAT(A, add), int has_add, int has_dbeta, uint rows, uint cols, uint per, float one) {
  SHARED;
  __global float *dgamma = AT(sums) + (ulong)GID * 2 * cols;
  __global float *dbeta = dgamma + cols;
  COLUMNS(c) {
    SET(F32, dgamma + c, 0.0f, cols - c);
    if (has_dbeta)
      SET(F32, dbeta + c, 0.0f, cols - c);
  }
  GROUP_ROWS(r) {
    __global const TYPE(DZ) *dz = ROW(dz, r);
    __global const TYPE(X) *x = ROW(x, r);
    __global TYPE(Y) *dx = ROW(dx, r);
    float sigma = AT(rsigma)[r], mean = 0.0f;
#ifdef MU
    mean = AT(mu)[r];
#endif
    VF along = 0.0f, across = 0.0f;
    COLUMNS(c) {
      uint n = cols - c;
      VF d = GET(DZ, dz + c, n), hat = (GET(X, x + c, n) - mean) * sigma;
      VF g = d * (GET(K, AT(w) + c, n) + one);
      along += g * hat;
      SET(F32, dgamma + c, GET(F32, dgamma + c, n) + d * hat, n);
#ifdef MU
      across += g;
#endif
      if (has_dbeta)
        SET(F32, dbeta + c, GET(F32, dbeta + c, n) + d, n);
    }
    float a = GROUP_SUM(add_lanes(along)) / cols, b = 0.0f;
#ifdef MU
    b = GROUP_SUM(add_lanes(across)) / cols;
#endif
    COLUMNS(c) {
      uint n = cols - c;
      VF hat = (GET(X, x + c, n) - mean) * sigma;
      VF v = sigma * (GET(DZ, dz + c, n) * (GET(K, AT(w) + c, n) + one) - b - hat * a);
      if (has_add)
        v += GET(A, ROW(add, r) + c, n);
      SET(Y, dx + c, v, n);
    }
  }
}
KERNEL void residual_add(MAT(X, a), MAT(X, b), MAT(X, out), EACH_ARGS) {
  EACH(r, c) SET(X, ROW(out, r) + c, GET(X, ROW(a, r) + c, cols - c) + GET(X, ROW(b, r) + c, cols - c), cols - c);
}
