//go:build !noasm

#include "textflag.h"
#include "router_amd64.h"

DATA constants<>+0(SB)/4, $0xff800000 // -Inf
DATA constants<>+4(SB)/4, $0x3f800000 // 1
DATA constants<>+8(SB)/4, $0x1e3ce508 // 1e-20
DATA constants<>+12(SB)/4, $0x7f800000 // +Inf
GLOBL constants<>(SB), RODATA|NOPTR, $16

// RANK sorts a score of each token, from, into the scores of a rank; the smaller one is left in
// rest.
#define RANK(rank, from, rest) \
	VMINPS rank, from, rest \
	VMAXPS rank, from, rank
#define RANK2(a, b) \
	RANK(a, Z30, Z31) \
	RANK(b, Z31, Z30)

// NEXT loads the scores of an expert; NaN becomes +Inf.
#define NEXT \
	VMOVUPS (SI), Z30       \
	VMINPS  Z28, Z30, Z30

// FILL, RANKS and STORE prepare, use and store so many ranks, from Z0 on.
#define FILL2 \
	VMOVAPS Z29, Z0 \
	VMOVAPS Z29, Z1
#define RANKS2 \
	RANK2(Z0, Z1)
#define STORE2 \
	VMOVUPS Z0, 0(DI) \
	VMOVUPS Z1, 64(DI)

#define FILL4 \
	FILL2 \
	VMOVAPS Z29, Z2 \
	VMOVAPS Z29, Z3
#define RANKS4 \
	RANKS2 \
	RANK2(Z2, Z3)
#define STORE4 \
	STORE2 \
	VMOVUPS Z2, 128(DI) \
	VMOVUPS Z3, 192(DI)

#define FILL8 \
	FILL4 \
	VMOVAPS Z29, Z4 \
	VMOVAPS Z29, Z5 \
	VMOVAPS Z29, Z6 \
	VMOVAPS Z29, Z7
#define RANKS8 \
	RANKS4 \
	RANK2(Z4, Z5) \
	RANK2(Z6, Z7)
#define STORE8 \
	STORE4 \
	VMOVUPS Z4, 256(DI) \
	VMOVUPS Z5, 320(DI) \
	VMOVUPS Z6, 384(DI) \
	VMOVUPS Z7, 448(DI)

#define FILL16 \
	FILL8 \
	VMOVAPS Z29, Z8 \
	VMOVAPS Z29, Z9 \
	VMOVAPS Z29, Z10 \
	VMOVAPS Z29, Z11 \
	VMOVAPS Z29, Z12 \
	VMOVAPS Z29, Z13 \
	VMOVAPS Z29, Z14 \
	VMOVAPS Z29, Z15
#define RANKS16 \
	RANKS8 \
	RANK2(Z8, Z9) \
	RANK2(Z10, Z11) \
	RANK2(Z12, Z13) \
	RANK2(Z14, Z15)
#define STORE16 \
	STORE8 \
	VMOVUPS Z8, 512(DI) \
	VMOVUPS Z9, 576(DI) \
	VMOVUPS Z10, 640(DI) \
	VMOVUPS Z11, 704(DI) \
	VMOVUPS Z12, 768(DI) \
	VMOVUPS Z13, 832(DI) \
	VMOVUPS Z14, 896(DI) \
	VMOVUPS Z15, 960(DI)

#define LARGEST(fill, ranks, store) \
	BEGIN        \
	fill         \
expert:          \
	NEXT         \
	ranks        \
	ADDQ $64, SI \
	DECQ CX      \
	JNZ  expert  \
	store        \
	VZEROUPPER   \
	RET

// func largest2AVX512(top, x *float32, n int)
TEXT ·largest2AVX512(SB), NOSPLIT, $0-24
	LARGEST(FILL2, RANKS2, STORE2)

// func largest4AVX512(top, x *float32, n int)
TEXT ·largest4AVX512(SB), NOSPLIT, $0-24
	LARGEST(FILL4, RANKS4, STORE4)

// func largest8AVX512(top, x *float32, n int)
TEXT ·largest8AVX512(SB), NOSPLIT, $0-24
	LARGEST(FILL8, RANKS8, STORE8)

// func largest16AVX512(top, x *float32, n int)
TEXT ·largest16AVX512(SB), NOSPLIT, $0-24
	LARGEST(FILL16, RANKS16, STORE16)

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
	VBROADCASTSS constants<>+0(SB), Z2
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

// TAILS sets K7, K5 and K6 for the columns of up to 64, from the first, the 17th and the 33rd on.
#define TAILS \
	MOVQ     $-1, AX      \
	MOVQ     $64, CX      \
	SUBQ     R8, CX       \
	SHRQ     CX, AX       \
	KMOVQ    AX, K7       \
	KSHIFTRQ $16, K7, K5  \
	KSHIFTRQ $32, K7, K6

// CHOICE64 sets K1 to K4 for the columns that are chosen, 16 each.
#define CHOICE64(every) \
	KMOVQ      K7, K1        \
	TESTQ      BX, BX        \
	JEQ        every         \
	VMOVDQU8.Z (BX), K7, Z16 \
	VPTESTMB   Z16, Z16, K1  \
every:                       \
	KSHIFTRQ   $16, K1, K2   \
	KSHIFTRQ   $32, K1, K3   \
	KSHIFTRQ   $48, K1, K4

