// Options: X names the storage of both operands; INTERLEAVED: pairs are neighbours.

// Strides of a vector by sequence, position and head, in elements.
#define HEADS(x) VEC(X, x), ulong x##_seq, ulong x##_step, ulong x##_head

// VECTORS goes through the vectors p to q of all heads at one step of the sequences of a group.
#define VECTORS(at)                                                                                \
  for (uint s_ = seq; s_ < sequences; s_ += get_num_groups(1))                                     \
    for (uint h_ = 0; h_ < heads; h_++)                                                            \
      for (__global TYPE(X) *p = AT(x) + s_ * x_seq + step * x_step + h_ * x_head + (at),          \
                            *q = AT(y) + s_ * y_seq + step * y_step + h_ * y_head + (at),          \
                            *once_ = q; once_; once_ = 0)

// rope turns the pairs of one step of sequences for all heads, backwards with a sign of −1. Each
// work-item takes pairs. The sequences of a group have one position. starts says that sequences have
// a first position; with bounds other than 0, one sequence holds several.
KERNEL void rope(HEADS(x), HEADS(y), VEC(F32, angle), BUFFER(int, start), int starts, BUFFER(int, bound), uint bounds,
                 float sign, uint sequences, uint heads, uint d, uint turned, uint positions) {
  uint step = GID, seq = get_group_id(1), at = step, b = seq;
  if (bounds) {
    b = 0;
    while (b + 1 < bounds && (int)step >= AT(bound)[b + 1])
      b++;
    at = step - AT(bound)[b];
  }
  if (starts)
    at += AT(start)[b];
  __global const float *row = AT(angle) + (ulong)min(at, positions - 1) * turned;
  uint half_d = turned / 2;
#ifdef INTERLEAVED
  for (uint i = LID; i < half_d; i += GROUP) {
    float a = row[2 * i], c = row[2 * i + 1], ca = cos(a), cc = cos(c);
    float sa = sin(a) * sign, sc = sin(c) * sign;
    if (sign < 0) {
      float t = sa;
      sa = sc;
      sc = t;
    }
    VECTORS(2 * i) {
      float u = LOAD(X, p, 0), v = LOAD(X, p + 1, 0);
      STORE(X, q, 0, u * ca - v * sa);
      STORE(X, q + 1, 0, v * cc + u * sc);
    }
  }
#else
  for (uint i = LID * W; i < half_d; i += GROUP * W) {
    uint n = half_d - i;
    VF a = GET(F32, row + i, n), c = GET(F32, row + half_d + i, n), ca = cos(a), cc = cos(c);
    VF sa = sin(a) * sign, sc = sin(c) * sign;
    if (sign < 0) {
      VF t = sa;
      sa = sc;
      sc = t;
    }
    VECTORS(i) {
      VF u = GET(X, p, n), v = GET(X, p + half_d, n);
      SET(X, q, u * ca - v * sa, n);
      SET(X, q + half_d, v * cc + u * sc, n);
    }
  }
#endif
  for (uint i = turned + LID * W; i < d; i += GROUP * W)
    VECTORS(i) SET(X, q, GET(X, p, d - i), d - i);
}
