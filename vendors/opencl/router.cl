// Options: X names the storage of logits and their gradients, Y that of probabilities and theirs, B
// that of a bias; SCORE is the score function; BIAS: there is one; ALL: softmax runs over all
// experts; AUX: all experts get their score.

#define SIGMOID 1
#define SOFTMAX 2
#define SQRTSOFTPLUS 3
#define TINY 1e-20f

float logistic1(float x) { return 1.0f / (1.0f + exp(-x)); }

// score returns the score of a logit; for softmax it is relative to that of the largest logit.
float score(float x, float top) {
#if SCORE == SIGMOID
  return logistic1(x);
#elif SCORE == SOFTMAX
  return exp(x - top);
#else
  if (x < -17.0f)
    return exp(0.5f * x); // eˣ may be subnormal, and ln(1 + eˣ) is eˣ
  return sqrt(fmax(x, 0.0f) + log1p(exp(-fabs(x))));
#endif
}

// router chooses the experts of each token and weights them. Without a bias the order of scores is
// that of logits.
KERNEL void router(MAT(X, logits), MAT(Y, probs), MAT(U8, map), MAT(F32, saved),
#ifdef BIAS
  VEC(B, bias),
#endif
  uint tokens, uint experts, uint per, uint topk, float scaling) {
  ITEMS(t, tokens, per) {
    __global const TYPE(X) *x = ROW(logits, t);
    __global TYPE(Y) *probs = ROW(probs, t);
    __global uchar *map = ROW(map, t);
    __global float *saved = ROW(saved, t);
    float top = -INFINITY, sum = 0.0f;
    bool nan = false;
    for (uint e = 0; e < experts; e++) {
      top = fmax(top, LOAD(X, x + e, 0));
      nan |= isnan(LOAD(X, x + e, 0));
      map[e] = 0;
    }
#if SCORE == SOFTMAX && defined(ALL)
    nan |= isinf(top);
#else
    nan = false;
#endif
    for (uint k = 0; k < topk; k++) {
      int best = -1;
      float most = -INFINITY;
      for (uint e = 0; e < experts; e++) {
        if (map[e])
          continue;
        float v = nan ? NAN : LOAD(X, x + e, 0);
#ifdef BIAS
        v = score(v, top) + LOAD(B, AT(bias) + e, 0);
#endif
        if (best < 0 || !isnan(most) && (v > most || isnan(v))) {
          best = (int)e;
          most = v;
        }
      }
      map[best] = 1;
    }
#ifdef ALL
#define WEIGHED 1
#else
#define WEIGHED map[e]
#endif
    for (uint e = 0; e < experts; e++)
      if (WEIGHED)
        sum += score(LOAD(X, x + e, 0), top);
    for (uint e = 0; e < experts; e++) {
      float v = LOAD(X, x + e, 0), s = score(v, top), p;
#if SCORE == SOFTMAX
      p = WEIGHED ? s / sum : 0.0f;
      saved[e] = WEIGHED ? p : -INFINITY;
#else
      p = topk == 1 ? s : s / (sum + TINY);
      saved[e] = SCORE == SIGMOID ? s : v;
#endif
#ifndef AUX
      p = map[e] ? scaling * p : 0.0f;
#endif
      STORE(Y, probs + e, 0, p);
    }
  }
}

// router_bwd computes the gradient of router with respect to the logits.
KERNEL void router_bwd(MAT(F32, saved), MAT(Y, grad), MAT(X, dlogits),
#ifndef AUX
  MAT(U8, map),
#endif
  uint tokens, uint experts, uint per, uint topk, float scaling) {
  ITEMS(t, tokens, per) {
    __global const float *saved = ROW(saved, t);
    __global const TYPE(Y) *grad = ROW(grad, t);
    __global TYPE(X) *dlogits = ROW(dlogits, t);
#ifdef AUX
#define CHOSEN 1
#else
    __global const uchar *map = ROW(map, t);
#define CHOSEN map[e]
#endif
#if SCORE == SQRTSOFTPLUS
#define S score(saved[e], 0.0f)
#else
#define S saved[e]
#endif
    float sum = TINY, product = 0.0f;
    for (uint e = 0; e < experts; e++)
      if (CHOSEN) {
        sum += S;
        product += S * scaling * LOAD(Y, grad + e, 0);
      }
    for (uint e = 0; e < experts; e++) {
      float g = CHOSEN ? scaling * LOAD(Y, grad + e, 0) : 0.0f, s = S, d = 0.0f;
#if SCORE == SOFTMAX
#ifdef ALL
      d = (g - product) * s;
#else
      if (CHOSEN)
        d = (g - product) * s;
#endif
#else
      if (CHOSEN) {
        d = topk > 1 ? g / sum - product / sum / sum : g;
#if SCORE == SIGMOID
        d *= s * (1.0f - s);
#else
        d *= logistic1(saved[e]) / (2.0f * s + TINY);
#endif
      }
#endif
      STORE(X, dlogits + e, 0, d);
    }
  }
}
