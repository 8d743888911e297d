//go:build !noasm

#include "textflag.h"

// Registers: SI, DX sources, DI destination, CX elements left.

// Eight times all ones, then eight times zero: a mask of CX elements starts 4·CX
// bytes before the middle.
DATA tailTable<>+0(SB)/8, $0xffffffffffffffff
DATA tailTable<>+8(SB)/8, $0xffffffffffffffff
DATA tailTable<>+16(SB)/8, $0xffffffffffffffff
DATA tailTable<>+24(SB)/8, $0xffffffffffffffff
DATA tailTable<>+32(SB)/8, $0
DATA tailTable<>+40(SB)/8, $0
DATA tailTable<>+48(SB)/8, $0
DATA tailTable<>+56(SB)/8, $0
GLOBL tailTable<>(SB), RODATA|NOPTR, $64

// MASK sets Y15 to the CX < 8 elements that are left.
#define MASK \
	LEAQ    tailTable<>+32(SB), AX \
	SHLQ    $2, CX                 \
	SUBQ    CX, AX                 \
	VMOVUPS (AX), Y15

// FOLD adds, or whatever packed and single do, the lanes of Y0 into X0.
#define FOLD(packed, single) \
	VEXTRACTF128 $1, Y0, X1 \
	packed       X1, X0, X0 \
	VMOVHLPS     X0, X0, X1 \
	packed       X1, X0, X0 \
	VMOVSHDUP    X0, X1     \
	single       X1, X0, X0

#define ZERO4 \
	VXORPS Y0, Y0, Y0 \
	VXORPS Y1, Y1, Y1 \
	VXORPS Y2, Y2, Y2 \
	VXORPS Y3, Y3, Y3

#define JOIN4(op) \
	op Y1, Y0, Y0 \
	op Y3, Y2, Y2 \
	op Y2, Y0, Y0

#define LOAD4 \
	VMOVUPS 0(SI), Y4  \
	VMOVUPS 32(SI), Y5 \
	VMOVUPS 64(SI), Y6 \
	VMOVUPS 96(SI), Y7

// func dotAVX2(x, y []float32) float32
TEXT ·dotAVX2(SB), NOSPLIT, $0-52
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DX
	ZERO4

dot32:
	CMPQ CX, $32
	JLT  dot8
	LOAD4
	VFMADD231PS 0(DX), Y4, Y0
	VFMADD231PS 32(DX), Y5, Y1
	VFMADD231PS 64(DX), Y6, Y2
	VFMADD231PS 96(DX), Y7, Y3
	ADDQ $128, SI
	ADDQ $128, DX
	SUBQ $32, CX
	JMP  dot32

dot8:
	CMPQ CX, $8
	JLT  dot1
	VMOVUPS     (SI), Y4
	VFMADD231PS (DX), Y4, Y0
	ADDQ $32, SI
	ADDQ $32, DX
	SUBQ $8, CX
	JMP  dot8

dot1:
	TESTQ CX, CX
	JEQ   dot0
	MASK
	VMASKMOVPS  (SI), Y15, Y4
	VMASKMOVPS  (DX), Y15, Y5
	VFMADD231PS Y5, Y4, Y1

dot0:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+48(FP)
	VZEROUPPER
	RET

