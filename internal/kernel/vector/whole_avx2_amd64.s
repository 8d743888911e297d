//go:build !noasm

#include "textflag.h"

// Kernels for which vectors of AVX2 are as fast as memory.
//
// The loops over slices count AX bytes up from -4n to 0, relative to pointers to the ends.

// func mulScaleAVX2(dst, x, w *float32, n int, scale float32)
TEXT ·mulScaleAVX2(SB), NOSPLIT, $0-36
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         w+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS scale+32(FP), Y0
	LEAQ         (DI)(CX*4), DI
	LEAQ         (SI)(CX*4), SI
	LEAQ         (DX)(CX*4), DX
	SHLQ         $2, CX
	MOVQ         CX, AX
	NEGQ         AX

mulScaleLoop:
	VMULPS  (SI)(AX*1), Y0, Y1
	VMULPS  (DX)(AX*1), Y1, Y1
	VMOVUPS Y1, (DI)(AX*1)
	ADDQ    $32, AX
	JNZ     mulScaleLoop
	VZEROUPPER
	RET

// func scaleFiniteAVX2(dst, x *float32, n int, scale float32) (bad int32)
TEXT ·scaleFiniteAVX2(SB), NOSPLIT, $0-36
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y0
	LEAQ         (DI)(CX*4), DI
	LEAQ         (SI)(CX*4), SI
	SHLQ         $2, CX
	MOVQ         CX, AX
	NEGQ         AX
	MOVL         $0x7f800000, DX
	MOVQ         DX, X1
	VPBROADCASTD X1, Y1
	VPXOR        Y2, Y2, Y2

scaleFiniteLoop:
	VMOVUPS  (SI)(AX*1), Y3
	VMULPS   Y3, Y0, Y4
	VPAND    Y3, Y1, Y3
	VPCMPEQD Y3, Y1, Y3
	VPOR     Y3, Y2, Y2
	VMOVUPS  Y4, (DI)(AX*1)
	ADDQ     $32, AX
	JNZ      scaleFiniteLoop
	VMOVMSKPS Y2, AX
	MOVL     AX, bad+32(FP)
	VZEROUPPER
	RET

// func sumSquaresAVX2(x *float32, n int) (sum float64)
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-24
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	SUBQ   $16, CX
	JLT    sumSquaresRest

sumSquaresLoop:
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VCVTPS2PD   32(SI), Y6
	VCVTPS2PD   48(SI), Y7
	VFMADD231PD Y4, Y4, Y0
	VFMADD231PD Y5, Y5, Y1
	VFMADD231PD Y6, Y6, Y2
	VFMADD231PD Y7, Y7, Y3
	ADDQ        $64, SI
	SUBQ        $16, CX
	JGE         sumSquaresLoop

sumSquaresRest:
	ADDQ $16, CX
	JZ   sumSquaresSum
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VFMADD231PD Y4, Y4, Y0
	VFMADD231PD Y5, Y5, Y1

sumSquaresSum:
	VADDPD       Y1, Y0, Y0
	VADDPD       Y3, Y2, Y2
	VADDPD       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPD       X1, X0, X0
	VUNPCKHPD    X0, X0, X1
	VADDSD       X1, X0, X0
	VMOVSD       X0, sum+16(FP)
	VZEROUPPER
	RET
