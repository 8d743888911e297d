//go:build amd64 && !noasm

#include "textflag.h"

// Every loop counts AX bytes up from -4n to 0 behind pointers to the ends.

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

// func gateAVX2(dst, a, s, b *float32, n int)
TEXT ·gateAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ s+16(FP), DX
	MOVQ b+24(FP), BX
	MOVQ n+32(FP), CX
	LEAQ (DI)(CX*4), DI
	LEAQ (SI)(CX*4), SI
	LEAQ (DX)(CX*4), DX
	LEAQ (BX)(CX*4), BX
	SHLQ $2, CX
	MOVQ CX, AX
	NEGQ AX

gateLoop:
	VMOVUPS (SI)(AX*1), Y0
	VMULPS  (DX)(AX*1), Y0, Y0
	VMULPS  (BX)(AX*1), Y0, Y0
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ    $32, AX
	JNZ     gateLoop
	VZEROUPPER
	RET

// func gateGradAVX2(da, db, dy, a, s, b *float32, n int)
TEXT ·gateGradAVX2(SB), NOSPLIT, $0-56
	MOVQ         da+0(FP), DI
	MOVQ         db+8(FP), R8
	MOVQ         dy+16(FP), R9
	MOVQ         a+24(FP), SI
	MOVQ         s+32(FP), DX
	MOVQ         b+40(FP), BX
	MOVQ         n+48(FP), CX
	LEAQ         (DI)(CX*4), DI
	LEAQ         (R8)(CX*4), R8
	LEAQ         (R9)(CX*4), R9
	LEAQ         (SI)(CX*4), SI
	LEAQ         (DX)(CX*4), DX
	LEAQ         (BX)(CX*4), BX
	SHLQ         $2, CX
	MOVQ         CX, AX
	NEGQ         AX
	MOVL         $0x3f800000, CX
	MOVQ         CX, X0
	VPBROADCASTD X0, Y0

gateGradLoop:
	VMOVUPS     (DX)(AX*1), Y1         // s
	VMOVUPS     (R9)(AX*1), Y2         // dy
	VMULPS      (SI)(AX*1), Y1, Y3     // a·s
	VMULPS      (BX)(AX*1), Y2, Y4     // dy·b
	VSUBPS      Y1, Y0, Y5             // 1−s
	VMULPS      Y3, Y2, Y2             // dy·a·s
	VFMADD231PS Y3, Y5, Y1             // s + a·s·(1−s)
	VMULPS      Y1, Y4, Y4
	VMOVUPS     Y2, (R8)(AX*1)
	VMOVUPS     Y4, (DI)(AX*1)
	ADDQ        $32, AX
	JNZ         gateGradLoop
	VZEROUPPER
	RET
