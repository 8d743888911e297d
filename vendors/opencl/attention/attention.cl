// Compile-time parameters: T, the dtype of Q, K, V, O and their gradients; VQK and VDV, the vectors
// that a head of Q and one of V take; W, the width of vectors, which is 16, 8 or 4; MR, the rows of a tile; NV, the vectors
// of columns of a tile; BLOCKS, how many times MR rows a work-item computes, one after the other. A
// tile has MR rows and NR = NV·W columns.
#define NR (NV * W)


#if W == 16
#define LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#elif W == 8
#define LANES ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#else
#define LANES ((int4)(0, 1, 2, 3))
#endif

// Heads says where the elements of a [batch, row, head, element] tensor are.
#define HEADS(x) int x##_batch, int x##_row, int x##_head
#define ROW(x, b, h) ((size_t)(b) * x##_batch + (size_t)(h) * x##_head)

static inline float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }
static inline float max4(float4 v) {
  const float a = v.x > v.y ? v.x : v.y, b = v.z > v.w ? v.z : v.w;
  return a > b ? a : b;
}
#if W == 16
static inline float sum(float16 v) { const float8 a = v.lo + v.hi; return sum4(a.lo + a.hi); }
static inline float largest(float16 v) {
  const float8 a = select(v.lo, v.hi, v.hi > v.lo);
  return max4(select(a.lo, a.hi, a.hi > a.lo));
}
#elif W == 8
static inline float sum(float8 v) { return sum4(v.lo + v.hi); }
static inline float largest(float8 v) { return max4(select(v.lo, v.hi, v.hi > v.lo)); }
#else
#define sum sum4
#define largest max4
#endif

// EXPO defines e^x for x up to 88 within 2 units in the last place; below −87 it is 0. Adding and
// subtracting 1.5·2²³ rounds: rint and fmax are calls for each element in PoCL.
#define EXPO(name, T, to_int, as_float)                                                            \
  static inline T name(T x) {                                                                      \
    const T at = select(x, (T)(-87.0f), x < -87.0f);                                               \
    const T n = fma(at, (T)(1.44269504f), (T)(12582912.0f)) - 12582912.0f; /* rounds */            \
    T r = fma(n, (T)(-0.693359375f), at);                                                          \
    r = fma(n, (T)(2.12194440e-4f), r);                                                            \
    T p = (T)(1.9875691500e-4f);                                                                   \
    p = fma(p, r, (T)(1.3981999507e-3f));                                                          \
    p = fma(p, r, (T)(8.3334519073e-3f));                                                          \
    p = fma(p, r, (T)(4.1665795894e-2f));                                                          \
    p = fma(p, r, (T)(1.6666665459e-1f));                                                          \
    p = fma(p, r, (T)(5.0000001201e-1f));                                                          \
    p = fma(p, r * r, r + 1.0f);                                                                   \
    const T y = p * as_float((to_int(n) + 127) << 23);                                             \
    return select(y, (T)(0.0f), x < -87.0f);                                                       \
  }
EXPO(expo, VF, TO_INT, AS_FLOAT)
EXPO(expo1, float, convert_int, as_float)

