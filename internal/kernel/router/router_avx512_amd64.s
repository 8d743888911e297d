//go:build !noasm

#include "textflag.h"
#include "router_amd64.h"

DATA negative<>+0(SB)/4, $0xff800000 // -Inf
DATA negative<>+4(SB)/4, $0x3f800000 // 1
DATA negative<>+8(SB)/4, $0x1e3ce508 // 1e-20
GLOBL negative<>(SB), RODATA|NOPTR, $12

// RANK sorts a score of each token, from, into the scores of a rank; the smaller one is left in
// rest.
#define RANK(rank, from, rest) \
	VMINPS rank, from, rest \
	VMAXPS rank, from, rank
#define RANK2(a, b) \
	RANK(a, Z30, Z31) \
	RANK(b, Z31, Z30)

// NEXT loads the scores of an expert; NaN becomes -Inf.
#define NEXT \
	VMOVUPS (SI), Z30       \
	VMAXPS  Z29, Z30, Z30

// func largest2AVX512(top, x *float32, n int)
TEXT ·largest2AVX512(SB), NOSPLIT, $0-24
	BEGIN
	VMOVAPS Z29, Z0
	VMOVAPS Z29, Z1

expert:
	NEXT
	RANK2(Z0, Z1)
	ADDQ $64, SI
	DECQ CX
	JNZ  expert
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z1, 64(DI)
	VZEROUPPER
	RET

// func largest4AVX512(top, x *float32, n int)
TEXT ·largest4AVX512(SB), NOSPLIT, $0-24
	BEGIN
	VMOVAPS Z29, Z0
	VMOVAPS Z29, Z1
	VMOVAPS Z29, Z2
	VMOVAPS Z29, Z3

expert:
	NEXT
	RANK2(Z0, Z1)
	RANK2(Z2, Z3)
	ADDQ $64, SI
	DECQ CX
	JNZ  expert
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VZEROUPPER
	RET

// func largest8AVX512(top, x *float32, n int)
TEXT ·largest8AVX512(SB), NOSPLIT, $0-24
	BEGIN
	VMOVAPS Z29, Z0
	VMOVAPS Z29, Z1
	VMOVAPS Z29, Z2
	VMOVAPS Z29, Z3
	VMOVAPS Z29, Z4
	VMOVAPS Z29, Z5
	VMOVAPS Z29, Z6
	VMOVAPS Z29, Z7

expert:
	NEXT
	RANK2(Z0, Z1)
	RANK2(Z2, Z3)
	RANK2(Z4, Z5)
	RANK2(Z6, Z7)
	ADDQ $64, SI
	DECQ CX
	JNZ  expert
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VZEROUPPER
	RET

// func largest16AVX512(top, x *float32, n int)
TEXT ·largest16AVX512(SB), NOSPLIT, $0-24
	BEGIN
	VMOVAPS Z29, Z0
	VMOVAPS Z29, Z1
	VMOVAPS Z29, Z2
	VMOVAPS Z29, Z3
	VMOVAPS Z29, Z4
	VMOVAPS Z29, Z5
	VMOVAPS Z29, Z6
	VMOVAPS Z29, Z7
	VMOVAPS Z29, Z8
	VMOVAPS Z29, Z9
	VMOVAPS Z29, Z10
	VMOVAPS Z29, Z11
	VMOVAPS Z29, Z12
	VMOVAPS Z29, Z13
	VMOVAPS Z29, Z14
	VMOVAPS Z29, Z15

expert:
	NEXT
	RANK2(Z0, Z1)
	RANK2(Z2, Z3)
	RANK2(Z4, Z5)
	RANK2(Z6, Z7)
	RANK2(Z8, Z9)
	RANK2(Z10, Z11)
	RANK2(Z12, Z13)
	RANK2(Z14, Z15)
	ADDQ $64, SI
	DECQ CX
	JNZ  expert
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VMOVUPS Z8, 512(DI)
	VMOVUPS Z9, 576(DI)
	VMOVUPS Z10, 640(DI)
	VMOVUPS Z11, 704(DI)
	VMOVUPS Z12, 768(DI)
	VMOVUPS Z13, 832(DI)
	VMOVUPS Z14, 896(DI)
	VMOVUPS Z15, 960(DI)
	VZEROUPPER
	RET

