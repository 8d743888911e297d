// Options: G, Q, M, N name the storage of gradients, parameters and the two moments; MASTER: there
// are f32 weights of which the parameters are a rounded copy.

KERNEL void adam(VEC(G, g), VEC(Q, p), VEC(M, m), VEC(N, v),
#ifdef MASTER
  VEC(F32, w),
#endif
  EACH_ARGS, float lr, float beta1, float beta2, float rest1, float rest2, float c1, float c2, float eps, float decay, int l2) {
  EACH(r, c) {
    ulong n = cols - c;
#ifdef MASTER
    VF p = GET(F32, AT(w) + c, n);
#else
    VF p = GET(Q, AT(p) + c, n);
#endif
    VF g = GET(G, AT(g) + c, n);
    if (l2)
      g += decay * p;
    VF m = beta1 * GET(M, AT(m) + c, n) + rest1 * g;
    VF v = beta2 * GET(N, AT(v) + c, n) + rest2 * g * g;
    VF u = (m / c1) / (sqrt(v / c2) + eps);
    if (!l2)
      u += decay * p;
    p -= lr * u;
    SET(M, AT(m) + c, m, n);
    SET(N, AT(v) + c, v, n);
    SET(Q, AT(p) + c, p, n);
#ifdef MASTER
    SET(F32, AT(w) + c, p, n);
#endif
  }
}

KERNEL void sgd(VEC(G, g), VEC(Q, p), VEC(M, m),
#ifdef MASTER
  VEC(N, w),
#endif
  BUFFER(int, flag), EACH_ARGS, float decay, float momentum, float rest, float lr, float scale, int nesterov, int first, int after) {
  if (AT(flag)[0] != 0)
    return;
  EACH(r, c) {
    ulong n = cols - c;
    VF p = GET(Q, AT(p) + c, n);
    VF d = GET(G, AT(g) + c, n) * scale;
    if (!after)
      d += decay * p;
    if (momentum != 0.0f) {
      VF m = d;
      if (!first)
        m = momentum * GET(M, AT(m) + c, n) + rest * d;
      SET(M, AT(m) + c, m, n);
      d = nesterov ? d + momentum * m : m;
    }
    if (after)
      d += decay * p;
    p -= lr * d;
    SET(Q, AT(p) + c, p, n);
#ifdef MASTER
    SET(N, AT(w) + c, p, n);
#endif
  }
}

KERNEL void scale(VEC(G, in), VEC(Q, out), BUFFER(int, flag),
#ifdef FACTOR
  VEC(F32, by),
#endif
  EACH_ARGS, float scale) {
  VI odd = 0; // where an element is not finite
#ifdef FACTOR
  scale = AT(by)[0];
#endif
  EACH(r, c) {
    ulong n = cols - c;
    VF x = GET(G, AT(in) + c, n);
    odd |= x * 0.0f != 0.0f;
    SET(Q, AT(out) + c, x * scale, n);
  }
  if (any(odd))
    atomic_or((volatile __global int *)AT(flag), 1);
}

// squares stores the sum of squares of the elements of each group.
KERNEL void squares(VEC(G, x), VEC(F32, sums),
#ifdef FACTOR
  VEC(F32, by),
#endif
  EACH_ARGS) {
  SHARED;
  VF sum = 0.0f;
  EACH(r, c) {
    VF x = GET(G, AT(x) + c, cols - c);
#ifdef FACTOR
    x *= AT(by)[0];
#endif
    sum += x * x;
  }
  float s = GROUP_SUM(add_lanes(sum));
  if (LID == 0)
    AT(sums)[GID] = s;
}

// root adds up n sums of squares and stores the root. It sets the flag when that is not finite.
KERNEL void root(VEC(F32, sums), BUFFER(int, flag), VEC(F32, norm), uint n) {
  SHARED;
  uint cols = n;
  VF sum = 0.0f;
  COLUMNS(c) sum += GET(F32, AT(sums) + c, n - c);
  float s = GROUP_SUM(add_lanes(sum));
  if (LID == 0) {
    AT(norm)[0] = sqrt(s);
    if (!isfinite(s))
      AT(flag)[0] = 1;
  }
}
