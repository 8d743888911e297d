//go:build !noasm

#include "avx512_amd64.h"

// CONSTANTS sets Z16 to 1, Z17 to half a unit of bfloat16 less one, Z18 to the bit of a quiet NaN.
#define CONSTANTS \
	MOVL         $1, AX      \
	VPBROADCASTD AX, Z16     \
	MOVL         $0x7fff, AX \
	VPBROADCASTD AX, Z17     \
	MOVL         $0x40, AX   \
	VPBROADCASTD AX, Z18

#define ROUND(x, upper, t) \
	VPSRLD $16, x, upper     \
	VCMPPS $3, x, x, K2      \
	VPANDD Z16, upper, t     \
	VPADDD Z17, x, x         \
	VPADDD t, x, x           \
	VPSRLD $16, x, x         \
	VPORD  Z18, upper, K2, x

#define PUTHALF(v, x, mem) VPMOVDW v, mem

#define WIDENTAIL(from) \
	TESTQ       CX, CX       \
	JEQ         end          \
	MASK                     \
	VMOVDQU16.Z (SI), K1, Y0 \
	from(Y0, Z0)             \
	VMOVUPS     Z0, K1, (DI) \
	XORL        CX, CX       \
end:

#define NARROWBTAIL \
	TESTQ     CX, CX       \
	JEQ       end          \
	MASK                   \
	VMOVUPS.Z (SI), K1, Z0 \
	ROUND(Z0, Z2, Z3)      \
	VPMOVDW   Z0, K1, (DI) \
	XORL      CX, CX       \
end:

#define NARROWHTAIL \
	TESTQ     CX, CX       \
	JEQ       end          \
	MASK                   \
	VMOVUPS.Z (SI), K1, Z0 \
	VCVTPS2PH $0, Z0, Y0   \
	VMOVDQU16 Y0, K1, (DI) \
	XORL      CX, CX       \
end:

#define WIDENBF16 ·widenBF16AVX512
#define WIDENF16 ·widenF16AVX512
#define NARROWBF16 ·narrowBF16AVX512
#define NARROWF16 ·narrowF16AVX512

#include "half_amd64.h"
