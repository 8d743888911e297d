//go:build !noasm

#include "textflag.h"

// LIMIT counts down where the limit at an offset is above the magnitudes in Y0 and Y1.
#define LIMIT(offset) \
	VPBROADCASTD offset(R8)(AX*1), Y6 \
	VPCMPGTD     Y0, Y6, Y7           \
	VPADDD       Y7, Y2, Y2           \
	VPCMPGTD     Y1, Y6, Y7           \
	VPADDD       Y7, Y3, Y3

// SIGNED adds the signs of x, except for those of NaNs, to the codes in k.
#define SIGNED(x, k) \
	VMOVUPS x, Y4         \
	VCMPPS  $7, Y4, Y4, Y5 \
	VPAND   Y5, Y4, Y4    \
	VPSRLD  $31, Y4, Y4   \
	VPSLLD  $3, Y4, Y4    \
	VPOR    Y4, k, k

// PAIRS leaves in the low half of k the pairs of the codes in k.
#define PAIRS(k) \
	VPSRLQ $28, k, Y4    \
	VPOR   Y4, k, k      \
	VPERMD k, Y14, k

// Registers: DI destination, SI source, DX scales, CX elements left, R8 the tables; AX the table of
// a block.

// func encodeE2M1AVX2(dst *byte, x *float32, scales *byte, n int, limits *[128]E2M1Limits)
TEXT ·encodeE2M1AVX2(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         scales+16(FP), DX
	MOVQ         n+24(FP), CX
	MOVQ         limits+32(FP), R8
	VPCMPEQD     Y15, Y15, Y15
	VPSRLD       $29, Y15, Y13 // 7
	VPSRLD       $1, Y15, Y15  // all bits but signs
	VMOVDQU      e2m1Evens<>(SB), Y14

loop:
	MOVBLZX (DX), AX
	SHLL    $6, AX
	VPAND   (SI), Y15, Y0
	VPAND   32(SI), Y15, Y1
	VMOVDQA Y13, Y2
	VMOVDQA Y13, Y3
	LIMIT(4)
	LIMIT(8)
	LIMIT(12)
	LIMIT(16)
	LIMIT(24)
	LIMIT(32)
	LIMIT(44)
	SIGNED((SI), Y2)
	SIGNED(32(SI), Y3)
	PAIRS(Y2)
	PAIRS(Y3)
	VPACKUSDW X3, X2, X2
	VPACKUSWB X2, X2, X2
	VMOVQ     X2, (DI)
	INCQ DX
	ADDQ $64, SI
	ADDQ $8, DI
	SUBQ $16, CX
	JNZ  loop
	VZEROUPPER
	RET

DATA e2m1Evens<>+0(SB)/8, $0x0000000200000000
DATA e2m1Evens<>+8(SB)/8, $0x0000000600000004
DATA e2m1Evens<>+16(SB)/8, $0x0000000200000000
DATA e2m1Evens<>+24(SB)/8, $0x0000000600000004
GLOBL e2m1Evens<>(SB), RODATA|NOPTR, $32

// NUMBERS stores those of eight codes, from Y0 for codes without a sign and from Y1 for the others,
// which the highest bit of a code chooses.
#define NUMBERS(from, to) \
	VPMOVZXBQ from, Y2         \
	VPSLLQ    $28, Y2, Y3      \
	VPOR      Y3, Y2, Y2       \
	VPERMPS   Y0, Y2, Y3       \
	VPERMPS   Y1, Y2, Y4       \
	VPSLLD    $28, Y2, Y2      \
	VBLENDVPS Y2, Y4, Y3, Y3   \
	VMOVUPS   Y3, to

// func decodeE2M1AVX2(dst *float32, src, scales *byte, n int, values *[256]E2M1Values)
TEXT ·decodeE2M1AVX2(SB), NOSPLIT, $0-40
	MOVQ     dst+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     scales+16(FP), DX
	MOVQ     n+24(FP), CX
	MOVQ     values+32(FP), R8

decodeLoop:
	MOVBLZX   (DX), AX
	SHLL      $6, AX
	VMOVUPS   (R8)(AX*1), Y0
	VMOVUPS   32(R8)(AX*1), Y1
	NUMBERS((SI), (DI))
	NUMBERS(4(SI), 32(DI))
	INCQ      DX
	ADDQ      $8, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       decodeLoop
	VZEROUPPER
	RET

#define BROADCASTY(value, x, to) \
	MOVL         value, AX \
	VMOVD        AX, x     \
	VPBROADCASTD x, to

// Registers: DI codes, SI amaxes, CX those left, R8 the scales.

// func encodeE2M1ScalesAVX2(codes *byte, amax *float32, n int, s *E2M1Scales)
TEXT ·encodeE2M1ScalesAVX2(SB), NOSPLIT, $0-32
	MOVQ codes+0(FP), DI
	MOVQ amax+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ s+24(FP), R8
	BROADCASTY($0x43e00000, X8, Y8)    // 448
	BROADCASTY($0x3c800000, X9, Y9)    // the smallest normal number
	BROADCASTY($0x7f7fffff, X10, Y10)  // the largest finite number
	BROADCASTY($(120<<3), X11, Y11)    // the difference of the biases
	BROADCASTY($(121<<3), X12, Y12)
	VBROADCASTSS 512(R8), Y13

// As with AVX-512, the product is cut off to the code of the scale or the one before.
scalesLoop:
	VMOVUPS    (SI), Y0
	VMULPS     Y13, Y0, Y1
	VMINPS     Y8, Y1, Y1
	VMINPS     Y10, Y0, Y0
	VCMPPS     $1, Y9, Y1, Y2
	VANDPS     Y9, Y2, Y3
	VADDPS     Y3, Y1, Y1
	VPSRLD     $20, Y1, Y1
	VBLENDVPS  Y2, Y12, Y11, Y3
	VPSUBD     Y3, Y1, Y1
	VPCMPEQD   Y2, Y2, Y2
	VGATHERDPS Y2, (R8)(Y1*4), Y4
	VCMPPS     $0x1d, Y4, Y0, Y4
	VPSUBD     Y4, Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPACKUSDW  X2, X1, X1
	VPACKUSWB  X1, X1, X1
	VMOVQ      X1, (DI)
	ADDQ       $32, SI
	ADDQ       $8, DI
	SUBQ       $8, CX
	JNZ        scalesLoop
	VZEROUPPER
	RET
