// Options: X names the storage of probabilities and of the loss; COUNT is the type of the numbers
// of tokens; without it STORED names their storage.

#ifdef COUNT
#define COUNTS BUFFER(COUNT, count)
#define COUNTED(e) (float)AT(count)[e]
#else
#define COUNTS VEC(STORED, count)
#define COUNTED(e) LOAD(STORED, AT(count) + e, 0)
#endif

// aux_loss adds up the probabilities of all tokens, each times the number of tokens of its expert.
// Sums carry what they lose to rounding.
KERNEL void aux_loss(MAT(X, probs), COUNTS, VEC(X, loss), VEC(F32, factor), uint tokens, uint experts, float c) {
  SHARED;
  float sum = 0.0f, lost = 0.0f;
  ITEMS(t, tokens, tokens) {
    float own = 0.0f;
    for (uint e = 0; e < experts; e++)
      own += COUNTED(e) * LOAD(X, ROW(probs, t) + e, 0);
    float y = own - lost, next = sum + y;
    lost = (next - sum) - y;
    sum = next;
  }
  float all = GROUP_SUM(sum);
  if (LID == 0) {
    STORE(X, AT(loss), 0, c * all);
    AT(factor)[0] = c;
  }
}

KERNEL void aux_loss_bwd(VEC(F32, factor), COUNTS, VEC(X, grad), MAT(X, dprobs), uint tokens, uint experts, uint per) {
  float g = AT(factor)[0] * LOAD(X, AT(grad), 0);
  ITEMS(t, tokens, per)
    for (uint e = 0; e < experts; e++)
      STORE(X, ROW(dprobs, t) + e, 0, COUNTED(e) * g);
}
