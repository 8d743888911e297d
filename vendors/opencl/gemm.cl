// Compile-time parameters: A, B, D and BIAS, the dtypes of the operands. The product is
//
//   D = alpha · left · right + bias + beta · D
//
// where left is op(B), m×k, and right is op(A), k×n. An element of an operand is found by two
// distances, row and col. Each element of D is one chain of fma over k in ascending order, so
// every kernel and every shape of tile gives the same bits.

// MATRIX are the distances of an operand, ELEMENT is where one of its elements is.
#define MATRIX(x) int x##_row, int x##_col
#define ELEMENT(x, i, j) ((size_t)(i) * x##_row + (size_t)(j) * x##_col)

#ifdef W
// Panels: a work-item computes ROWS rows of NR = NV·W columns, MR rows at a time, in registers. It
// reads right from panels of NR columns, and left in place or, unless it is f32, from a copy.
#define NR (NV * W)

// pack makes the panels [panel, k, NR] of right. Columns after the last one are 0.
__kernel void pack(BUFFER(TYPE(A), right), MATRIX(right), BUFFER(float, to), int n, int k) {
  TENSOR(TYPE(A), right);
  TENSOR(float, to);
  const int panel = get_global_id(0), first = get_global_id(1) * PACK_DEPTH, last = min(first + PACK_DEPTH, k);
  const int c0 = panel * NR, width = min(NR, n - c0);
  to += (size_t)panel * k * NR;
  if (right_col == 1) {
    for (int e = first; e < last; e++)
      UNROLL for (int j = 0; j < NV; j++)
        VSTORE(PIECE(A, right + ELEMENT(right, e, c0), j * W, width), 0, to + (size_t)e * NR + j * W);
    return;
  }
  for (int e = first; e < last; e++)
    UNROLL for (int j = 0; j < NR; j++)
      to[(size_t)e * NR + j] = j < width ? LOAD(A, right, ELEMENT(right, e, c0 + j)) : 0;
}

// widen copies left to f32: lines whose elements are step apart to lines that are dense. A work-item
// takes WIDEN_LINES lines.
__kernel void widen(BUFFER(TYPE(B), left), int line, int step, BUFFER(float, to), int lines, int length) {
  TENSOR(TYPE(B), left);
  TENSOR(float, to);
  const int first = get_global_id(0) * WIDEN_LINES, last = min(first + WIDEN_LINES, lines);
  for (int l = first; l < last; l++) {
    __global const TYPE(B) *from = left + (size_t)l * line;
    __global float *dense = to + (size_t)l * length;
    if (step == 1)
      for (int i = 0; i < length; i += W)
        PUTS(F32, dense, i, length, PIECE(B, from, i, length));
    else
      for (int i = 0; i < length; i++)
        dense[i] = LOAD(B, from, (size_t)i * step);
  }
}

// panels computes D from the panels of right.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void panels(BUFFER(float, left), MATRIX(left), BUFFER(float, right), BUFFER(TYPE(D), d), int d_row,
            BUFFER(TYPE(BIAS), bias), int has_bias, int m, int n, int k, float alpha, float beta) {
  TENSOR(float, left);
  TENSOR(float, right);
  TENSOR(TYPE(D), d);
  TENSOR(TYPE(BIAS), bias);
  const int first = get_global_id(0) * ROWS, last = min(first + ROWS, m), c0 = get_global_id(1) * NR;
  right += (size_t)c0 * k;
  d += c0;
  for (int r = first; r < last; r += MR) {
    VF acc[MR][NV];
    __global const float *row[MR];
    UNROLL for (int i = 0; i < MR; i++) {
      row[i] = left + (size_t)min(r + i, m - 1) * left_row;
      UNROLL for (int j = 0; j < NV; j++)
        acc[i][j] = 0;
    }
    for (int e = 0; e < k; e++) {
      VF x[NV];
      UNROLL for (int j = 0; j < NV; j++)
        x[j] = VLOAD(0, right + (size_t)e * NR + j * W);
      UNROLL for (int i = 0; i < MR; i++) {
        const VF one = row[i][(size_t)e * left_col];
        UNROLL for (int j = 0; j < NV; j++)
          acc[i][j] = fma(x[j], one, acc[i][j]);
      }
    }
    UNROLL for (int i = 0; i < MR; i++) {
      if (r + i >= m)
        break;
      __global TYPE(D) *line = d + (size_t)(r + i) * d_row;
      UNROLL for (int j = 0; j < NV; j++) {
        if (c0 + j * W >= n)
          break;
        VF v = acc[i][j] * alpha;
        if (has_bias)
          v += PIECE(BIAS, bias, c0 + j * W, n);
        if (beta != 0)
          v = fma((VF)(beta), PIECE(D, line, j * W, n - c0), v);
        PUTS(D, line, j * W, n - c0, v);
      }
    }
  }
}
#else
// Tiles: a work-group of WX×WY work-items computes TM×TN elements of D. It brings DEPTH steps of
// both operands into local memory at a time.
#define MR (TM / WY)
#define NR (TN / WX)