// bounds finds which keys each query sees, from visible[0] to before visible[1], and by which
// queries each key is seen. Rows count from the first row of the batch entry. cu_seqlens holds
// four lists of batch+1 totals: of the lengths of the sequences and of where they begin, for
// queries and for keys. packed says that all sequences lie in one batch entry.
__kernel void bounds(BUFFER(int, visible), BUFFER(int, seen), BUFFER(int, lengths_q), BUFFER(int, lengths_kv),
                     BUFFER(int, starts_q), BUFFER(int, starts_kv), int sequences, int padding, int packed,
                     int seq_q, int seq_kv, int causal, int bottom_right, int left, int right) {
  TENSOR(int, visible);
  TENSOR(int, seen);
  TENSOR(int, lengths_q);
  TENSOR(int, lengths_kv);
  TENSOR(int, starts_q);
  TENSOR(int, starts_kv);
  const int row = get_global_id(0), b = get_global_id(1), keys = get_global_id(2);
  const int rows = keys ? seq_kv : seq_q;
  if (row >= rows)
    return;
  __global const int *lq = lengths_q, *lkv = lengths_kv, *sq = starts_q, *skv = starts_kv;
  int s = b, first_q = 0, first_kv = 0, len_q = seq_q, len_kv = seq_kv;
  if (packed) {
    __global const int *starts = keys ? skv : sq;
    int lo = 0, hi = sequences;
    while (lo + 1 < hi) {
      const int mid = (lo + hi) / 2;
      if (starts[mid] <= row)
        lo = mid;
      else
        hi = mid;
    }
    s = lo;
    first_q = sq[s];
    first_kv = skv[s];
  }
  if (padding) {
    len_q = lq[s + 1] - lq[s];
    len_kv = lkv[s + 1] - lkv[s];
  }
  const int off = bottom_right ? len_kv - len_q : 0;
  int lo = 0, hi = 0;
  if (!keys) {
    const int i = row - first_q;
    if (i < len_q) {
      hi = causal ? min(len_kv, i + off + 1) : len_kv;
      if (right >= 0)
        hi = min(hi, i + off + right + 1);
      if (left >= 0)
        lo = max(0, i + off - left);
    }
    lo += first_kv;
    hi += first_kv;
  } else {
    const int j = row - first_kv;
    if (j < len_kv) {
      hi = len_q;
      if (left >= 0)
        hi = min(hi, j - off + left + 1);
      if (causal)
        lo = max(0, j - off);
      if (right >= 0)
        lo = max(lo, j - off - right);
    }
    lo += first_q;
    hi += first_q;
  }
  __global int *to = (keys ? seen : visible) + ((size_t)b * rows + row) * 2;
  to[0] = lo;
  to[1] = max(lo, hi);
}

// panels transposes the rows of heads: to[b, h, tile, element, NR] has a tile of NR rows by element.
// Rows after the last one are 0.
__kernel void panels(BUFFER(TYPE(T), x), HEADS(x), BUFFER(float, to), int rows, int tiles, int heads, int d) {
  TENSOR(TYPE(T), x);
  TENSOR(float, to);
  const int tile = get_global_id(0), h = get_global_id(1), b = get_global_id(2);
  if (tile >= tiles)
    return;
  __global const TYPE(T) *from = x + ROW(x, b, h);
  __global float *out = to + (((size_t)b * heads + h) * tiles + tile) * d * NR;
  for (int r = 0; r < NR; r++) {
    const int row = tile * NR + r;
    for (int e = 0; e < d; e++)
      out[(size_t)e * NR + r] = row < rows ? LOAD(T, from, (size_t)row * x_row + e) : 0;
  }
}

// visit sets from and to to the tiles that a block of rows from r0 on needs, and lo and hi to what
// each row sees.
#define VISIT(list)                                                                                \
  int lo[MR], hi[MR], from = INT_MAX, to = 0;                                                      \
  UNROLL for (int i = 0; i < MR; i++) {                                                                   \
    __global const int *at = (list) + ((size_t)b * rows + min(r0 + i, rows - 1)) * 2;              \
    lo[i] = at[0];                                                                                 \
    hi[i] = at[1];                                                                                 \
    if (lo[i] < hi[i]) {                                                                           \
      from = min(from, lo[i]);                                                                     \
      to = max(to, hi[i]);                                                                         \
    }                                                                                              \
  }                                                                                                \
  from = to ? from / NR : 0;                                                                       \
  to = (to + NR - 1) / NR;

// DOTS sets s[MR][NV] to the products of the rows of x with a panel of d elements.
#define DOTS(s, x, panel, d)                                                                       \
  VF s[MR][NV];                                                                                    \
  UNROLL for (int i = 0; i < MR; i++)                                                                     \
    UNROLL for (int j = 0; j < NV; j++)                                                                   \
      s[i][j] = 0;                                                                                 \
  for (int e = 0; e < (d); e++) {                                                                  \
    VF column[NV];                                                                                 \
    UNROLL for (int j = 0; j < NV; j++)                                                                   \
      column[j] = VLOAD(0, (panel) + (size_t)e * NR + j * W);                                      \
    UNROLL for (int i = 0; i < MR; i++) {                                                                 \
      const VF one = LOAD(T, x[i], e);                                                             \
      UNROLL for (int j = 0; j < NV; j++)                                                                 \
        s[i][j] = fma(column[j], one, s[i][j]);                                                    \
    }                                                                                              \
  }

