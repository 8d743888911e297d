// Options: X and Y name storage, INDEX is the type of the indices.

// embed_fwd copies the rows of a table; a row whose index is outside of it becomes NaN.
KERNEL void embed_fwd(BUFFER(INDEX, index), MAT(X, w), MAT(X, y), uint rows, uint cols, uint per, uint vocab) {
  GROUP_ROWS(r) {
    INDEX t = AT(index)[r];
    bool there = t >= 0 && t < (INDEX)vocab;
    __global const TYPE(X) *w = ROW(w, there ? (uint)t : 0);
    __global TYPE(X) *y = ROW(y, r);
    COLUMNS(c) SET(X, y + c, there ? GET(X, w + c, cols - c) : (VF)NAN, cols - c);
  }
}

// embed_chain links the positions of each index in ascending order: head[v] is the first one,
// next[i] the one after i, both -1 at the end. Each work-item owns span indices.
KERNEL void embed_chain(BUFFER(INDEX, index), BUFFER(int, head), BUFFER(int, next), uint n, uint vocab, uint span) {
  uint lo = min(vocab, (GID * GROUP + LID) * span), hi = min(vocab, lo + span);
  for (uint v = lo; v < hi; v++)
    AT(head)[v] = -1;
  for (uint i = n; lo < hi && i-- > 0;) {
    INDEX v = AT(index)[i];
    if (v >= (INDEX)lo && v < (INDEX)hi) {
      AT(next)[i] = AT(head)[v];
      AT(head)[v] = (int)i;
    }
  }
}

// embed_bwd adds up the rows of each chain.
KERNEL void embed_bwd(BUFFER(int, head), BUFFER(int, next), MAT(X, dy), MAT(Y, dw), uint rows, uint cols, uint per, int accumulate) {
  GROUP_ROWS(v) {
    __global TYPE(Y) *dw = ROW(dw, v);
    int first = AT(head)[v];
    if (first < 0 && accumulate)
      continue;
    COLUMNS(c) {
      VF sum = 0.0f;
      for (int i = first; i >= 0; i = AT(next)[i])
        sum += GET(X, ROW(dy, (uint)i) + c, cols - c);
      if (accumulate)
        sum += GET(Y, dw + c, cols - c);
      SET(Y, dw + c, sum, cols - c);
    }
  }
}
