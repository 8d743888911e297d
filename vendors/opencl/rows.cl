// What kernels over rows share. GROUP is the size of a work-group, W the width of vectors. A group
// of one work-item goes through rows alone, as CPUs like it; a larger group shares each row.

#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define LID ((uint)get_local_id(0))
#define GID ((uint)get_group_id(0))

#define TYPE_U8 uchar

// VEC declares a dense operand. MAT declares one with rows of one pitch, in blocks; ROW is the
// first element of a row.
#define VEC(t, x) BUFFER(TYPE(t), x)
#define AT(x) (x##_memory + x##_offset)
#define MAT(t, x) VEC(t, x), ulong x##_pitch, uint x##_block, ulong x##_jump
#define ROW(x, r) (AT(x) + (r) / x##_block * x##_jump + (r) % x##_block * x##_pitch)

// GET and SET are PIECE and PUTS of the first n elements of p.
#define GET(t, p, n) PIECE(t, p, 0, (int)min((ulong)(n), (ulong)W))
#define SET(t, p, v, n) PUTS(t, p, 0, (int)min((ulong)(n), (ulong)W), v)

// ITEMS goes through the items [0, n) of which each group takes per.
#define ITEMS(i, n, per)                                                                           \
  for (ulong i = (ulong)GID * per + LID, i##_end = min((ulong)(n), (ulong)(GID + 1) * per);        \
       i < i##_end; i += GROUP)

// GROUP_ROWS goes through the rows of a group, COLUMNS through the vectors of a row.
#define GROUP_ROWS(r)                                                                              \
  for (uint r = GID * per, r##_end = min(rows, (GID + 1) * per); r < r##_end; r++)
#define COLUMNS(c) for (uint c = LID * W; c < cols; c += GROUP * W)

// WHOLE_VECTORS goes through the vectors of a row that have all their elements; LAST_VECTOR is the
// other one, for the work-item whose turn it is.
#define WHOLE_VECTORS(c) for (uint c = LID * W; c + W <= cols; c += GROUP * W)
#define LAST_VECTOR(c) for (uint c = cols / W * W; c < cols && cols / W % GROUP == LID; c += W)

// EACH goes through all vectors of operands, whose arguments EACH_ARGS follow: of dense ones, which
// count as one row; or of rows.
#ifdef DENSE
#define EACH_ARGS uint rows, ulong cols, uint per
#define EACH(r, c)                                                                                 \
  const uint r = 0;                                                                                \
  for (ulong c = ((ulong)GID * per + LID) * W, c##_end = min(cols, (ulong)(GID + 1) * per * W);    \
       c < c##_end; c += GROUP * W)
#elif GROUP == 1
#define EACH_ARGS uint rows, uint cols, uint per
#define EACH(r, c) GROUP_ROWS(r) for (uint c = 0; c < cols; c += W)
#else
#define EACH_ARGS uint rows, uint cols, uint per
#define EACH(r, c)                                                                                 \
  for (ulong v_ = (ulong)GID * per + LID, line_ = (cols + W - 1) / W,                              \
             end_ = min((ulong)rows * line_, (ulong)(GID + 1) * per);                              \
       v_ < end_; v_ += GROUP)                                                                     \
    for (uint r = v_ / line_, c = v_ % line_ * W, once_ = 1; once_; once_ = 0)
#endif

// larger returns the larger of two numbers, and not a NaN.
static inline VF larger(VF a, VF b) { return select(a, b, b > a); }

#if W == 4
#define FOLD(x, combine) const float2 fold = combine(x.lo, x.hi)
#elif W == 8
#define FOLD(x, combine)                                                                           \
  const float4 four = combine(x.lo, x.hi);                                                         \
  const float2 fold = combine(four.lo, four.hi)
#else
#define FOLD(x, combine)                                                                           \
  const float8 eight = combine(x.lo, x.hi);                                                         \
  const float4 four = combine(eight.lo, eight.hi);                                                   \
  const float2 fold = combine(four.lo, four.hi)
#endif
#define ADD_(a, b) ((a) + (b))

static inline float add_lanes(VF x) {
  FOLD(x, ADD_);
  return fold.x + fold.y;
}

static inline float max_lanes(VF x) {
  FOLD(x, fmax);
  return fmax(fold.x, fold.y);
}

// first_lanes returns the first n elements of x, and other for the rest.
static inline VF first_lanes(VF x, uint n, float other) {
  if (n >= W)
    return x;
  float v[W];
  VSTORE(x, 0, v);
  for (uint i = n; i < W; i++)
    v[i] = other;
  return VLOAD(0, v);
}

// exponential returns exp(x) to within 1 ulp, 0 below 2^-126 and infinity above 2^127.5. Compilers
// for CPUs do not make vectors of exp.
#if GROUP == 1
static inline VF exponential(VF x) {
  x = select(x, (VF)89.0f, x > 89.0f);
  x = select(x, (VF)-88.0f, x < -88.0f);
  // x/log 2 is rounded to n, as the last bits of 1.5 * 2^23 + 127 + n.
  const VF rounded = fma(x, (VF)1.44269504f, (VF)12583039.0f);
  const VF n = rounded - 12583039.0f;
  const VF r = fma(n, (VF)-1.42860677e-6f, fma(n, (VF)-0.693145752f, x));
  VF p = fma(r, (VF)1.3814466428e-3f, (VF)8.3687804629e-3f);
  p = fma(r, p, (VF)4.1668394224e-2f);
  p = fma(r, p, (VF)1.6666520107e-1f);
  p = fma(r, p, (VF)4.9999993412e-1f);
  p = fma(r, p, (VF)1.0f);
  p = fma(r, p, (VF)1.0f);
  return p * AS_FLOAT(AS_UINT(rounded) << 23);
}

// logarithm returns log(x) to within 1 ulp for numbers that are at least 1, and a NaN for a NaN.
static inline float logarithm(float x) {
  const int n = (int)(as_uint(x) - 0x3f3504f3u) >> 23; // x = 2^n * (1 + f), f is near 0
  const float f = as_float(as_uint(x) - ((uint)n << 23)) - 1.0f;
  float p = fma(f, 7.0376836292e-2f, -1.1514610310e-1f);
  p = fma(f, p, 1.1676998740e-1f);
  p = fma(f, p, -1.2420140846e-1f);
  p = fma(f, p, 1.4249322787e-1f);
  p = fma(f, p, -1.6668057665e-1f);
  p = fma(f, p, 2.0000714765e-1f);
  p = fma(f, p, -2.4999993993e-1f);
  p = fma(f, p, 3.3333331174e-1f);
  p = fma(f * f, fma(f, p, -0.5f), f);
  return isfinite(x) ? fma((float)n, 0.69314718f, p) : x;
}
#else
#define exponential(x) exp(x)
#define logarithm(x) log(x)
#endif

// GROUP_SUM and GROUP_MAX combine one number of each work-item of a group that has SHARED memory,
// in the order of a tree. All work-items must get there.
#if GROUP == 1
#define SHARED
#define GROUP_SUM(x) (x)
#define GROUP_MAX(x) (x)
#else
#define SHARED __local float shared_[GROUP]
#define GROUP_SUM(x) group_sum(x, shared_)
#define GROUP_MAX(x) group_max(x, shared_)
#define DEFINE_TREE(name, combine)                                                                 \
  static inline float name(float x, __local float *shared) {                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    shared[LID] = x;                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    for (uint n = GROUP / 2; n > 0; n /= 2) {                                                      \
      if (LID < n)                                                                                 \
        shared[LID] = combine(shared[LID], shared[LID + n]);                                       \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                \
    }                                                                                              \
    return shared[0];                                                                              \
  }
DEFINE_TREE(group_sum, ADD_)
DEFINE_TREE(group_max, fmax)
#endif
