// Compile-time parameters: T, the dtype of Q, K, V, O and their gradients; VQK and VDV, the vectors
// that a head of Q and one of V take; W, the width of vectors, which is 16, 8 or 4; MR, the rows of a
// tile; NV, the vectors of columns of a tile; BLOCKS, how many times MR rows a work-item computes,
// one after the other; OPTIONS, that calls have arguments OPTION_ARGS. A tile has MR rows and NR =
// NV·W columns, which divide 32.
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

#define TO_FLOAT JOIN(convert_float, W)

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

// bounds writes PLACE numbers for each query: the first key that it sees and the one after the last,
// the key on its diagonal, its sequence, its position there, which is −1 for a row of no sequence,
// and the first key of the sequence; and the same for each key, with queries for keys. Rows count
// from the first row of the batch entry. The lists of sequences+1 totals are of the lengths of the
// sequences and of where they begin, for queries and for keys. packed says that all sequences lie
// in one batch entry.
#define PLACE 6
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
  if (padding && s < sequences) {
    len_q = lq[s + 1] - lq[s];
    len_kv = lkv[s + 1] - lkv[s];
  }
  if (s >= sequences)
    len_q = len_kv = 0;
  const int off = bottom_right ? len_kv - len_q : 0;
  int lo = 0, hi = 0, own, diagonal, other;
  if (!keys) {
    const int i = row - first_q;
    if (i < len_q) {
      hi = causal ? min(len_kv, i + off + 1) : len_kv;
      if (right >= 0)
        hi = min(hi, i + off + right + 1);
      if (left >= 0)
        lo = max(0, i + off - left);
    }
    own = i < len_q ? i : -1;
    other = first_kv;
    diagonal = i + off + first_kv;
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
    own = j < len_kv ? j : -1;
    other = first_q;
    diagonal = j - off + first_q;
  }
  __global int *to = (keys ? seen : visible) + ((size_t)b * rows + row) * PLACE;
  to[0] = lo + other;
  to[1] = max(lo, hi) + other;
  to[2] = diagonal;
  to[3] = s;
  to[4] = own;
  to[5] = other;
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

