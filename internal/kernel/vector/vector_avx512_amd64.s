//go:build !noasm

#include "textflag.h"

// Registers: SI, DX sources, DI destination, CX elements left.

// MASK sets K1 to the CX < 16 elements that are left.
#define MASK \
	MOVL  $1, AX   \
	SHLL  CX, AX   \
	DECL  AX       \
	KMOVW AX, K1

// FOLD adds the lanes of Z0 into X0; T names the instruction without its suffix.
#define FOLD(packed, single) \
	VEXTRACTF64X4 $1, Z0, Y1  \
	packed        Y1, Y0, Y0  \
	VEXTRACTF128  $1, Y0, X1  \
	packed        X1, X0, X0  \
	VMOVHLPS      X0, X0, X1  \
	packed        X1, X0, X0  \
	VMOVSHDUP     X0, X1      \
	single        X1, X0, X0

#define ZERO4 \
	VPXORD Z0, Z0, Z0 \
	VPXORD Z1, Z1, Z1 \
	VPXORD Z2, Z2, Z2 \
	VPXORD Z3, Z3, Z3

#define JOIN4(op) \
	op Z1, Z0, Z0 \
	op Z3, Z2, Z2 \
	op Z2, Z0, Z0

#define LOAD4 \
	VMOVUPS 0(SI), Z4   \
	VMOVUPS 64(SI), Z5  \
	VMOVUPS 128(SI), Z6 \
	VMOVUPS 192(SI), Z7

// func dotAVX512(x, y []float32) float32
TEXT ·dotAVX512(SB), NOSPLIT, $0-52
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DX
	ZERO4

dot64:
	CMPQ CX, $64
	JLT  dot16
	LOAD4
	VFMADD231PS 0(DX), Z4, Z0
	VFMADD231PS 64(DX), Z5, Z1
	VFMADD231PS 128(DX), Z6, Z2
	VFMADD231PS 192(DX), Z7, Z3
	ADDQ $256, SI
	ADDQ $256, DX
	SUBQ $64, CX
	JMP  dot64

dot16:
	CMPQ CX, $16
	JLT  dot1
	VMOVUPS     (SI), Z4
	VFMADD231PS (DX), Z4, Z0
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $16, CX
	JMP  dot16

dot1:
	TESTQ CX, CX
	JEQ   dot0
	MASK
	VMOVUPS.Z   (SI), K1, Z4
	VMOVUPS.Z   (DX), K1, Z5
	VFMADD231PS Z5, Z4, Z1

dot0:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+48(FP)
	VZEROUPPER
	RET

