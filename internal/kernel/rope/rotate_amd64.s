//go:build amd64 && !noasm

#include "textflag.h"

// TURN turns the pair (x0, x1) by c0, c1, s0 and s1 into (y0, y1).
#define TURN(x0, x1, c0, c1, s0, s1, y0, y1) \
	VMULPS      s0, x1, y0 \
	VMULPS      s1, x0, y1 \
	VFMSUB231PS c0, x0, y0 \
	VFMADD231PS c1, x1, y1

// func rotateHalvesAVX2(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)
TEXT ·rotateHalvesAVX2(SB), NOSPLIT, $0-96
	MOVQ y0+0(FP), DI
	MOVQ y1+8(FP), SI
	MOVQ yPitch+16(FP), DX
	MOVQ x0+24(FP), R8
	MOVQ x1+32(FP), R9
	MOVQ xPitch+40(FP), BX
	MOVQ heads+48(FP), R15
	MOVQ c0+56(FP), R10
	MOVQ c1+64(FP), R11
	MOVQ s0+72(FP), R12
	MOVQ s1+80(FP), R13
	MOVQ n+88(FP), CX
	SHLQ $2, CX

rotateHalvesHead:
	XORQ AX, AX

rotateHalvesLoop:
	VMOVUPS     (R8)(AX*1), Y0
	VMOVUPS     (R9)(AX*1), Y1
	TURN(Y0, Y1, (R10)(AX*1), (R11)(AX*1), (R12)(AX*1), (R13)(AX*1), Y2, Y3)
	VMOVUPS     Y2, (DI)(AX*1)
	VMOVUPS     Y3, (SI)(AX*1)
	ADDQ        $32, AX
	CMPQ        AX, CX
	JLT         rotateHalvesLoop
	LEAQ        (DI)(DX*4), DI
	LEAQ        (SI)(DX*4), SI
	LEAQ        (R8)(BX*4), R8
	LEAQ        (R9)(BX*4), R9
	DECQ        R15
	JNZ         rotateHalvesHead
	VZEROUPPER
	RET

// func rotateHalvesAVX512(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)
TEXT ·rotateHalvesAVX512(SB), NOSPLIT, $0-96
	MOVQ y0+0(FP), DI
	MOVQ y1+8(FP), SI
	MOVQ yPitch+16(FP), DX
	MOVQ x0+24(FP), R8
	MOVQ x1+32(FP), R9
	MOVQ xPitch+40(FP), BX
	MOVQ c0+56(FP), R10
	MOVQ c1+64(FP), R11
	MOVQ s0+72(FP), R12
	MOVQ s1+80(FP), R13
	MOVQ n+88(FP), CX
	SHLQ $2, DX
	SHLQ $2, BX

	// All heads of 32 columns at a time: their angles stay in registers. The lines
	// that are written next are prefetched.
rotateHalvesColumns:
	MOVQ      heads+48(FP), R15
	XORQ      AX, AX
	MOVL      $-1, R14
	CMPQ      CX, $32
	JGE       rotateHalvesAngles
	MOVL      $1, R14
	SHLL      CX, R14
	DECL      R14

rotateHalvesAngles:
	KMOVW     R14, K1
	SHRL      $16, R14
	KMOVW     R14, K2
	VMOVUPS.Z (R10), K1, Z0
	VMOVUPS.Z 64(R10), K2, Z1
	VMOVUPS.Z (R11), K1, Z2
	VMOVUPS.Z 64(R11), K2, Z3
	VMOVUPS.Z (R12), K1, Z4
	VMOVUPS.Z 64(R12), K2, Z5
	VMOVUPS.Z (R13), K1, Z6
	VMOVUPS.Z 64(R13), K2, Z7
	PUSHQ     DI
	PUSHQ     SI
	PUSHQ     R8
	PUSHQ     R9

rotateHalvesHead:
	PREFETCHT0 1024(DI)
	PREFETCHT0 1088(DI)
	PREFETCHT0 1024(SI)
	PREFETCHT0 1088(SI)
	VMOVUPS.Z (R8), K1, Z8
	VMOVUPS.Z 64(R8), K2, Z9
	VMOVUPS.Z (R9), K1, Z10
	VMOVUPS.Z 64(R9), K2, Z11
	TURN(Z8, Z10, Z0, Z2, Z4, Z6, Z12, Z13)
	TURN(Z9, Z11, Z1, Z3, Z5, Z7, Z14, Z15)
	VMOVUPS   Z12, K1, (DI)
	VMOVUPS   Z14, K2, 64(DI)
	VMOVUPS   Z13, K1, (SI)
	VMOVUPS   Z15, K2, 64(SI)
	ADDQ      DX, DI
	ADDQ      DX, SI
	ADDQ      BX, R8
	ADDQ      BX, R9
	DECQ      R15
	JNZ       rotateHalvesHead
	POPQ      R9
	POPQ      R8
	POPQ      SI
	POPQ      DI
	ADDQ      $128, DI
	ADDQ      $128, SI
	ADDQ      $128, R8
	ADDQ      $128, R9
	ADDQ      $128, R10
	ADDQ      $128, R11
	ADDQ      $128, R12
	ADDQ      $128, R13
	SUBQ      $32, CX
	JGT       rotateHalvesColumns
	VZEROUPPER
	RET

// func rotatePairsAVX2(y, x, c, s *float32, n int)
TEXT ·rotatePairsAVX2(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ c+16(FP), DX
	MOVQ s+24(FP), BX
	MOVQ n+32(FP), CX
	SHLQ $2, CX
	XORQ AX, AX

rotatePairsLoop:
	VMOVUPS     (SI)(AX*1), Y0
	VPERMILPS   $0xB1, Y0, Y1
	VMULPS      (BX)(AX*1), Y1, Y1
	VFMADD231PS (DX)(AX*1), Y0, Y1
	VMOVUPS     Y1, (DI)(AX*1)
	ADDQ        $32, AX
	CMPQ        AX, CX
	JLT         rotatePairsLoop
	VZEROUPPER
	RET
