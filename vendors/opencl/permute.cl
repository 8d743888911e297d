// Options: X names the storage of rows; PROB: rows have weights.

// place ranks the pairs of token and expert: by expert, those of one expert in order. Ranks from
// limit on have no row, which is -1. A single work-item counts the pairs of each expert if there
// are at most FEW; otherwise each pair is compared with all others.
#define FEW 256
#define PLACE(i, rank) AT(order)[i % topk * tokens + i / topk] = rank < limit ? (int)rank : -1

KERNEL void place(BUFFER(int, expert), BUFFER(int, order), uint tokens, uint topk, uint limit, uint per) {
  __global const int *expert = AT(expert);
  uint n = tokens * topk;
#if GROUP == 1
  uint next[FEW];
  bool few = true;
  for (uint e = 0; e < FEW; e++)
    next[e] = 0;
  for (uint i = 0; i < n; i++) {
    few = few && expert[i] >= 0 && expert[i] < FEW;
    next[expert[i] & FEW - 1]++;
  }
  for (uint e = 0, first = 0; e < FEW; e++) {
    uint count = next[e];
    next[e] = first;
    first += count;
  }
  for (uint i = 0; few && i < n; i++) {
    uint rank = next[expert[i]]++;
    PLACE(i, rank);
  }
  if (few)
    return;
#endif
  ITEMS(i, n, per) {
    int e = expert[i];
    uint rank = 0;
    for (uint j = 0; j < i; j++)
      rank += expert[j] <= e;
    for (uint j = i; j < n; j++)
      rank += expert[j] < e;
    PLACE(i, rank);
  }
}

// permute copies the row of each token to its places.
KERNEL void permute(MAT(X, x), BUFFER(int, order), MAT(X, y), uint rows, uint cols, uint per, uint topk) {
  GROUP_ROWS(r) {
    for (uint k = 0; k < topk; k++) {
      int to = AT(order)[k * rows + r];
      if (to >= 0)
        COLUMNS(c) SET(X, ROW(y, (uint)to) + c, GET(X, ROW(x, r) + c, cols - c), cols - c);
    }
  }
}

// unpermute adds up the rows of each token.
KERNEL void unpermute(MAT(X, x), BUFFER(int, order), MAT(X, y),
#ifdef PROB
  MAT(F32, prob),
#endif
  uint rows, uint cols, uint per, uint topk, uint limit) {
  GROUP_ROWS(r) {
    COLUMNS(c) {
      VF sum = 0.0f;
      for (uint k = 0; k < topk; k++) {
        int from = AT(order)[k * rows + r];
        if (from < 0 || from >= (int)limit)
          continue;
        VF v = GET(X, ROW(x, (uint)from) + c, cols - c);
#ifdef PROB
        v *= ROW(prob, r)[k];
#endif
        sum += v;
      }
      SET(X, ROW(y, r) + c, sum, cols - c);
    }
  }
}

// unpermute_bwd stores the gradients of the rows of each token and of their weights.
KERNEL void unpermute_bwd(MAT(X, dy), MAT(X, x), BUFFER(int, order), MAT(X, dx),
#ifdef PROB
  MAT(F32, prob), MAT(F32, dprob),
#endif
  uint rows, uint cols, uint per, uint topk, uint limit) {
  SHARED;
  GROUP_ROWS(r) {
    for (uint k = 0; k < topk; k++) {
      int to = AT(order)[k * rows + r];
      bool there = to >= 0 && to < (int)limit;
      VF sum = 0.0f;
      float weight = 1.0f;
#ifdef PROB
      weight = ROW(prob, r)[k];
#endif
      if (there)
        COLUMNS(c) {
          VF d = GET(X, ROW(dy, r) + c, cols - c);
#ifdef PROB
          sum += d * GET(X, ROW(x, (uint)to) + c, cols - c);
#endif
          SET(X, ROW(dx, (uint)to) + c, weight * d, cols - c);
        }
#ifdef PROB
      float s = GROUP_SUM(add_lanes(sum));
      if (LID == 0)
        ROW(dprob, r)[k] = s;
#endif
    }
  }
}

// clear zeroes rows.
KERNEL void clear(MAT(X, x), EACH_ARGS) { EACH(r, c) SET(X, ROW(x, r) + c, (VF)0.0f, cols - c); }
