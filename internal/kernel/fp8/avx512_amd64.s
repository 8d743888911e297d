//go:build !noasm

#include "textflag.h"

#define LANES 16
#define V0 Z0
#define V1 Z1
#define V2 Z2

#define SIGNS \
	MOVL         $0x7fffffff, AX \
	VPBROADCASTD AX, Z16

// Of a number and a NaN, VMAXPS returns its last source, the first one here.
#define AMAXOF(mem, to, t) \
	VPANDD mem, Z16, t \
	VMAXPS to, t, to

#define AMAXSTEP \
	AMAXOF((SI), Z0, Z1)   \
	AMAXOF(64(SI), Z2, Z3)

#define AMAXHALF AMAXOF((SI), Z0, Z1)

#define GREATEST \
	VEXTRACTF64X4 $1, Z0, Y1      \
	VMAXPS        Y1, Y0, Y0      \
	VEXTRACTF128  $1, Y0, X1      \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0x4e, X0, X1   \
	VMAXPS        X1, X0, X0      \
	VPERMILPS     $0xb1, X0, X1   \
	VMAXPS        X1, X0, X0

#define FORMAT \
	SIGNS                        \
	MOVL         $0x7f800000, AX \
	VPBROADCASTD AX, Z17         \
	MOVL         $0x80, AX       \
	VPBROADCASTD AX, Z18         \
	VMOVQ        (R8), X19       \
	VPBROADCASTD 44(R8), Z20     \
	VBROADCASTSS 12(R8), Z21     \
	VBROADCASTSS 16(R8), Z22     \
	VPBROADCASTD 24(R8), Z24

// With e the power of two at or below the magnitude, which is at least the smallest normal number,
// the sum with a power of two whose unit is that of fp8 numbers from e on has the mantissa of the
// result in its low bits, and the bits of e have the exponent.
#define ENCODE(to) \
	VPANDD     Z16, Z1, Z2        \
	VCMPPS     $3, Z1, Z1, K2     \
	VMINPS     Z21, Z2, Z2        \
	VMAXPS     Z22, Z2, Z3        \
	VPANDD     Z17, Z3, Z3        \
	VPADDD     Z20, Z3, Z4        \
	VADDPS     Z4, Z2, Z2         \
	VPSRLD     X19, Z3, Z3        \
	VPADDD     Z3, Z2, Z2         \
	VMOVDQA32  Z24, K2, Z2        \
	VPSRLD     $24, Z1, Z1        \
	VPTERNLOGD $0xf8, Z18, Z1, Z2 \
	VPMOVDB    Z2, to

#define WORDS \
	MOVL         $0x8000, AX     \
	VPBROADCASTW AX, Y16         \
	MOVL         $0x7f, AX       \
	VPBROADCASTW AX, Y17         \
	MOVL         $0x7fc00000, AX \
	VPBROADCASTD AX, Z18         \
	VMOVQ        32(R8), X19     \
	VPBROADCASTD 40(R8), Y20     \
	VBROADCASTSS 28(R8), Z21

#define DECODE(from) \
	VPMOVZXBW from, Y1         \
	VPSLLW    $8, Y1, Y2       \
	VPANDD    Y16, Y2, Y2      \
	VPANDD    Y17, Y1, Y1      \
	VPCMPEQW  Y20, Y1, K2      \
	VPSLLW    X19, Y1, Y1      \
	VPORD     Y2, Y1, Y1       \
	VCVTPH2PS Y1, Z1           \
	VPORD     Z18, Z1, K2, Z1  \
	VMULPS    Z21, Z1, Z1

#define EXPONENTS \
	VPBROADCASTD AX, Z16         \
	MOVL         $0x1fffff, AX   \
	VPBROADCASTD AX, Z17         \
	MOVL         $0x7f800000, AX \
	VPBROADCASTD AX, Z18         \
	MOVL         $254, AX        \
	VPBROADCASTD AX, Z19         \
	MOVL         $0x400000, AX   \
	VPBROADCASTD AX, Z20         \
	MOVL         $0x7fc00000, AX \
	VPBROADCASTD AX, Z21         \
	VPXORD       Z22, Z22, Z22

#define CODES \
	VMOVDQU32 (SI), Z0        \
	VPADDD    Z17, Z0, Z1     \
	VPSRLD    $23, Z1, Z1     \
	VPSUBD    Z16, Z1, Z1     \
	VPMAXSD   Z22, Z1, Z1     \
	VPCMPEQD  Z18, Z0, K1     \
	VMOVDQA32 Z19, K1, Z1     \
	VPMOVDB   Z1, (DI)        \
	VPSUBD    Z1, Z19, Z2     \
	VPSLLD    $23, Z2, Z2     \
	VMOVDQA32 Z20, K1, Z2     \
	VMOVDQU32 Z2, (SI)

#define POWERS \
	VPMOVZXBD (SI), Z0        \
	VPSLLD    $23, Z0, Z1     \
	VPCMPEQD  Z22, Z0, K1     \
	VPCMPGTD  Z19, Z0, K2     \
	VMOVDQA32 Z20, K1, Z1     \
	VMOVDQA32 Z21, K2, Z1     \
	VMOVDQU32 Z1, (DI)

#define ENCODEE8M0 ·encodeE8M0AVX512
#define DECODEE8M0 ·decodeE8M0AVX512
#define AMAXES ·amaxesAVX512
#define RAISE ·raiseAVX512
#define ENCODEBLOCKS ·encodeAVX512
#define ENCODEEACH ·encodeEachAVX512
#define DECODEBLOCKS ·decodeAVX512
#define DECODEEACH ·decodeEachAVX512

#include "codec_amd64.h"
