// Products and sums keep the order and the roundings that the source says.
#pragma OPENCL FP_CONTRACT OFF

// UNROLL stands before a loop over what must be in registers.
#define UNROLL _Pragma("unroll")

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define JOIN3_(a, b, c) a##b##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)

// A dtype, F32, BF16 or F16, is the name of a storage type: TYPE(t) is the type of a stored element,
// LOAD(t, p, i) reads one as f32 and STORE(t, p, i, v) rounds to nearest even.
#define TYPE_F32 float
#define TYPE_BF16 ushort
#define TYPE_F16 half
#define TYPE(t) JOIN(TYPE_, t)
#define LOAD(t, p, i) JOIN(load_, t)(p, i)
#define STORE(t, p, i, v) JOIN(store_, t)(p, i, v)

static inline float load_F32(__global const float *p, size_t i) { return p[i]; }
static inline float load_BF16(__global const ushort *p, size_t i) { return as_float((uint)p[i] << 16); }
static inline float load_F16(__global const half *p, size_t i) { return vload_half(i, p); }

static inline void store_F32(__global float *p, size_t i, float v) { p[i] = v; }
static inline void store_F16(__global half *p, size_t i, float v) { vstore_half_rte(v, i, p); }

static inline ushort to_bf16(float v) {
  const uint bits = as_uint(v);
  const uint up = bits + 0x7fff + (bits >> 16 & 1);
  return (isnan(v) ? bits | 0x400000 : up) >> 16;
}

static inline void store_BF16(__global ushort *p, size_t i, float v) { p[i] = to_bf16(v); }

// With W defined as 4, 8 or 16, vectors of W numbers: LOADS(t, p, i) reads W elements from element i
// on, PIECE(t, p, i, n) those before element n and 0 for the others; PUTS(t, p, i, n, v) stores those
// before element n.
#ifdef W
#define VF JOIN(float, W)
#define VI JOIN(int, W)
#define VU JOIN(uint, W)
#define VLOAD JOIN(vload, W)
#define VSTORE JOIN(vstore, W)
#define TO_INT JOIN(convert_int, W)
#define TO_USHORT JOIN(convert_ushort, W)
#define AS_FLOAT JOIN(as_float, W)
#define AS_UINT JOIN(as_uint, W)
#define LOADS(t, p, i) JOIN(loads_, t)(p, i)
#define STORES(t, p, i, v) JOIN(stores_, t)(p, i, v)

static inline VF loads_F32(__global const float *p, size_t i) { return VLOAD(0, p + i); }
static inline VF loads_BF16(__global const ushort *p, size_t i) {
  return AS_FLOAT(JOIN(convert_uint, W)(VLOAD(0, p + i)) << 16);
}
static inline VF loads_F16(__global const half *p, size_t i) { return JOIN(vload_half, W)(0, p + i); }

static inline void stores_F32(__global float *p, size_t i, VF v) { VSTORE(v, 0, p + i); }
// PoCL's vstore_half takes every address for one that is aligned to the vector; bits is.
static inline void stores_F16(__global half *p, size_t i, VF v) {
  ushort bits[W] __attribute__((aligned(64)));
  JOIN3(vstore_half, W, _rte)(v, 0, (half *)bits);
  VSTORE(VLOAD(0, bits), 0, (__global ushort *)p + i);
}
static inline void stores_BF16(__global ushort *p, size_t i, VF v) {
  const VU bits = AS_UINT(v);
  const VU up = bits + 0x7fff + (bits >> 16 & 1);
  VSTORE(TO_USHORT(select(up, bits | 0x400000, isnan(v)) >> 16), 0, p + i);
}

#define PIECE(t, p, i, n) JOIN(piece_, t)(p, i, n)
#define PUTS(t, p, i, n, v) JOIN(puts_, t)(p, i, n, v)
#define DEFINE_PIECES(t)                                                                           \
  static inline VF piece_##t(__global const TYPE_##t *p, int i, int n) {                           \
    if (i + W <= n)                                                                                \
      return loads_##t(p, i);                                                                      \
    float v[W];                                                                                    \
    for (int j = 0; j < W; j++)                                                                    \
      v[j] = i + j < n ? load_##t(p, i + j) : 0;                                                   \
    return VLOAD(0, v);                                                                            \
  }                                                                                                \
  static inline void puts_##t(__global TYPE_##t *p, int i, int n, VF v) {                          \
    if (i + W <= n) {                                                                              \
      stores_##t(p, i, v);                                                                         \
      return;                                                                                      \
    }                                                                                              \
    float e[W];                                                                                    \
    VSTORE(v, 0, e);                                                                               \
    for (int j = 0; j < W; j++)                                                                    \
      if (i + j < n)                                                                               \
        store_##t(p, i + j, e[j]);                                                                 \
  }
DEFINE_PIECES(F32)
DEFINE_PIECES(BF16)
DEFINE_PIECES(F16)
#endif
