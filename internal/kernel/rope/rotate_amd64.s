//go:build amd64 && !noasm

#include "textflag.h"

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
	VMULPS      (R12)(AX*1), Y1, Y2
	VMULPS      (R13)(AX*1), Y0, Y3
	VFMSUB231PS (R10)(AX*1), Y0, Y2
	VFMADD231PS (R11)(AX*1), Y1, Y3
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