// FETCH reads LENGTH×DEPTH elements into tile; neighbours in memory are read by neighbouring
// work-items. A tile has one more column than it needs, so that a column is in different banks.
#define FETCH(tile, t, x, at, LENGTH, first, length, step)                                         \
  for (int id = get_local_id(1) * WX + get_local_id(0); id < LENGTH * DEPTH; id += WX * WY) {      \
    const int i = step == 1 ? id / DEPTH : id % LENGTH, e = step == 1 ? id % DEPTH : id / LENGTH;  \
    tile[e][i] = first + i < length && e0 + e < k ? LOAD(t, x, at) : 0;                            \
  }

// tiles computes D.
__kernel __attribute__((reqd_work_group_size(WX, WY, 1)))
void tiles(BUFFER(TYPE(B), left), MATRIX(left), BUFFER(TYPE(A), right), MATRIX(right), BUFFER(TYPE(D), d), int d_row,
           BUFFER(TYPE(BIAS), bias), int has_bias, int m, int n, int k, float alpha, float beta) {
  TENSOR(TYPE(B), left);
  TENSOR(TYPE(A), right);
  TENSOR(TYPE(D), d);
  TENSOR(TYPE(BIAS), bias);
  __local float above[DEPTH][TM + 1], beside[DEPTH][TN + 1];
  const int x = get_local_id(0), y = get_local_id(1), c0 = get_group_id(0) * TN, r0 = get_group_id(1) * TM;
  float acc[MR][NR];
  UNROLL for (int i = 0; i < MR; i++)
    UNROLL for (int j = 0; j < NR; j++)
      acc[i][j] = 0;
  for (int e0 = 0; e0 < k; e0 += DEPTH) {
    FETCH(above, B, left, ELEMENT(left, r0 + i, e0 + e), TM, r0, m, left_col)
    FETCH(beside, A, right, ELEMENT(right, e0 + e, c0 + i), TN, c0, n, right_row)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < DEPTH; e++) {
      float column[MR];
      UNROLL for (int i = 0; i < MR; i++)
        column[i] = above[e][y + i * WY];
      UNROLL for (int j = 0; j < NR; j++) {
        const float one = beside[e][x + j * WX];
        UNROLL for (int i = 0; i < MR; i++)
          acc[i][j] = fma(one, column[i], acc[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int i = 0; i < MR; i++)
    UNROLL for (int j = 0; j < NR; j++) {
      const int r = r0 + y + i * WY, c = c0 + x + j * WX;
      if (r >= m || c >= n)
        continue;
      float v = acc[i][j] * alpha;
      if (has_bias)
        v += LOAD(BIAS, bias, c);
      const size_t at = (size_t)r * d_row + c;
      if (beta != 0)
        v = fma(beta, LOAD(D, d, at), v);
      STORE(D, d, at, v);
    }
}
#endif

// column_sums stores the sums over the rows of x. Blocks of SUM_ROWS rows are added up before
// their sum is added to the total.
__kernel void column_sums(BUFFER(TYPE(B), x), MATRIX(x), BUFFER(TYPE(BIAS), sums), int rows, int cols) {
  TENSOR(TYPE(B), x);
  TENSOR(TYPE(BIAS), sums);
  const int c = get_global_id(0);
  if (c >= cols)
    return;
  float total = 0;
  for (int r0 = 0; r0 < rows; r0 += SUM_ROWS) {
    float block = 0;
    for (int r = r0; r < min(r0 + SUM_ROWS, rows); r++)
      block += LOAD(B, x, ELEMENT(x, r, c));
    total += block;
  }
  STORE(BIAS, sums, c, total);
}
