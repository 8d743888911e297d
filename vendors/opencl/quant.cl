// Options: X names the storage of the matrix; E5M2: the data is of that format and not E4M3; E8M0:
// scales are powers of two in a byte and not f32.

#ifdef E5M2
#define MANTISSA 2
#define BIAS 15
#define LARGEST 57344.0f
#define EXPONENT 15 // of LARGEST, which is 1.75 times a power of two
#else
#define MANTISSA 3
#define BIAS 7
#define LARGEST 448.0f
#define EXPONENT 8
#endif

// STRIDED declares a matrix whose rows and columns are at some distances; ELEMENT is where an element
// is.
#define STRIDED(t, x) VEC(t, x), long x##_row, long x##_col
#define ELEMENT(x, r, c) ((long)(r) * x##_row + (long)(c) * x##_col)

// encode rounds a number to fp8, to nearest even. Numbers out of range become the largest one.
static inline uchar encode(float v) {
  const uchar sign = as_uint(v) >> 24 & 0x80;
  if (isnan(v))
    return sign | 0x7f;
  const float a = min(fabs(v), LARGEST);
  const int e = max((int)(as_uint(a) >> 23) - 127, 1 - BIAS);
  const float steps = a * as_float((127 - e + MANTISSA) << 23) + 8388608.0f - 8388608.0f; // rounds
  return sign | (uchar)(((e + BIAS - 1) << MANTISSA) + (int)steps);
}

// decode returns the value of fp8.
static inline float decode(uchar code) {
  const int e = code >> MANTISSA & (0x7f >> MANTISSA), m = code & ((1 << MANTISSA) - 1);
  const uint sign = (uint)(code & 0x80) << 24;
#ifdef E5M2
  if (e == 31)
    return as_float(sign | (m ? 0x7fc00000u : 0x7f800000u));
#else
  if ((code & 0x7f) == 0x7f)
    return as_float(sign | 0x7fc00000u);
#endif
  const float size = (m + min(e, 1) * (1 << MANTISSA)) * as_float((uint)(max(e, 1) - BIAS - MANTISSA + 127) << 23);
  return as_float(sign | as_uint(size));
}

// scale_of is the scale that makes use of the range of fp8.
static inline float scale_of(float amax, float epsilon, int power_of_2) {
  const float a = max(amax, epsilon);
  if (a == 0 || isinf(a))
    return 1;
  const float scale = min(LARGEST / a, FLT_MAX);
  return power_of_2 ? as_float(as_uint(scale) & 0x7f800000) : scale;
}

// e8m0 is the code of the least power of two that is at least amax/LARGEST.
static inline uchar e8m0(float amax) {
  if (isinf(amax))
    return 254;
  const uint bits = as_uint(amax);
  return clamp((int)(bits >> 23) - EXPONENT + ((bits & 0x7fffff) > 0x600000), 0, 254);
}

// power returns 2^e for e from −127 to 127.
static inline float power(int e) { return as_float(e == -127 ? 0x400000u : (uint)(e + 127) << 23); }

// amax_parts stores the largest magnitude in the rows of each group, NaNs aside.
KERNEL void amax_parts(STRIDED(X, x), VEC(F32, parts), uint rows, uint cols, uint per) {
  SHARED;
  VF top = 0.0f;
  GROUP_ROWS(r) {
    __global const TYPE(X) *line = AT(x) + (long)r * x_row;
    if (x_col == 1) {
      COLUMNS(c) top = larger(top, fabs(GET(X, line + c, cols - c)));
    } else {
      for (uint c = LID; c < cols; c += GROUP)
        top = larger(top, (VF)(fabs(LOAD(X, line, (long)c * x_col))));
    }
  }
  const float most = GROUP_MAX(max_lanes(top));
  if (LID == 0)
    AT(parts)[GID] = most;
}