// ADD adds weights[MR][columns] times the rows of x to acc.
#define ADD(acc, vectors, weights, x, x_step, d, columns)                                          \
  for (int c = 0; c < (columns); c++) {                                                            \
    VF line[vectors];                                                                              \
    UNROLL for (int j = 0; j < (vectors); j++)                                                            \
      line[j] = PIECE(T, (x) + (size_t)c * x_step, j * W, d);                                    \
    UNROLL for (int i = 0; i < MR; i++) {                                                                 \
      const VF one = weights[i][c];                                                                \
      UNROLL for (int j = 0; j < (vectors); j++)                                                          \
        acc[i][j] = fma(line[j], one, acc[i][j]);                                                  \
    }                                                                                              \
  }

#define ROWS_OF(name, x, h)                                                                        \
  __global const TYPE(T) *name[MR];                                                                \
  UNROLL for (int i = 0; i < MR; i++)                                                                     \
    name[i] = x + ROW(x, b, h) + (size_t)min(r0 + i, rows - 1) * x##_row;

#define CLEAR(acc, vectors)                                                                        \
  VF acc[MR][vectors];                                                                             \
  UNROLL for (int i = 0; i < MR; i++)                                                                     \
    UNROLL for (int j = 0; j < (vectors); j++)                                                            \
      acc[i][j] = 0;

