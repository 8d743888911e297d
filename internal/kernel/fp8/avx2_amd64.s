//go:build !noasm

#include "textflag.h"

#define LANES 8
#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4

// CONSTANT is a vector of the same doublewords.
#define CONSTANT(name, value) \
DATA name<>+0(SB)/8, value;  \
DATA name<>+8(SB)/8, value;  \
DATA name<>+16(SB)/8, value; \
DATA name<>+24(SB)/8, value; \
GLOBL name<>(SB), RODATA|NOPTR, $32

CONSTANT(one, $0x0000000100000001)
CONSTANT(low, $0x0000007f0000007f)
CONSTANT(tops, $0x8080808080808080)
CONSTANT(powers, $0x7f8000007f800000)

// order brings what was packed from four vectors into their order.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000500000001
DATA order<>+16(SB)/8, $0x0000000600000002
DATA order<>+24(SB)/8, $0x0000000700000003
GLOBL order<>(SB), RODATA|NOPTR, $32

#define SIGNS \
	VPCMPEQD Y7, Y7, Y7 \
	VPSRLD   $1, Y7, Y15

// Of a number and a NaN, VMAXPS returns its last source, the first one here.
#define AMAXOF(mem, to, t) \
	VPAND  mem, Y15, t \
	VMAXPS to, t, to

#define AMAXSTEP \
	AMAXOF((SI), Y0, Y1)   \
	AMAXOF(32(SI), Y2, Y3) \
	AMAXOF(64(SI), Y0, Y1) \
	AMAXOF(96(SI), Y2, Y3)

#define AMAXHALF \
	AMAXOF((SI), Y0, Y1)   \
	AMAXOF(32(SI), Y2, Y3)

#define GREATEST \
	VEXTRACTF128 $1, Y0, X1    \
	VMAXPS       X1, X0, X0    \
	VPERMILPS    $0x4e, X0, X1 \
	VMAXPS       X1, X0, X0    \
	VPERMILPS    $0xb1, X0, X1 \
	VMAXPS       X1, X0, X0

#define FORMAT \
	SIGNS                     \
	VMOVQ        (R8), X12    \
	VPBROADCASTD 8(R8), Y11   \
	VBROADCASTSS 12(R8), Y10  \
	VBROADCASTSS 16(R8), Y9   \
	VBROADCASTSS 20(R8), Y8   \
	VPBROADCASTD 24(R8), Y7

#define ENCODE(to) \
	VPAND        Y15, Y1, Y2      \
	VCMPPS       $3, Y1, Y1, Y5   \
	VMINPS       Y10, Y2, Y2      \
	VCMPPS       $1, Y9, Y2, Y6   \
	VPSRLD       X12, Y2, Y3      \
	VPAND        one<>(SB), Y3, Y3 \
	VADDPS       Y8, Y2, Y4       \
	VPSUBD       Y8, Y4, Y4       \
	VPADDD       Y11, Y2, Y2      \
	VPADDD       Y3, Y2, Y2       \
	VPSRLD       X12, Y2, Y2      \
	VBLENDVPS    Y6, Y4, Y2, Y2   \
	VPSRLD       $24, Y1, Y1      \
	VBLENDVPS    Y5, Y7, Y2, Y2   \
	VPAND        tops<>(SB), Y1, Y1 \
	VPOR         Y1, Y2, Y2       \
	VEXTRACTI128 $1, Y2, X3       \
	VPACKUSDW    X3, X2, X2       \
	VPACKUSWB    X2, X2, X2       \
	VMOVQ        X2, to

// NEAREST leaves fp8 of the magnitude of v in v, as ENCODE of AVX-512 finds it.
#define NEAREST(v) \
	VPAND  Y15, v, v            \
	VMINPS Y10, v, v            \
	VMAXPS Y9, v, Y6            \
	VPAND  powers<>(SB), Y6, Y6 \
	VPADDD Y13, Y6, Y14         \
	VADDPS Y14, v, v            \
	VPSRLD X12, Y6, Y6          \
	VPADDD Y6, v, v             \
	VPAND  low<>(SB), v, v

#define FETCHFOUR \
	PREFETCHT0 AHEAD(SI)    \
	PREFETCHT0 AHEAD+64(SI)