#define LOAD64(p, z0, z1, z2, z3) \
	VMOVUPS.Z (p), K1, z0    \
	VMOVUPS.Z 64(p), K2, z1  \
	VMOVUPS.Z 128(p), K3, z2 \
	VMOVUPS.Z 192(p), K4, z3

// PRODUCT64 leaves the sum of products of gradients, in Z8 to Z11, and scores, in Z12 to Z15, in X0.
#define PRODUCT64 \
	VMULPS      Z8, Z12, Z0  \
	VMULPS      Z9, Z13, Z1  \
	VFMADD231PS Z10, Z14, Z0 \
	VFMADD231PS Z11, Z15, Z1 \
	VADDPS      Z1, Z0, Z0   \
	FOLD(Z0, Y0, X0, Y4, X4)

#define STORE64 \
	KSHIFTRQ $48, K7, K4     \
	VMOVUPS  Z8, K7, (DI)    \
	VMOVUPS  Z9, K5, 64(DI)  \
	VMOVUPS  Z10, K6, 128(DI) \
	VMOVUPS  Z11, K4, 192(DI)

// func softmaxGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale float32, all int)
TEXT ·softmaxGradientAVX512(SB), NOSPLIT, $0-96
	OPERANDS
	CMPQ  R8, $64
	JLE   softmax64
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

	// Rows of up to 64 columns stay in registers.
softmax64:
	TAILS
	MOVQ all+88(FP), AX

softmax64Row:
	CHOICE64(softmax64Every)
	LOAD64(DX, Z8, Z9, Z10, Z11)
	TESTQ    AX, AX
	JEQ      softmax64Scores
	KMOVQ    K7, K1
	KMOVQ    K5, K2
	KMOVQ    K6, K3
	KSHIFTRQ $48, K7, K4

softmax64Scores:
	LOAD64(SI, Z12, Z13, Z14, Z15)
	PRODUCT64
	VMULSS       X31, X0, X0
	VBROADCASTSS X0, Z4
	VFMSUB213PS  Z4, Z31, Z8
	VFMSUB213PS  Z4, Z31, Z9
	VFMSUB213PS  Z4, Z31, Z10
	VFMSUB213PS  Z4, Z31, Z11
	VMULPS.Z     Z12, Z8, K1, Z8
	VMULPS.Z     Z13, Z9, K2, Z9
	VMULPS.Z     Z14, Z10, K3, Z10
	VMULPS.Z     Z15, Z11, K4, Z11
	STORE64
	NEXTROW(softmax64Next)
	JNZ          softmax64Row
	VZEROUPPER
	RET

// MEAN turns the sum of products in X0 and that of scores N in X5 into the mean in Z4 and the scale
// divided by N in Z5, or 0 and the scale without sums.
#define MEAN(divide) \
	VADDSS       constants<>+8(SB), X5, X5 \
	VUCOMISS     X29, X30                 \
	JEQ          divide                   \
	VMOVAPS      X30, X5                  \
	VXORPS       X0, X0, X0               \
divide:                                   \
	VDIVSS       X5, X30, X5              \
	VMULSS       X5, X0, X0               \
	VMULSS       X31, X5, X5              \
	VBROADCASTSS X0, Z4                   \
	VBROADCASTSS X5, Z5

// SLOPE turns a gradient g of scores s into that of their logits, of those in k.
#define SLOPE(g, s, k) \
	VSUBPS       Z4, g, g     \
	VMULPS       Z5, g, g     \
	VMOVAPS      s, Z6        \
	VFNMADD231PS s, s, Z6     \
	VMULPS.Z     Z6, g, k, g

// func sigmoidGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale, sums float32)
TEXT ·sigmoidGradientAVX512(SB), NOSPLIT, $0-88
	OPERANDS
	VMOVSS sums+84(FP), X29
	VMOVSS constants<>+4(SB), X30
	CMPQ   R8, $64
	JLE    sigmoid64

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

	MEAN(sigmoidDivide)
	XORQ         AX, AX
	MOVQ         R8, CX

sigmoidStore:
	CHOICE(sigmoidStoreWhole, sigmoidStoreEvery)
	VMOVUPS.Z    (SI)(AX*4), K2, Z2
	VMOVUPS.Z    (DX)(AX*4), K2, Z3
	SLOPE(Z3, Z2, K2)
	VMOVUPS      Z3, K1, (DI)(AX*4)
	STEP
	JGT          sigmoidStore
	NEXTROW(sigmoidNext)
	JNZ          sigmoidRow
	VZEROUPPER
	RET

sigmoid64:
	TAILS

sigmoid64Row:
	CHOICE64(sigmoid64Every)
	LOAD64(DX, Z8, Z9, Z10, Z11)
	LOAD64(SI, Z12, Z13, Z14, Z15)
	PRODUCT64
	VADDPS Z13, Z12, Z5
	VADDPS Z15, Z14, Z6
	VADDPS Z6, Z5, Z5
	FOLD(Z5, Y5, X5, Y4, X4)
	MEAN(sigmoid64Divide)
	SLOPE(Z8, Z12, K1)
	SLOPE(Z9, Z13, K2)
	SLOPE(Z10, Z14, K3)
	SLOPE(Z11, Z15, K4)
	STORE64
	NEXTROW(sigmoid64Next)
	JNZ    sigmoid64Row
	VZEROUPPER
	RET
