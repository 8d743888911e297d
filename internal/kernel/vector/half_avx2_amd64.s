//go:build !noasm

#include "avx2_amd64.h"

// CONSTANTS sets Y8 to 1, Y9 to half a unit of bfloat16 less one, Y10 to the bit of a quiet NaN.
#define CONSTANTS \
	VPCMPEQD Y7, Y7, Y7   \
	VPSRLD   $31, Y7, Y8  \
	VPSRLD   $17, Y7, Y9  \
	VPSLLD   $6, Y8, Y10

#define ROUND(x, upper, t) \
	VPSRLD    $16, x, upper     \
	VCMPPS    $3, x, x, Y11     \
	VPAND     Y8, upper, t      \
	VPADDD    Y9, x, x          \
	VPADDD    t, x, x           \
	VPSRLD    $16, x, x         \
	VPOR      Y10, upper, upper \
	VBLENDVPS Y11, upper, x, x

#define PUTHALF(v, x, mem) \
	VEXTRACTI128 $1, v, X6 \
	VPACKUSDW    X6, x, x  \
	VMOVDQU      x, mem

#define WIDENTAIL(from)
#define NARROWBTAIL
#define NARROWHTAIL

#define WIDENBF16 ·widenBF16AVX2
#define WIDENF16 ·widenF16AVX2
#define NARROWBF16 ·narrowBF16AVX2
#define NARROWF16 ·narrowF16AVX2

#include "half_amd64.h"