// VISIT sets from and to to the tiles that a block of rows from r0 on needs, and lo and hi to what
// each row sees.
#define VISIT(list)                                                                                \
  int lo[MR], hi[MR], from = INT_MAX, to = 0;                                                      \
  UNROLL for (int i = 0; i < MR; i++) {                                                            \
    __global const int *at = (list) + ((size_t)b * rows + min(r0 + i, rows - 1)) * PLACE;          \
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
    UNROLL for (int i = 0; i < MR; i++) {                                                            \
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
    UNROLL for (int i = 0; i < MR; i++) {                                                            \
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

// ADD_SEEN is ADD without what rows hide, whose weights HIDE has marked: 0 times NaN is NaN.
#define ADD_SEEN(acc, vectors, weights, x, x_step, d, columns)                                     \
  {                                                                                                \
    VF wide[MR][vectors]; /* in memory, so that the code is short */                               \
    UNROLL for (int i = 0; i < MR; i++)                                                            \
      UNROLL for (int j = 0; j < (vectors); j++)                                                   \
        wide[i][j] = acc[i][j];                                                                    \
    for (int c = 0; c < (columns); c++)                                                            \
      for (int j = 0; j < (vectors); j++) {                                                        \
        const VF line = PIECE(T, (x) + (size_t)c * x_step, j * W, d);                              \
        for (int i = 0; i < MR; i++)                                                               \
          if (as_uint(weights[i][c]) != 0x80000000)                                                \
            wide[i][j] = fma(line, (VF)(weights[i][c]), wide[i][j]);                               \
      }                                                                                            \
    UNROLL for (int i = 0; i < MR; i++)                                                            \
      UNROLL for (int j = 0; j < (vectors); j++)                                                   \
        acc[i][j] = wide[i][j];                                                                    \
  }

// HIDE marks the weights of columns that are hidden by the sign of a zero, which others lose.
#define HIDE(weights)                                                                              \
  UNROLL for (int i = 0; i < MR; i++)                                                              \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
      VSTORE(select(VLOAD(j, weights[i]) + 0.0f, (VF)(-0.0f), HIDDEN(i, j)), j, weights[i]);

// LOST sets lost to whether acc has a NaN. Then rows are computed again, with care for those that
// do not see where it comes from.
#define LOST(lost, acc, vectors)                                                                   \
  bool lost = false;                                                                               \
  UNROLL for (int i = 0; i < MR; i++)                                                              \
    UNROLL for (int j = 0; j < (vectors); j++)                                                     \
      lost |= any(acc[i][j] != acc[i][j]);

// PUT stores scale[i] times the rows of acc.
#define PUT(x, h, acc, vectors, d, scale)                                                          \
  for (int i = 0; i < MR && r0 + i < rows; i++)                                                    \
    UNROLL for (int j = 0; j < (vectors); j++)                                                            \
      PUTS(T, x + ROW(x, b, h) + (size_t)(r0 + i) * x##_row, j * W, d, acc[i][j] * (scale));

#ifdef OPTIONS
// OPTION_ARGS are what a call adds to the scores and does to the probabilities: options says which of
// WITH_BIAS and so on there are. Operands with the axes of the scores have distances by batch entry,
// head, row and column, 0 along axes that are repeated. kept has a bit for each probability, in
// words of 32 columns, and boost is the factor of those that are kept.
#define WITH_BIAS 1
#define WITH_MASK 2
#define WITH_ALIBI 4
#define WITH_SLOPES 8
#define WITH_DROPOUT 16
#define WITH_ONE 32
#define WITH_SINKS 64
#define WITH_PEAKS 128
#define WITH_GRADIENT 256
#define SCORES(x) int x##_batch, int x##_head, int x##_row, int x##_col
#define OPTION_ARGS                                                                                \
  , int options, BUFFER(TYPE(T), bias), SCORES(bias), float bias_factor, BUFFER(uchar, hidden),    \
      SCORES(hidden), BUFFER(float, slopes), int slopes_batch, BUFFER(uint, kept), int words, float boost
#define SINK_ARGS , BUFFER(float, sinks), BUFFER(float, peaks)
#define GRADIENT_ARGS , BUFFER(float, gradient)

// LINE is where a row of an operand with the axes of the scores begins.
#define LINE(x, row)                                                                               \
  (x##_memory + x##_offset + (size_t)b * x##_batch + (size_t)h * x##_head + (size_t)(row) * x##_row)

// numbers and bytes return the elements of columns c to c + W − 1, and 0 from column n on.
static inline VF numbers(__global const TYPE(T) *line, int step, int c, int n) {
  if (step == 1)
    return PIECE(T, line, c, n);
  float v[W];
  for (int l = 0; l < W; l++)
    v[l] = c + l < n ? LOAD(T, line, (size_t)(c + l) * step) : 0;
  return VLOAD(0, v);
}

static inline VI bytes(__global const uchar *line, int step, int c, int n) {
  int v[W];
  for (int l = 0; l < W; l++)
    v[l] = c + l < n ? line[(size_t)(c + l) * step] : 0;
  return VLOAD(0, v);
}

// default_slope is the slope of a head that ALiBi uses when none are given.
static inline float default_slope(int head, int heads) {
  int n = 1;
  while (2 * n <= heads)
    n *= 2;
  return exp2(head < n ? -8.0f * (head + 1) / n : -4.0f * (2 * (head - n) + 1) / n);
}

// PREPARE adds to the scores s of a tile what the options say, with −∞ for what a row does not see,
// and sets factors to those of the probabilities.
#define PREPARE(list)                                                                              \
  float scores[MR][NR], factors[MR][NR];                                                           \
  UNROLL for (int i = 0; i < MR; i++)                                                              \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
      VSTORE(s[i][j] * scale, j, scores[i]);                                                       \
  for (int i = 0; i < MR; i++) {                                                                   \
    const int row = min(r0 + i, rows - 1);                                                         \
    __global const int *at = (list) + ((size_t)b * rows + row) * PLACE;                            \
    __global const uint *bits = kept_memory + kept_offset + (((size_t)b * heads + h) * rows + row) * words; \
    float slope = 0;                                                                               \
    if (options & WITH_SLOPES)                                                                     \
      slope = (slopes_memory + slopes_offset)[(size_t)at[3] * slopes_batch + h];                   \
    else if (options & WITH_ALIBI)                                                                 \
      slope = default_slope(h, heads);                                                             \
    for (int j = 0; j < NV; j++) {                                                                 \
      const int c = t * NR + j * W;                                                                \
      const VI column = LANES + c;                                                                 \
      VI sees = column >= at[0] && column < at[1];                                                 \
      VF v = VLOAD(j, scores[i]), factor = 1;                                                      \
      if (options & WITH_BIAS)                                                                     \
        v += bias_factor * numbers(LINE(bias, row), bias_col, c, columns);                         \
      if (options & WITH_ALIBI)                                                                    \
        v -= slope * fabs(TO_FLOAT(column - at[2]));                                               \
      if (options & WITH_MASK)                                                                     \
        sees = sees && bytes(LINE(hidden, row), hidden_col, c, columns) == 0;                      \
      if (options & WITH_DROPOUT)                                                                  \
        factor = select((VF)(0.0f), (VF)(boost), ((VI)((int)bits[c / 32]) >> (LANES + c % 32) & 1) != 0); \
      VSTORE(select((VF)(-INFINITY), v, sees), j, scores[i]);                                      \
      VSTORE(select((VF)(-1.0f), factor, sees), j, factors[i]);                                    \
    }                                                                                              \
  }                                                                                                \
  UNROLL for (int i = 0; i < MR; i++)                                                              \
    UNROLL for (int j = 0; j < NV; j++)                                                            \
      s[i][j] = VLOAD(j, scores[i]);

#define SCORE(i, j) s[i][j]
#define WEIGHT(i, j, log_sum) expo(s[i][j] - (log_sum))
#define DROPPED(i, j, x) ((x) * VLOAD(j, factors[i]))
#define HIDDEN(i, j) (VLOAD(j, factors[i]) < 0)

// decide makes the decisions of dropout for 64 keys of a query: a bit that is set keeps a
// probability.
__kernel void decide(BUFFER(uint, kept), BUFFER(int, visible), int rows, int columns, int heads, int words,
                     ulong seed, ulong offset, uint limit) {
  TENSOR(uint, kept);
  TENSOR(int, visible);
  const int pair = get_global_id(0), row = get_global_id(1), b = get_global_id(2) / heads, h = get_global_id(2) % heads;
  const int first = 64 * pair;
  if (2 * pair >= words)
    return;
  __global const int *at = visible + ((size_t)b * rows + row) * PLACE;
  __global uint *to = kept + ((size_t)get_global_id(2) * rows + row) * words + 2 * pair;
  ulong bits = 0, more = 0;
  if (first < at[1] && first + 64 > at[0]) {
    const long n = (((long)at[3] * heads + h) * rows + at[4]) * columns + (first - at[5]);
    const uint skip = n & 3; // decisions of the first counter that belong to keys before
    for (int l = 0; l < 16 + (skip > 0); l += W) {
      uint lane[W];
      VSTORE(at_least(offset + (ulong)(n >> 2) + l, seed, limit), 0, lane);
      for (int x = 0; x < W; x++)
        if (l + x < 16)
          bits |= (ulong)lane[x] << 4 * (l + x);
        else if (l + x == 16)
          more = lane[x];
    }
    if (skip)
      bits = bits >> skip | more << (64 - skip);
  }
  to[0] = (uint)bits;
  to[1] = (uint)(bits >> 32);
}

// turn transposes the decisions: turned[b, h, key] has words of 32 queries.
__kernel void turn(BUFFER(uint, kept), BUFFER(uint, turned), int rows, int columns, int words, int turned_words) {
  TENSOR(uint, kept);
  TENSOR(uint, turned);
  const int to = get_global_id(0), from = get_global_id(1);
  const size_t head = get_global_id(2);
  if (to >= turned_words)
    return;
  uint word[32];
  for (int i = 0; i < 32; i++)
    word[i] = 32 * to + i < rows ? kept[(head * rows + 32 * to + i) * words + from] : 0;
  for (int j = 0; j < 32 && 32 * from + j < columns; j++) {
    uint bits = 0;
    for (int i = 0; i < 32; i++)
      bits |= (word[i] >> j & 1) << i;
    turned[(head * columns + 32 * from + j) * turned_words + to] = bits;
  }
}

// highest stores the largest score of each head, from those of its rows.
__kernel void highest(BUFFER(float, peaks), BUFFER(float, max_logit), int rows, int heads, int batch) {
  TENSOR(float, peaks);
  TENSOR(float, max_logit);
  const int h = get_global_id(0);
  if (h >= heads)
    return;
  float top = -INFINITY;
  for (int b = 0; b < batch; b++)
    for (int r = 0; r < rows; r++) {
      const float here = peaks[((size_t)b * heads + h) * rows + r];
      top = here > top ? here : top;
    }
  max_logit[h] = top;
}

// bias_gradient adds up the gradients of the scores over the axes that bias repeats. Axes of dbias
// have a length of 1 or that of the scores.
__kernel void bias_gradient(BUFFER(float, gradient), BUFFER(int, visible), BUFFER(TYPE(T), dbias), SCORES(dbias),
                            int batch, int heads, int rows, int columns, int batch_1, int heads_1, int rows_1,
                            int columns_1, float by) {
  TENSOR(float, gradient);
  TENSOR(int, visible);
  TENSOR(TYPE(T), dbias);
  const int c1 = get_global_id(0), r1 = get_global_id(1), h1 = get_global_id(2) % heads_1, b1 = get_global_id(2) / heads_1;
  if (c1 >= columns_1)
    return;
  float total = 0;
  for (int b = b1; b < batch; b += batch_1)
    for (int h = h1; h < heads; h += heads_1)
      for (int r = r1; r < rows; r += rows_1) {
        __global const int *at = visible + ((size_t)b * rows + r) * PLACE;
        __global const float *line = gradient + (((size_t)b * heads + h) * rows + r) * columns;
        float part = 0;
        for (int c = c1; c < at[1]; c += columns_1)
          if (c >= at[0])
            part += line[c];
        total += part;
      }
  STORE(T, dbias, (size_t)b1 * dbias_batch + (size_t)h1 * dbias_head + (size_t)r1 * dbias_row + (size_t)c1 * dbias_col, total * by);
}

// sink_gradient computes the gradient of the offset of each head's softmax.
__kernel void sink_gradient(BUFFER(float, sinks), BUFFER(float, rowsums), BUFFER(float, dsinks), int rows, int tiles,
                            int heads, int batch) {
  TENSOR(float, sinks);
  TENSOR(float, rowsums);
  TENSOR(float, dsinks);
  const int h = get_global_id(0);
  if (h >= heads)
    return;
  float total = 0;
  for (int b = 0; b < batch; b++) {
    __global const float *saved = rowsums + ((size_t)b * heads + h) * tiles * 2 * NR;
    for (int r = 0; r < rows; r++) {
      __global const float *one = saved + (size_t)(r / NR) * 2 * NR + r % NR;
      if (one[NR] != 0) // of a row that sees something
        total -= exp(sinks[h] - one[0]) * one[NR];
    }
  }
  dsinks[h] = total;
}
#else
#define OPTION_ARGS
#define SINK_ARGS
#define GRADIENT_ARGS
#define PREPARE(list)
#define SCORE(i, j) select((VF)(-INFINITY), s[i][j] * scale, SEES(i, j))
#define WEIGHT(i, j, log_sum) select((VF)(0.0f), expo(fma(s[i][j], (VF)(scale), -(VF)(log_sum))), SEES(i, j))
#define DROPPED(i, j, x) (x)
#define HIDDEN(i, j) (!SEES(i, j))
#endif

// SEES says which columns of vector j of a tile row i sees.
#define COLUMN(j) (LANES + (t * NR + j * W))
#define SEES(i, j) (COLUMN(j) >= lo[i] && COLUMN(j) < hi[i])

// forward computes O and stats for MR queries of a head; keys holds the panels of K.
__kernel void forward(BUFFER(TYPE(T), q), HEADS(q), BUFFER(float, keys), BUFFER(TYPE(T), v), HEADS(v),
                      BUFFER(TYPE(T), o), HEADS(o), BUFFER(float, stats), HEADS(stats), BUFFER(int, visible),
                      int rows, int columns, int heads, int group, float scale, int dim_qk, int dim_v OPTION_ARGS SINK_ARGS) {
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
    for (int careful = 0; careful < 2; careful++) {
      CLEAR(acc, VDV)
      float top[MR], total[MR];
      UNROLL for (int i = 0; i < MR; i++) {
        top[i] = -INFINITY;
        total[i] = 0;
      }
#ifdef OPTIONS
      float peak[MR];
      UNROLL for (int i = 0; i < MR; i++) {
        peak[i] = -INFINITY;
        if (options & (WITH_ONE | WITH_SINKS) && visible[((size_t)b * rows + min(r0 + i, rows - 1)) * PLACE + 4] >= 0) {
          top[i] = options & WITH_ONE ? 0 : (sinks_memory + sinks_offset)[h];
          total[i] = top[i] == -INFINITY ? 0 : 1;
        }
      }
#endif
      for (int t = from; t < to; t++) {
        DOTS(s, query, panel + (size_t)t * dim_qk * NR, dim_qk)
        PREPARE(visible)
        float p[MR][NR];
        UNROLL for (int i = 0; i < MR; i++) {
          VF high = -INFINITY;
          UNROLL for (int j = 0; j < NV; j++) {
            s[i][j] = SCORE(i, j);
            high = select(high, s[i][j], s[i][j] > high);
          }
          const float here = largest(high), now = here > top[i] ? here : top[i];
#ifdef OPTIONS
          peak[i] = here > peak[i] ? here : peak[i];
#endif
          const float safe = now == -INFINITY ? 0 : now;
          const float fade = top[i] == now ? 1 : expo1(top[i] - safe); // also where both are ∞
          VF part = 0;
          UNROLL for (int j = 0; j < NV; j++) {
            const VF e = expo(s[i][j] - safe);
            part += e;
            VSTORE(DROPPED(i, j, e), j, p[i]);
          }
          total[i] = total[i] * fade + sum(part);
          top[i] = now;
          UNROLL for (int j = 0; j < VDV; j++)
            acc[i][j] *= fade;
        }
        if (careful) {
          HIDE(p)
          ADD_SEEN(acc, VDV, p, values + (size_t)t * NR * v_row, v_row, dim_v, min(NR, columns - t * NR))
        } else {
          ADD(acc, VDV, p, values + (size_t)t * NR * v_row, v_row, dim_v, min(NR, columns - t * NR))
        }
      }
      LOST(lost, acc, VDV)
      if (lost && !careful)
        continue;
      float inverse[MR];
      UNROLL for (int i = 0; i < MR; i++)
        inverse[i] = total[i] != 0 ? 1 / total[i] : 0;
      PUT(o, h, acc, VDV, dim_v, inverse[i])
      for (int i = 0; i < MR && r0 + i < rows; i++)
        stats[ROW(stats, b, h) + (size_t)(r0 + i) * stats_row] = total[i] != 0 ? top[i] + log(total[i]) : -INFINITY;
#ifdef OPTIONS
      if (options & WITH_PEAKS)
        for (int i = 0; i < MR && r0 + i < rows; i++)
          (peaks_memory + peaks_offset)[((size_t)b * heads + h) * rows + r0 + i] = peak[i];
#endif
      break;
    }
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
                      BUFFER(int, visible), int rows, int columns, int heads, int group, float scale, int dim_qk, int dim_v
                      OPTION_ARGS GRADIENT_ARGS) {
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
    for (int careful = 0; careful < 2; careful++) {
      CLEAR(acc, VQK)
      for (int t = from; t < to; t++) {
        DOTS(s, query, keys + (head + (size_t)t * NR) * dim_qk, dim_qk)
        DOTS(dp, grad, values + (head + (size_t)t * NR) * dim_v, dim_v)
        PREPARE(visible)
        float ds[MR][NR];
        UNROLL for (int i = 0; i < MR; i++) {
          __global const float *one = saved + (size_t)((r0 + i) / NR) * 2 * NR + (r0 + i) % NR;
          const float log_sum = r0 + i < rows ? one[0] : 0, rowsum = r0 + i < rows ? one[NR] : 0;
          UNROLL for (int j = 0; j < NV; j++) {
            const VF p = WEIGHT(i, j, log_sum);
            VSTORE(p * (DROPPED(i, j, dp[i][j]) - rowsum), j, ds[i]);
          }
        }
        if (careful)
          HIDE(ds)
#ifdef OPTIONS
        if (options & WITH_GRADIENT)
          for (int i = 0; i < MR && r0 + i < rows; i++) {
            __global float *line = gradient_memory + gradient_offset + (((size_t)b * heads + h) * rows + r0 + i) * columns;
            for (int j = 0; j < NV; j++)
              PUTS(F32, line, t * NR + j * W, columns, VLOAD(j, ds[i]));
          }
#endif
        if (careful) {
          ADD_SEEN(acc, VQK, ds, key + (size_t)t * NR * k_row, k_row, dim_qk, min(NR, columns - t * NR))
        } else {
          ADD(acc, VQK, ds, key + (size_t)t * NR * k_row, k_row, dim_qk, min(NR, columns - t * NR))
        }
      }
      LOST(lost, acc, VQK)
      if (lost && !careful)
        continue;
      PUT(dq, h, acc, VQK, dim_qk, scale)
      break;
    }
  }
}

// keys computes dK and dV for MR keys of a head of K and V, query head by query head; queries and
// grads hold the panels of Q and dO.
__kernel void keys(BUFFER(TYPE(T), q), HEADS(q), BUFFER(TYPE(T), k), HEADS(k), BUFFER(TYPE(T), v), HEADS(v),
                   BUFFER(TYPE(T), d_o), HEADS(d_o), BUFFER(float, queries), BUFFER(float, grads), BUFFER(float, rowsums),
                   BUFFER(TYPE(T), dk), HEADS(dk), BUFFER(TYPE(T), dv), HEADS(dv), BUFFER(int, seen), int rows,
                   int columns, int heads, int group, float scale, int dim_qk, int dim_v OPTION_ARGS) {
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
    for (int careful = 0; careful < 2; careful++) {
      CLEAR(sum_k, VQK)
      CLEAR(sum_v, VDV)
      for (int h = g * group; h < (g + 1) * group; h++) {
        const size_t head = ((size_t)b * heads + h) * tiles;
        for (int t = from; t < to; t++) {
          DOTS(s, key, queries + (head + t) * dim_qk * NR, dim_qk)
          DOTS(dp, value, grads + (head + t) * dim_v * NR, dim_v)
          PREPARE(seen)
          __global const float *saved = rowsums + (head + t) * 2 * NR;
          float p[MR][NR], ds[MR][NR];
          UNROLL for (int i = 0; i < MR; i++)
            UNROLL for (int j = 0; j < NV; j++) {
              const VF e = WEIGHT(i, j, VLOAD(j, saved));
              VSTORE(DROPPED(i, j, e), j, p[i]);
              VSTORE(e * (DROPPED(i, j, dp[i][j]) - VLOAD(j, saved + NR)), j, ds[i]);
            }
          const int count = min(NR, columns - t * NR);
          if (careful) {
            HIDE(p)
            HIDE(ds)
            ADD_SEEN(sum_v, VDV, p, d_o + ROW(d_o, b, h) + (size_t)t * NR * d_o_row, d_o_row, dim_v, count)
            ADD_SEEN(sum_k, VQK, ds, q + ROW(q, b, h) + (size_t)t * NR * q_row, q_row, dim_qk, count)
          } else {
            ADD(sum_v, VDV, p, d_o + ROW(d_o, b, h) + (size_t)t * NR * d_o_row, d_o_row, dim_v, count)
            ADD(sum_k, VQK, ds, q + ROW(q, b, h) + (size_t)t * NR * q_row, q_row, dim_qk, count)
          }
        }
      }
      LOST(lost_k, sum_k, VQK)
      LOST(lost_v, sum_v, VDV)
      if ((lost_k || lost_v) && !careful)
        continue;
      PUT(dk, g, sum_k, VQK, dim_qk, scale)
      PUT(dv, g, sum_v, VDV, dim_v, 1.0f)
      break;
    }
  }
}