#define ENCODEFOUR(nan) \
	VCMPPS       $3, Y1, Y2, Y5     \
	VCMPPS       $3, Y3, Y4, Y6     \
	VPOR         Y6, Y5, Y5         \
	VPTEST       Y5, Y5             \
	JNE          nan                \
	VPBROADCASTD 44(R8), Y13        \
	VPACKSSDW    Y2, Y1, Y5         \
	VPACKSSDW    Y4, Y3, Y6         \
	VPACKSSWB    Y6, Y5, Y5         \
	NEAREST(Y1)                     \
	NEAREST(Y2)                     \
	NEAREST(Y3)                     \
	NEAREST(Y4)                     \
	VPACKUSDW    Y2, Y1, Y1         \
	VPACKUSDW    Y4, Y3, Y3         \
	VPACKUSWB    Y3, Y1, Y1         \
	VPAND        tops<>(SB), Y5, Y5 \
	VPOR         Y5, Y1, Y1         \
	VMOVDQU      order<>(SB), Y6    \
	VPERMD       Y1, Y6, Y1         \
	VMOVDQU      Y1, (DI)

#define WORDS \
	VPCMPEQD     Y7, Y7, Y7      \
	VPSLLW       $15, X7, X15    \
	VPSRLW       $9, X7, X14     \
	MOVL         $0x7fc00000, AX \
	MOVQ         AX, X13         \
	VPBROADCASTD X13, Y13        \
	VMOVQ        32(R8), X12     \
	VPBROADCASTD 40(R8), X11     \
	VBROADCASTSS 28(R8), Y10

#define DECODE(from) \
	VPMOVZXBW from, X1     \
	VPSLLW    $8, X1, X2   \
	VPAND     X15, X2, X2  \
	VPAND     X14, X1, X1  \
	VPCMPEQW  X11, X1, X3  \
	VPSLLW    X12, X1, X1  \
	VPOR      X2, X1, X1   \
	VCVTPH2PS X1, Y1       \
	VPMOVSXWD X3, Y3       \
	VPAND     Y13, Y3, Y3  \
	VPOR      Y3, Y1, Y1   \
	VMULPS    Y10, Y1, Y1

#define BROADCAST(value, x, y) \
	MOVL         value, AX \
	MOVQ         AX, x     \
	VPBROADCASTD x, y

#define EXPONENTS \
	MOVQ         AX, X15             \
	VPBROADCASTD X15, Y15            \
	BROADCAST($0x1fffff, X14, Y14)   \
	BROADCAST($0x7f800000, X13, Y13) \
	BROADCAST($254, X12, Y12)        \
	BROADCAST($0x400000, X11, Y11)   \
	BROADCAST($0x7fc00000, X10, Y10) \
	VPXOR        Y9, Y9, Y9

#define CODES \
	VMOVDQU      (SI), Y0       \
	VPADDD       Y14, Y0, Y1    \
	VPSRLD       $23, Y1, Y1    \
	VPSUBD       Y15, Y1, Y1    \
	VPMAXSD      Y9, Y1, Y1     \
	VPCMPEQD     Y13, Y0, Y3    \
	VPBLENDVB    Y3, Y12, Y1, Y1 \
	VPSUBD       Y1, Y12, Y2    \
	VPSLLD       $23, Y2, Y2    \
	VPBLENDVB    Y3, Y11, Y2, Y2 \
	VMOVDQU      Y2, (SI)       \
	VEXTRACTI128 $1, Y1, X2     \
	VPACKUSDW    X2, X1, X1     \
	VPACKUSWB    X1, X1, X1     \
	VMOVQ        X1, (DI)

#define POWERS \
	VPMOVZXBD (SI), Y0        \
	VPSLLD    $23, Y0, Y1     \
	VPCMPEQD  Y9, Y0, Y2      \
	VPCMPGTD  Y12, Y0, Y3     \
	VPBLENDVB Y2, Y11, Y1, Y1 \
	VPBLENDVB Y3, Y10, Y1, Y1 \
	VMOVDQU   Y1, (DI)

#define ENCODEE8M0 ·encodeE8M0AVX2
#define DECODEE8M0 ·decodeE8M0AVX2
#define AMAXES ·amaxesAVX2
#define RAISE ·raiseAVX2
#define ENCODEBLOCKS ·encodeAVX2
#define ENCODEEACH ·encodeEachAVX2
#define DECODEBLOCKS ·decodeAVX2
#define DECODEEACH ·decodeEachAVX2

#include "codec_amd64.h"