// func sumAVX2(x []float32) float32
TEXT ·sumAVX2(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	ZERO4

sum32:
	CMPQ CX, $32
	JLT  sum8
	VADDPS 0(SI), Y0, Y0
	VADDPS 32(SI), Y1, Y1
	VADDPS 64(SI), Y2, Y2
	VADDPS 96(SI), Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JMP  sum32

sum8:
	CMPQ CX, $8
	JLT  sum1
	VADDPS (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  sum8

sum1:
	TESTQ CX, CX
	JEQ   sum0
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VADDPS     Y4, Y1, Y1

sum0:
	JOIN4(VADDPS)
	FOLD(VADDPS, VADDSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func maximumAVX2(x []float32) float32
TEXT ·maximumAVX2(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVL $0xff800000, AX
	MOVQ AX, X0
	VPBROADCASTD X0, Y0
	VMOVAPS Y0, Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y0, Y3
	VMOVAPS Y0, Y8

max32:
	CMPQ CX, $32
	JLT  max8
	VMAXPS 0(SI), Y0, Y0
	VMAXPS 32(SI), Y1, Y1
	VMAXPS 64(SI), Y2, Y2
	VMAXPS 96(SI), Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JMP  max32

max8:
	CMPQ CX, $8
	JLT  max1
	VMAXPS (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  max8

max1:
	TESTQ CX, CX
	JEQ   max0
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VBLENDVPS  Y15, Y4, Y8, Y4
	VMAXPS     Y4, Y1, Y1

max0:
	JOIN4(VMAXPS)
	FOLD(VMAXPS, VMAXSS)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func axpyAVX2(a float32, x, y []float32)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), Y0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI

axpy32:
	CMPQ CX, $32
	JLT  axpy8
	VMOVUPS 0(DI), Y4
	VMOVUPS 32(DI), Y5
	VMOVUPS 64(DI), Y6
	VMOVUPS 96(DI), Y7
	VFMADD231PS 0(SI), Y0, Y4
	VFMADD231PS 32(SI), Y0, Y5
	VFMADD231PS 64(SI), Y0, Y6
	VFMADD231PS 96(SI), Y0, Y7
	VMOVUPS Y4, 0(DI)
	VMOVUPS Y5, 32(DI)
	VMOVUPS Y6, 64(DI)
	VMOVUPS Y7, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  axpy32

axpy8:
	CMPQ CX, $8
	JLT  axpy1
	VMOVUPS     (DI), Y4
	VFMADD231PS (SI), Y0, Y4
	VMOVUPS     Y4, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  axpy8

axpy1:
	TESTQ CX, CX
	JEQ   axpy0
	MASK
	VMASKMOVPS  (DI), Y15, Y4
	VMASKMOVPS  (SI), Y15, Y5
	VFMADD231PS Y5, Y0, Y4
	VMASKMOVPS  Y4, Y15, (DI)

axpy0:
	VZEROUPPER
	RET

// func scaleAVX2(a float32, dst, x []float32)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS a+0(FP), Y0
	MOVQ dst_base+8(FP), DI
	MOVQ x_base+32(FP), SI
	MOVQ x_len+40(FP), CX

scale32:
	CMPQ CX, $32
	JLT  scale8
	VMULPS 0(SI), Y0, Y4
	VMULPS 32(SI), Y0, Y5
	VMULPS 64(SI), Y0, Y6
	VMULPS 96(SI), Y0, Y7
	VMOVUPS Y4, 0(DI)
	VMOVUPS Y5, 32(DI)
	VMOVUPS Y6, 64(DI)
	VMOVUPS Y7, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  scale32

scale8:
	CMPQ CX, $8
	JLT  scale1
	VMULPS  (SI), Y0, Y4
	VMOVUPS Y4, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  scale8

scale1:
	TESTQ CX, CX
	JEQ   scale0
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VMULPS     Y4, Y0, Y4
	VMASKMOVPS Y4, Y15, (DI)

scale0:
	VZEROUPPER
	RET

// BINARY applies one instruction to the elements at SI and DX and stores the results at DI.
#define BINARY(op) \
quad:                         \
	CMPQ CX, $32              \
	JLT  one                  \
	LOAD4                     \
	op   0(DX), Y4, Y4        \
	op   32(DX), Y5, Y5       \
	op   64(DX), Y6, Y6       \
	op   96(DX), Y7, Y7       \
	VMOVUPS Y4, 0(DI)         \
	VMOVUPS Y5, 32(DI)        \
	VMOVUPS Y6, 64(DI)        \
	VMOVUPS Y7, 96(DI)        \
	ADDQ $128, SI             \
	ADDQ $128, DX             \
	ADDQ $128, DI             \
	SUBQ $32, CX              \
	JMP  quad                 \
one:                          \
	CMPQ CX, $8               \
	JLT  tail                 \
	VMOVUPS (SI), Y4          \
	op   (DX), Y4, Y4         \
	VMOVUPS Y4, (DI)          \
	ADDQ $32, SI              \
	ADDQ $32, DX              \
	ADDQ $32, DI              \
	SUBQ $8, CX               \
	JMP  one                  \
tail:                         \
	TESTQ CX, CX              \
	JEQ  done                 \
	MASK                      \
	VMASKMOVPS (SI), Y15, Y4  \
	VMASKMOVPS (DX), Y15, Y5  \
	op   Y5, Y4, Y4           \
	VMASKMOVPS Y4, Y15, (DI)  \
done:                         \
	VZEROUPPER                \
	RET

// func addAVX2(dst, x, y []float32)
TEXT ·addAVX2(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VADDPS)

// func mulAVX2(dst, x, y []float32)
TEXT ·mulAVX2(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	BINARY(VMULPS)

// func mulSubAVX2(dst, x, y []float32, c float32)
TEXT ·mulSubAVX2(SB), NOSPLIT, $0-76
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ y_base+48(FP), DX
	VBROADCASTSS c+72(FP), Y0

mulsub8:
	CMPQ CX, $8
	JLT  mulsub1
	VMOVUPS (DX), Y4
	VSUBPS  Y0, Y4, Y4
	VMULPS  (SI), Y4, Y4
	VMOVUPS Y4, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  mulsub8

mulsub1:
	TESTQ CX, CX
	JEQ   mulsub0
	MASK
	VMASKMOVPS (DX), Y15, Y4
	VMASKMOVPS (SI), Y15, Y5
	VSUBPS     Y0, Y4, Y4
	VMULPS     Y5, Y4, Y4
	VMASKMOVPS Y4, Y15, (DI)

mulsub0:
	VZEROUPPER
	RET

// func clampAVX2(dst, x []float32, lo, hi float32)
TEXT ·clampAVX2(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS lo+48(FP), Y0
	VBROADCASTSS hi+52(FP), Y1

clamp8:
	CMPQ CX, $8
	JLT  clamp1
	VMOVUPS (SI), Y4
	VMAXPS  Y4, Y0, Y4
	VMINPS  Y4, Y1, Y4
	VMOVUPS Y4, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  clamp8

clamp1:
	TESTQ CX, CX
	JEQ   clamp0
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VMAXPS     Y4, Y0, Y4
	VMINPS     Y4, Y1, Y4
	VMASKMOVPS Y4, Y15, (DI)

clamp0:
	VZEROUPPER
	RET

// func keepAVX2(dst, y, x []float32, lo, hi float32)
TEXT ·keepAVX2(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ y_base+24(FP), DX
	MOVQ x_base+48(FP), SI
	MOVQ x_len+56(FP), CX
	VBROADCASTSS lo+72(FP), Y0
	VBROADCASTSS hi+76(FP), Y1

keep8:
	CMPQ CX, $8
	JLT  keep1
	VMOVUPS (SI), Y4
	VCMPPS  $0x15, Y0, Y4, Y5
	VCMPPS  $0x1a, Y1, Y4, Y6
	VANDPS  Y6, Y5, Y5
	VANDPS  (DX), Y5, Y5
	VMOVUPS Y5, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  keep8

keep1:
	TESTQ CX, CX
	JEQ   keep0
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VMASKMOVPS (DX), Y15, Y7
	VCMPPS     $0x15, Y0, Y4, Y5
	VCMPPS     $0x1a, Y1, Y4, Y6
	VANDPS     Y6, Y5, Y5
	VANDPS     Y7, Y5, Y5
	VMASKMOVPS Y5, Y15, (DI)

keep0:
	VZEROUPPER
	RET