// MASK sets K1 for the next 16 of CX elements that are left, and changes R15.
#define MASK(whole) \
	MOVL  $-1, R15  \
	CMPQ  CX, $16   \
	JGE   whole     \
	MOVL  $1, R15   \
	SHLL  CX, R15   \
	DECL  R15       \
whole:              \
	KMOVW R15, K1

// func chooseAVX512(chosen *byte, kept, x *float32, n int, least float32) (count int)
TEXT ·chooseAVX512(SB), NOSPLIT, $0-48
	MOVQ chosen+0(FP), DI
	MOVQ kept+8(FP), DX
	MOVQ x+16(FP), SI
	MOVQ n+24(FP), CX
	VBROADCASTSS least+32(FP), Z1
	VBROADCASTSS negative<>+0(SB), Z2
	MOVL $1, AX
	VPBROADCASTB AX, X3
	XORQ BX, BX

choose:
	MASK(chooseWhole)
	VMOVUPS.Z   (SI), K1, Z0
	VCMPPS      $0x1D, Z1, Z0, K1, K2 // not below, false for NaN
	VMOVDQU8.Z  X3, K2, X4
	VMOVDQU8    X4, K1, (DI)
	VBLENDMPS   Z0, Z2, K2, Z0
	VMOVUPS     Z0, K1, (DX)
	KMOVW       K2, AX
	POPCNTL     AX, AX
	ADDQ        AX, BX
	ADDQ        $16, DI
	ADDQ        $64, DX
	ADDQ        $64, SI
	SUBQ        $16, CX
	JGT         choose
	MOVQ        BX, count+40(FP)
	VZEROUPPER
	RET

// func selectAVX512(dst, x *float32, chosen *byte, n int, other float32)
TEXT ·selectAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ chosen+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS other+32(FP), Z1

select:
	MASK(selectWhole)
	VMOVDQU8.Z (DX), K1, X2
	VPTESTMB   X2, X2, K2
	VMOVUPS.Z  (SI), K1, Z0
	VBLENDMPS  Z0, Z1, K2, Z0
	VMOVUPS    Z0, K1, (DI)
	ADDQ       $64, DI
	ADDQ       $64, SI
	ADDQ       $16, DX
	SUBQ       $16, CX
	JGT        select
	VZEROUPPER
	RET

// CHOICE sets K1 for the elements that are left and K2 for those that are chosen.
#define CHOICE(whole, every) \
	MASK(whole)                       \
	KMOVW      K1, K2                 \
	TESTQ      BX, BX                 \
	JEQ        every                  \
	VMOVDQU8.Z (BX)(AX*1), K1, X1     \
	VPTESTMB   X1, X1, K2             \
every:

#define NEXTROW(again) \
	ADDQ  R10, DI \
	ADDQ  R11, SI \
	ADDQ  R12, DX \
	TESTQ BX, BX  \
	JEQ   again   \
	ADDQ  R13, BX \
again:            \
	DECQ  R9

#define STEP \
	ADDQ $16, AX \
	SUBQ $16, CX

// FOLD adds the lanes of z, whose lower parts are y and x, to x; the others are scratch.
#define FOLD(z, y, x, y1, x1) \
	VEXTRACTF64X4 $1, z, y1 \
	VADDPS        y1, y, y  \
	VEXTRACTF128  $1, y, x1 \
	VADDPS        x1, x, x  \
	VMOVHLPS      x, x, x1  \
	VADDPS        x1, x, x  \
	VMOVSHDUP     x, x1     \
	VADDSS        x1, x, x

