// Options: X names the storage of all operands. The argument f of kernels is one of these
// functions.
#define GELU 0
#define GELU_ERF 1
#define QGELU 2
#define RELU 3
#define SRELU 4
#define SILU 5
#define LOGISTIC 6

VF logistic(VF x) { return 1.0f / (1.0f + exponential(-x)); }

// gelu_gate is 1/2 + tanh(u)/2 of gelu, as the logistic function of 2u.
VF gelu_gate(VF x) { return logistic(1.5957691216057308f * (x + 0.044715f * x * x * x)); }

VF f_gelu(VF x) { return x * gelu_gate(x); }
VF d_gelu(VF x) {
  VF s = gelu_gate(x);
  return s + x * (s * (1.0f - s)) * (1.5957691216057308f * (1.0f + 0.134145f * x * x));
}
VF f_gelu_erf(VF x) { return x * (0.5f * erfc(-0.70710678f * x)); }
VF d_gelu_erf(VF x) { return 0.5f * erfc(-0.70710678f * x) + x * (0.39894228f * exponential(-0.5f * x * x)); }
VF f_qgelu(VF x) { return x * logistic(1.702f * x); }
VF d_qgelu(VF x) {
  VF s = logistic(1.702f * x);
  return s + 1.702f * x * s * (1.0f - s);
}
VF f_silu(VF x) { return x * logistic(x); }
VF d_silu(VF x) {
  VF s = logistic(x);
  return s + x * s * (1.0f - s);
}
VF f_relu(VF x) { return select(x, (VF)0.0f, x < 0.0f); }
VF d_relu(VF x) { return select(select(x, (VF)0.0f, x <= 0.0f), (VF)1.0f, x > 0.0f); }
VF f_srelu(VF x) {
  VF y = f_relu(x);
  return y * y;
}
VF d_srelu(VF x) { return 2.0f * f_relu(x); }
VF f_logistic(VF x) { return logistic(x); }
VF d_logistic(VF x) {
  VF s = logistic(x);
  return s * (1.0f - s);
}

#define SWITCH(call)                                                                               \
  switch (f) {                                                                                     \
  case GELU: return call##_gelu(x);                                                                \
  case GELU_ERF: return call##_gelu_erf(x);                                                        \
  case QGELU: return call##_qgelu(x);                                                              \
  case RELU: return call##_relu(x);                                                                \
  case SRELU: return call##_srelu(x);                                                              \
  case SILU: return call##_silu(x);                                                                \
  default: return call##_logistic(x);                                                              \
  }

VF function(int f, VF x) { SWITCH(f) }
VF derivative(int f, VF x) { SWITCH(d) }

KERNEL void act_fwd(MAT(X, x), MAT(X, y), EACH_ARGS, int f) {
  EACH(r, c) SET(X, ROW(y, r) + c, function(f, GET(X, ROW(x, r) + c, cols - c)), cols - c);
}

KERNEL void act_bwd(MAT(X, dy), MAT(X, x), MAT(X, dx), EACH_ARGS, int f) {
  EACH(r, c) {
    VF d = GET(X, ROW(dy, r) + c, cols - c) * derivative(f, GET(X, ROW(x, r) + c, cols - c));
    SET(X, ROW(dx, r) + c, d, cols - c);
  }
}

// act_bwd_bias is act_bwd of the rows of group y, with one row of their sums.
KERNEL void act_bwd_bias(MAT(X, dy), MAT(X, x), MAT(X, dx), VEC(F32, sums), uint rows, uint cols, uint per, int f) {
  uint lo = get_group_id(1) * per, hi = min(rows, lo + per);
  for (uint c = (GID * GROUP + LID) * W; c < cols; c += get_num_groups(0) * GROUP * W) {
    VF sum = 0.0f;
    for (uint r = lo; r < hi; r++) {
      VF d = GET(X, ROW(dy, r) + c, cols - c) * derivative(f, GET(X, ROW(x, r) + c, cols - c));
      SET(X, ROW(dx, r) + c, d, cols - c);
      sum += d;
    }
    SET(F32, AT(sums) + get_group_id(1) * cols + c, sum, cols - c);
  }
}

KERNEL void glu_fwd(MAT(X, x), MAT(X, y), EACH_ARGS, int f) {
  EACH(r, c) {
    __global const TYPE(X) *x = ROW(x, r) + c;
    SET(X, ROW(y, r) + c, function(f, GET(X, x, cols - c)) * GET(X, x + cols, cols - c), cols - c);
  }
}

KERNEL void glu_bwd(MAT(X, dy), MAT(X, x), MAT(X, dx), EACH_ARGS, int f) {
  EACH(r, c) {
    __global const TYPE(X) *x = ROW(x, r) + c;
    __global TYPE(X) *dx = ROW(dx, r) + c;
    VF d = GET(X, ROW(dy, r) + c, cols - c), a = GET(X, x, cols - c), b = GET(X, x + cols, cols - c);
    SET(X, dx, d * b * derivative(f, a), cols - c);
    SET(X, dx + cols, d * function(f, a), cols - c);
  }
}

// bound returns min(x, limit), and a NaN for a NaN.
VF bound(VF x, float limit) { return select(x, (VF)limit, x > limit); }

KERNEL void clamped_fwd(MAT(X, x), MAT(X, y), EACH_ARGS, float limit, float alpha, float shift) {
  EACH(r, c) {
    __global const TYPE(X) *x = ROW(x, r) + c;
    VF a = bound(GET(X, x, cols - c), limit), b = -bound(-bound(GET(X, x + cols, cols - c), limit), limit) + shift;
    SET(X, ROW(y, r) + c, a * logistic(alpha * a) * b, cols - c);
  }
}

KERNEL void clamped_bwd(MAT(X, dy), MAT(X, x), MAT(X, dx), EACH_ARGS, float limit, float alpha, float shift) {
  EACH(r, c) {
    __global const TYPE(X) *x = ROW(x, r) + c;
    __global TYPE(X) *dx = ROW(dx, r) + c;
    VF d = GET(X, ROW(dy, r) + c, cols - c), a0 = GET(X, x, cols - c), b0 = GET(X, x + cols, cols - c);
    VF a = bound(a0, limit), b = -bound(-bound(b0, limit), limit) + shift, s = logistic(alpha * a);
    VF da = d * b * (s + alpha * a * s * (1.0f - s)), db = d * a * s;
    SET(X, dx, select(da, (VF)0.0f, a0 > limit), cols - c);
    SET(X, dx + cols, select(db, (VF)0.0f, fabs(b0) > limit), cols - c);
  }
}