// whole_scale computes amax and scale of a tensor, or with delayed scaling updates amax.
KERNEL void whole_scale(VEC(F32, parts), VEC(F32, amax), VEC(F32, scale), VEC(F32, inverse), uint n, float epsilon,
                        int power_of_2, int delayed) {
  if (LID > 0)
    return;
  float most = delayed ? AT(amax)[0] : 0;
  for (uint i = 0; i < n; i++)
    most = AT(parts)[i] > most ? AT(parts)[i] : most;
  AT(amax)[0] = most;
  if (!delayed)
    AT(scale)[0] = scale_of(most, epsilon, power_of_2);
  AT(inverse)[0] = 1 / AT(scale)[0];
}

// whole rounds a matrix with one scale.
KERNEL void whole(STRIDED(X, x), STRIDED(U8, data), VEC(F32, scale), uint rows, uint cols, uint per) {
  const float by = AT(scale)[0];
  GROUP_ROWS(r)
    for (uint c = LID; c < cols; c += GROUP)
      AT(data)[ELEMENT(data, r, c)] = encode(LOAD(X, AT(x), ELEMENT(x, r, c)) * by);
}

#ifdef E8M0
#define INVERSE U8
#define VALUE(code) ((code) == 255 ? NAN : power((int)(code) - 127))
#else
#define INVERSE F32
#define VALUE(v) (v)
#endif

// blocks rounds a matrix in blocks of height×width elements, each with its scale. A work-item takes
// whole blocks.
KERNEL void blocks(STRIDED(X, x), STRIDED(U8, data), STRIDED(INVERSE, inverse), uint rows, uint cols, uint height,
                   uint width, float epsilon, int power_of_2, ulong n, uint per) {
  const uint across = (cols + width - 1) / width;
  ITEMS(i, n, per) {
    const uint br = i / across, bc = i % across;
    const uint r0 = br * height, r1 = min(r0 + height, rows), c0 = bc * width, c1 = min(c0 + width, cols);
    float amax = 0;
    for (uint r = r0; r < r1; r++)
      for (uint c = c0; c < c1; c++) {
        const float v = fabs(LOAD(X, AT(x), ELEMENT(x, r, c)));
        amax = v > amax ? v : amax;
      }
#ifdef E8M0
    const uchar code = e8m0(amax);
    const float scale = power(127 - code);
    AT(inverse)[ELEMENT(inverse, br, bc)] = code;
#else
    const float scale = scale_of(amax, epsilon, power_of_2);
    AT(inverse)[ELEMENT(inverse, br, bc)] = 1 / scale;
#endif
    for (uint r = r0; r < r1; r++)
      for (uint c = c0; c < c1; c++)
        AT(data)[ELEMENT(data, r, c)] = encode(LOAD(X, AT(x), ELEMENT(x, r, c)) * scale);
  }
}

// dequantize computes the values of a matrix whose blocks of height×width elements have a scale each.
KERNEL void dequantize(STRIDED(U8, data), STRIDED(INVERSE, inverse), STRIDED(X, out), uint height, uint width, uint rows,
                       uint cols, uint per) {
  GROUP_ROWS(r)
    for (uint c = LID; c < cols; c += GROUP)
      STORE(X, AT(out), ELEMENT(out, r, c), decode(AT(data)[ELEMENT(data, r, c)]) * VALUE(AT(inverse)[ELEMENT(inverse, r / height, c / width)]));
}

// roll ends a step of delayed scaling: last are the magnitudes of the step, range is the largest
// number of fp8 times the margin.
KERNEL void roll(VEC(F32, last), STRIDED(F32, history), VEC(F32, scale), uint length, float range, int recent, ulong n,
                 uint per) {
  ITEMS(i, n, per) {
    __global float *h = AT(history) + i * history_col;
    const float now = AT(last)[i] == 0 ? h[0] : AT(last)[i];
    if (now == 0)
      continue;
    float most = recent || !isnan(now) ? now : 0;
    for (uint k = 0; k + 1 < length; k++) {
      const float v = h[(k + 1) * history_row];
      h[k * history_row] = v;
      if (!recent && v > most)
        most = v;
    }
    h[(length - 1) * history_row] = now;
    h[0] = 0;
    if (most > 0 && isfinite(most))
      AT(scale)[i] = min(range / most, FLT_MAX);
  }
}