// func softmaxGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale float32, all int)
TEXT ·softmaxGradientAVX512(SB), NOSPLIT, $0-96
	OPERANDS
	MOVQ  all+88(FP), AX
	NEGQ  AX
	KMOVW AX, K4

softmaxRow:
	XORQ   AX, AX
	MOVQ   R8, CX
	VXORPS Z0, Z0, Z0

softmaxSum:
	CHOICE(softmaxSumWhole, softmaxSumEvery)
	VMOVUPS.Z   (SI)(AX*4), K2, Z2
	VMOVUPS.Z   (DX)(AX*4), K2, Z3
	VFMADD231PS Z2, Z3, Z0
	STEP
	JGT         softmaxSum
	FOLD(Z0, Y0, X0, Y4, X4)
	VMULSS       X31, X0, X0
	VBROADCASTSS X0, Z4
	XORQ         AX, AX
	MOVQ         R8, CX

softmaxStore:
	CHOICE(softmaxStoreWhole, softmaxStoreEvery)
	KANDW     K4, K1, K3
	KORW      K2, K3, K3
	VMOVUPS.Z (SI)(AX*4), K3, Z2
	VMOVUPS.Z (DX)(AX*4), K2, Z3
	VMULPS    Z31, Z3, Z3
	VSUBPS    Z4, Z3, Z3
	VMULPS.Z  Z2, Z3, K3, Z3
	VMOVUPS   Z3, K1, (DI)(AX*4)
	STEP
	JGT       softmaxStore
	NEXTROW(softmaxNext)
	JNZ       softmaxRow
	VZEROUPPER
	RET

// func sigmoidGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale, sums float32)
TEXT ·sigmoidGradientAVX512(SB), NOSPLIT, $0-88
	OPERANDS
	VMOVSS sums+84(FP), X29
	VMOVSS negative<>+4(SB), X30

sigmoidRow:
	XORQ   AX, AX
	MOVQ   R8, CX
	VXORPS Z0, Z0, Z0
	VXORPS Z5, Z5, Z5

sigmoidSum:
	CHOICE(sigmoidSumWhole, sigmoidSumEvery)
	VMOVUPS.Z   (SI)(AX*4), K2, Z2
	VMOVUPS.Z   (DX)(AX*4), K2, Z3
	VFMADD231PS Z2, Z3, Z0
	VADDPS      Z2, Z5, Z5
	STEP
	JGT         sigmoidSum
	FOLD(Z0, Y0, X0, Y4, X4)
	FOLD(Z5, Y5, X5, Y4, X4)

	// Z5 becomes 1/N and Z4 the sum of products divided by N, or 1 and 0 without sums.
	VADDSS       negative<>+8(SB), X5, X5
	VUCOMISS     X29, X30
	JEQ          sigmoidDivide
	VMOVAPS      X30, X5
	VXORPS       X0, X0, X0

sigmoidDivide:
	VDIVSS       X5, X30, X5
	VMULSS       X5, X0, X0
	VMULSS       X31, X5, X5
	VBROADCASTSS X0, Z4
	VBROADCASTSS X5, Z5
	XORQ         AX, AX
	MOVQ         R8, CX

sigmoidStore:
	CHOICE(sigmoidStoreWhole, sigmoidStoreEvery)
	VMOVUPS.Z    (SI)(AX*4), K2, Z2
	VMOVUPS.Z    (DX)(AX*4), K2, Z3
	VSUBPS       Z4, Z3, Z3
	VMULPS       Z5, Z3, Z3
	VMOVAPS      Z2, Z6
	VFNMADD231PS Z2, Z2, Z6
	VMULPS.Z     Z6, Z3, K2, Z3
	VMOVUPS      Z3, K1, (DI)(AX*4)
	STEP
	JGT          sigmoidStore
	NEXTROW(sigmoidNext)
	JNZ          sigmoidRow
	VZEROUPPER
	RET