// func sumAVX512(x []float32) float32
TEXT ·sumAVX512(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	ZERO4

sum64:
	CMPQ CX, $64
	JLT  sum16
	VADDPS 0(SI), Z0, Z0
	VADDPS 64(SI), Z1, Z1
	VADDPS 128(SI), Z2, Z2
	VADDPS 192(SI), Z3, Z3
	ADDQ $256, SI
	SUBQ $64, CX
	JMP  sum64

sum16:
	CMPQ CX, $16
	JLT  sum1
	VADDPS (SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JMP  sum16

sum1:
	TESTQ CX, CX
	JEQ   sum0
	MASK
	VMOVUPS.Z (SI), K1, Z4
	VADDPS    Z4, Z1, Z1

sum0:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func maximumAVX512(x []float32) float32
TEXT ·maximumAVX512(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVL $0xff800000, AX
	VPBROADCASTD AX, Z0
	VMOVAPS Z0, Z1
	VMOVAPS Z0, Z2
	VMOVAPS Z0, Z3

max64:
	CMPQ CX, $64
	JLT  max16
	VMAXPS 0(SI), Z0, Z0
	VMAXPS 64(SI), Z1, Z1
	VMAXPS 128(SI), Z2, Z2
	VMAXPS 192(SI), Z3, Z3
	ADDQ $256, SI
	SUBQ $64, CX
	JMP  max64

max16:
	CMPQ CX, $16
	JLT  max1
	VMAXPS (SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JMP  max16

max1:
	TESTQ CX, CX
	JEQ   max0
	MASK
	VMAXPS (SI), Z1, K1, Z1

max0:
	JOIN4(VMAXPS)
	FOLD(VMAXPS, VMAXSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func axpyAVX512(a float32, x, y []float32)
TEXT ·axpyAVX512(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), Z0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI

axpy64:
	CMPQ CX, $64
	JLT  axpy16
	VMOVUPS 0(DI), Z4
	VMOVUPS 64(DI), Z5
	VMOVUPS 128(DI), Z6
	VMOVUPS 192(DI), Z7
	VFMADD231PS 0(SI), Z0, Z4
	VFMADD231PS 64(SI), Z0, Z5
	VFMADD231PS 128(SI), Z0, Z6
	VFMADD231PS 192(SI), Z0, Z7
	VMOVUPS Z4, 0(DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z6, 128(DI)
	VMOVUPS Z7, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $64, CX
	JMP  axpy64

axpy16:
	CMPQ CX, $16
	JLT  axpy1
	VMOVUPS     (DI), Z4
	VFMADD231PS (SI), Z0, Z4
	VMOVUPS     Z4, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  axpy16

axpy1:
	TESTQ CX, CX
	JEQ   axpy0
	MASK
	VMOVUPS.Z   (DI), K1, Z4
	VMOVUPS.Z   (SI), K1, Z5
	VFMADD231PS Z5, Z0, Z4
	VMOVUPS     Z4, K1, (DI)

axpy0:
	VZEROUPPER
	RET

// func scaleAVX512(a float32, dst, x []float32)
TEXT ·scaleAVX512(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), Z0
	MOVQ dst_base+8(FP), DI
	MOVQ x_base+32(FP), SI
	MOVQ x_len+40(FP), CX

scale64:
	CMPQ CX, $64
	JLT  scale16
	VMULPS 0(SI), Z0, Z4
	VMULPS 64(SI), Z0, Z5
	VMULPS 128(SI), Z0, Z6
	VMULPS 192(SI), Z0, Z7
	VMOVUPS Z4, 0(DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z6, 128(DI)
	VMOVUPS Z7, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $64, CX
	JMP  scale64

scale16:
	CMPQ CX, $16
	JLT  scale1
	VMULPS  (SI), Z0, Z4
	VMOVUPS Z4, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  scale16

scale1:
	TESTQ CX, CX
	JEQ   scale0
	MASK
	VMOVUPS.Z (SI), K1, Z4
	VMULPS    Z4, Z0, Z4
	VMOVUPS   Z4, K1, (DI)

scale0:
	VZEROUPPER
	RET

// BINARY applies one instruction to the elements at SI and DX and stores the results at DI.
#define BINARY(op) \
quad:                       \
	CMPQ CX, $64            \
	JLT  one                \
	LOAD4                   \
	op   0(DX), Z4, Z4      \
	op   64(DX), Z5, Z5     \
	op   128(DX), Z6, Z6    \
	op   192(DX), Z7, Z7    \
	VMOVUPS Z4, 0(DI)       \
	VMOVUPS Z5, 64(DI)      \
	VMOVUPS Z6, 128(DI)     \
	VMOVUPS Z7, 192(DI)     \
	ADDQ $256, SI           \
	ADDQ $256, DX           \
	ADDQ $256, DI           \
	SUBQ $64, CX            \
	JMP  quad               \
one:                        \
	CMPQ CX, $16            \
	JLT  tail               \
	VMOVUPS (SI), Z4        \
	op   (DX), Z4, Z4       \
	VMOVUPS Z4, (DI)        \
	ADDQ $64, SI            \
	ADDQ $64, DX            \
	ADDQ $64, DI            \
	SUBQ $16, CX            \
	JMP  one                \
tail:                       \
	TESTQ CX, CX            \
	JEQ  done               \
	MASK                    \
	VMOVUPS.Z (SI), K1, Z4  \
	VMOVUPS.Z (DX), K1, Z5  \
	op   Z5, Z4, Z4         \
	VMOVUPS Z4, K1, (DI)    \
done:                       \
	VZEROUPPER              \
	RET

// func addAVX512(dst, x, y []float32)
TEXT ·addAVX512(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VADDPS)

// func mulAVX512(dst, x, y []float32)
TEXT ·mulAVX512(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VMULPS)

// func mulSubAVX512(dst, x, y []float32, c float32)
TEXT ·mulSubAVX512(SB), NOSPLIT, $0-76
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	VBROADCASTSS c+72(FP), Z0

mulsub32:
	CMPQ CX, $32
	JLT  mulsub16
	VMOVUPS 0(DX), Z4
	VMOVUPS 64(DX), Z5
	VSUBPS  Z0, Z4, Z4
	VSUBPS  Z0, Z5, Z5
	VMULPS  0(SI), Z4, Z4
	VMULPS  64(SI), Z5, Z5
	VMOVUPS Z4, 0(DI)
	VMOVUPS Z5, 64(DI)
	ADDQ $128, SI
	ADDQ $128, DX
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  mulsub32

mulsub16:
	CMPQ CX, $16
	JLT  mulsub1
	VMOVUPS (DX), Z4
	VSUBPS  Z0, Z4, Z4
	VMULPS  (SI), Z4, Z4
	VMOVUPS Z4, (DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX

mulsub1:
	TESTQ CX, CX
	JEQ   mulsub0
	MASK
	VMOVUPS.Z (DX), K1, Z4
	VMOVUPS.Z (SI), K1, Z5
	VSUBPS    Z0, Z4, Z4
	VMULPS    Z5, Z4, Z4
	VMOVUPS   Z4, K1, (DI)

mulsub0:
	VZEROUPPER
	RET

// func clampAVX512(dst, x []float32, lo, hi float32)
TEXT ·clampAVX512(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS lo+48(FP), Z0
	VBROADCASTSS hi+52(FP), Z1

clamp16:
	CMPQ CX, $16
	JLT  clamp1
	VMOVUPS (SI), Z4
	VMAXPS  Z4, Z0, Z4
	VMINPS  Z4, Z1, Z4
	VMOVUPS Z4, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  clamp16

clamp1:
	TESTQ CX, CX
	JEQ   clamp0
	MASK
	VMOVUPS.Z (SI), K1, Z4
	VMAXPS    Z4, Z0, Z4
	VMINPS    Z4, Z1, Z4
	VMOVUPS   Z4, K1, (DI)

clamp0:
	VZEROUPPER
	RET

// func keepAVX512(dst, y, x []float32, lo, hi float32)
TEXT ·keepAVX512(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ y_base+24(FP), DX
	MOVQ x_base+48(FP), SI
	MOVQ x_len+56(FP), CX
	VBROADCASTSS lo+72(FP), Z0
	VBROADCASTSS hi+76(FP), Z1

keep16:
	CMPQ CX, $16
	JLT  keep1
	VMOVUPS   (SI), Z4
	VCMPPS    $0x15, Z0, Z4, K2
	VCMPPS    $0x1a, Z1, Z4, K2, K2
	VMOVUPS.Z (DX), K2, Z5
	VMOVUPS   Z5, (DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  keep16

keep1:
	TESTQ CX, CX
	JEQ   keep0
	MASK
	VMOVUPS.Z (SI), K1, Z4
	VCMPPS    $0x15, Z0, Z4, K1, K2
	VCMPPS    $0x1a, Z1, Z4, K2, K2
	VMOVUPS.Z (DX), K2, Z5
	VMOVUPS   Z5, K1, (DI)

keep0:
	VZEROUPPER
	RET
