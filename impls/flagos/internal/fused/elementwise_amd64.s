//go:build amd64 && !noasm

#include "textflag.h"

// Every loop counts AX bytes up from -4n to 0, relative to pointers to the ends.

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

// func scaleAVX2(dst, x *float32, n int, scale float32) (bad int32)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-36
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

scaleLoop:
	VMOVUPS  (SI)(AX*1), Y3
	VMULPS   Y3, Y0, Y4
	VPAND    Y3, Y1, Y3
	VPCMPEQD Y3, Y1, Y3
	VPOR     Y3, Y2, Y2
	VMOVUPS  Y4, (DI)(AX*1)
	ADDQ     $32, AX
	JNZ      scaleLoop
	VMOVMSKPS Y2, AX
	MOVL     AX, bad+32(FP)
	VZEROUPPER
	RET