// PUT stores scale[i] times the rows of acc.
#define PUT(x, h, acc, vectors, d, scale)                                                          \
  for (int i = 0; i < MR && r0 + i < rows; i++)                                                    \
    UNROLL for (int j = 0; j < (vectors); j++)                                                            \
      PUTS(T, x + ROW(x, b, h) + (size_t)(r0 + i) * x##_row, j * W, d, acc[i][j] * (scale));

// forward computes O and stats for MR queries of a head; keys holds the panels of K.
__kernel void forward(BUFFER(TYPE(T), q), HEADS(q), BUFFER(float, keys), BUFFER(TYPE(T), v), HEADS(v),
                      BUFFER(TYPE(T), o), HEADS(o), BUFFER(float, stats), HEADS(stats), BUFFER(int, visible),
                      int rows, int columns, int heads, int group, float scale, int dim_qk, int dim_v) {
  TENSOR(TYPE(T), q);
  TENSOR(float, keys);
  TENSOR(TYPE(T), v);
  TENSOR(TYPE(T), o);
  TENSOR(float, stats);
  TENSOR(int, visible);
  const int first = get_global_id(0) * MR * BLOCKS, last = min(first + MR * BLOCKS, rows);
  const int h = get_global_id(1), b = get_global_id(2);
  const int g = h / group, tiles = (columns + NR - 1) / NR;
  __global const float *panel = keys + ((size_t)b * (heads / group) + g) * tiles * dim_qk * NR;
  __global const TYPE(T) *values = v + ROW(v, b, g);
  for (int r0 = first; r0 < last; r0 += MR) {
    VISIT(visible)
    ROWS_OF(query, q, h)
    CLEAR(acc, VDV)
    float top[MR], total[MR];
    UNROLL for (int i = 0; i < MR; i++) {
      top[i] = -INFINITY;
      total[i] = 0;
    }
    for (int t = from; t < to; t++) {
      DOTS(s, query, panel + (size_t)t * dim_qk * NR, dim_qk)
      float p[MR][NR];
      UNROLL for (int i = 0; i < MR; i++) {
        VF high = -INFINITY;
        UNROLL for (int j = 0; j < NV; j++) {
          const VI key = LANES + (t * NR + j * W);
          s[i][j] = select((VF)(-INFINITY), s[i][j] * scale, key >= lo[i] && key < hi[i]);
          high = select(high, s[i][j], s[i][j] > high);
        }
        const float here = largest(high), now = here > top[i] ? here : top[i];
        const float safe = now == -INFINITY ? 0 : now;
        const float fade = expo1(top[i] - safe);
        VF part = 0;
        UNROLL for (int j = 0; j < NV; j++) {
          const VF e = expo(s[i][j] - safe);
          part += e;
          VSTORE(e, j, p[i]);
        }
        total[i] = total[i] * fade + sum(part);
        top[i] = now;
        UNROLL for (int j = 0; j < VDV; j++)
          acc[i][j] *= fade;
      }
      ADD(acc, VDV, p, values + (size_t)t * NR * v_row, v_row, dim_v, min(NR, columns - t * NR))
    }
    float inverse[MR];
    UNROLL for (int i = 0; i < MR; i++)
      inverse[i] = total[i] != 0 ? 1 / total[i] : 0;
    PUT(o, h, acc, VDV, dim_v, inverse[i])
    for (int i = 0; i < MR && r0 + i < rows; i++)
      stats[ROW(stats, b, h) + (size_t)(r0 + i) * stats_row] = total[i] != 0 ? top[i] + log(total[i]) : -INFINITY;
  }
}

// rowsums stores, for tiles of queries, stats and rowsum(dO∘O): to[b, h, tile, 2, NR]. Rows that
// see nothing and rows after the last one get 0.
__kernel void rowsums(BUFFER(TYPE(T), o), HEADS(o), BUFFER(TYPE(T), d_o), HEADS(d_o), BUFFER(float, stats),
                      HEADS(stats), BUFFER(float, to), int rows, int tiles, int heads, int dim_v) {
  TENSOR(TYPE(T), o);
  TENSOR(TYPE(T), d_o);
  TENSOR(float, stats);
  TENSOR(float, to);
  const int row = get_global_id(0), h = get_global_id(1), b = get_global_id(2);
  if (row >= tiles * NR)
    return;
  __global float *out = to + (((size_t)b * heads + h) * tiles + row / NR) * 2 * NR + row % NR;
  float log_sum = 0, total = 0;
  if (row < rows) {
    const float saved = stats[ROW(stats, b, h) + (size_t)row * stats_row];
    log_sum = saved == -INFINITY ? 0 : saved;
    __global const TYPE(T) *x = o + ROW(o, b, h) + (size_t)row * o_row;
    __global const TYPE(T) *y = d_o + ROW(d_o, b, h) + (size_t)row * d_o_row;
    VF parts = 0;
    UNROLL for (int j = 0; j < VDV; j++)
      parts = fma(PIECE(T, x, j * W, dim_v), PIECE(T, y, j * W, dim_v), parts);
    total = sum(parts);
  }
  out[0] = log_sum;
  out[NR] = total;
}

// queries computes dQ for MR queries of a head; keys and values hold the panels of K and V.
__kernel void queries(BUFFER(TYPE(T), q), HEADS(q), BUFFER(TYPE(T), k), HEADS(k), BUFFER(TYPE(T), d_o), HEADS(d_o),
                      BUFFER(float, keys), BUFFER(float, values), BUFFER(float, rowsums), BUFFER(TYPE(T), dq), HEADS(dq),
                      BUFFER(int, visible), int rows, int columns, int heads, int group, float scale, int dim_qk, int dim_v) {
  TENSOR(TYPE(T), q);
  TENSOR(TYPE(T), k);
  TENSOR(TYPE(T), d_o);
  TENSOR(float, keys);
  TENSOR(float, values);
  TENSOR(float, rowsums);
  TENSOR(TYPE(T), dq);
  TENSOR(int, visible);
  const int first = get_global_id(0) * MR * BLOCKS, last = min(first + MR * BLOCKS, rows);
  const int h = get_global_id(1), b = get_global_id(2);
  const int g = h / group, tiles = (columns + NR - 1) / NR;
  const size_t head = ((size_t)b * (heads / group) + g) * tiles * NR;
  __global const TYPE(T) *key = k + ROW(k, b, g);
  __global const float *saved = rowsums + ((size_t)b * heads + h) * ((rows + NR - 1) / NR) * 2 * NR;
  for (int r0 = first; r0 < last; r0 += MR) {
    VISIT(visible)
    ROWS_OF(query, q, h)
    ROWS_OF(grad, d_o, h)
    CLEAR(acc, VQK)
    for (int t = from; t < to; t++) {
      DOTS(s, query, keys + (head + (size_t)t * NR) * dim_qk, dim_qk)
      DOTS(dp, grad, values + (head + (size_t)t * NR) * dim_v, dim_v)
      float ds[MR][NR];
      UNROLL for (int i = 0; i < MR; i++) {
        __global const float *one = saved + (size_t)((r0 + i) / NR) * 2 * NR + (r0 + i) % NR;
        const float log_sum = r0 + i < rows ? one[0] : 0, rowsum = r0 + i < rows ? one[NR] : 0;
        UNROLL for (int j = 0; j < NV; j++) {
          const VI column = LANES + (t * NR + j * W);
          const VF p = select((VF)(0.0f), expo(fma(s[i][j], (VF)(scale), (VF)(-log_sum))), column >= lo[i] && column < hi[i]);
          VSTORE(p * (dp[i][j] - rowsum), j, ds[i]);
        }
      }
      ADD(acc, VQK, ds, key + (size_t)t * NR * k_row, k_row, dim_qk, min(NR, columns - t * NR))
    }
    PUT(dq, h, acc, VQK, dim_qk, scale)
  }
}

// keys computes dK and dV for MR keys of a head of K and V, query head by query head; queries and
// grads hold the panels of Q and dO.
__kernel void keys(BUFFER(TYPE(T), q), HEADS(q), BUFFER(TYPE(T), k), HEADS(k), BUFFER(TYPE(T), v), HEADS(v),
                   BUFFER(TYPE(T), d_o), HEADS(d_o), BUFFER(float, queries), BUFFER(float, grads), BUFFER(float, rowsums),
                   BUFFER(TYPE(T), dk), HEADS(dk), BUFFER(TYPE(T), dv), HEADS(dv), BUFFER(int, seen), int rows,
                   int columns, int heads, int group, float scale, int dim_qk, int dim_v) {
  TENSOR(TYPE(T), q);
  TENSOR(TYPE(T), k);
  TENSOR(TYPE(T), v);
  TENSOR(TYPE(T), d_o);
  TENSOR(float, queries);
  TENSOR(float, grads);
  TENSOR(float, rowsums);
  TENSOR(TYPE(T), dk);
  TENSOR(TYPE(T), dv);
  TENSOR(int, seen);
  const int first = get_global_id(0) * MR * BLOCKS, last = min(first + MR * BLOCKS, rows);
  const int g = get_global_id(1), b = get_global_id(2);
  const int tiles = (columns + NR - 1) / NR;
  for (int r0 = first; r0 < last; r0 += MR) {
    VISIT(seen)
    ROWS_OF(key, k, g)
    ROWS_OF(value, v, g)
    CLEAR(sum_k, VQK)
    CLEAR(sum_v, VDV)
    for (int h = g * group; h < (g + 1) * group; h++) {
      const size_t head = ((size_t)b * heads + h) * tiles;
      for (int t = from; t < to; t++) {
        DOTS(s, key, queries + (head + t) * dim_qk * NR, dim_qk)
        DOTS(dp, value, grads + (head + t) * dim_v * NR, dim_v)
        __global const float *saved = rowsums + (head + t) * 2 * NR;
        float p[MR][NR], ds[MR][NR];
        UNROLL for (int i = 0; i < MR; i++)
          UNROLL for (int j = 0; j < NV; j++) {
            const VI column = LANES + (t * NR + j * W);
            const VF e = select((VF)(0.0f), expo(fma(s[i][j], (VF)(scale), -VLOAD(j, saved))), column >= lo[i] && column < hi[i]);
            VSTORE(e, j, p[i]);
            VSTORE(e * (dp[i][j] - VLOAD(j, saved + NR)), j, ds[i]);
          }
        const int count = min(NR, columns - t * NR);
        ADD(sum_v, VDV, p, d_o + ROW(d_o, b, h) + (size_t)t * NR * d_o_row, d_o_row, dim_v, count)
        ADD(sum_k, VQK, ds, q + ROW(q, b, h) + (size_t)t * NR * q_row, q_row, dim_qk, count)
      }
    }
    PUT(dk, g, sum_k, VQK, dim_qk, scale)
    PUT(dv, g, sum_v, VDV, dim_v, 1.0f)
  }
}
