//go:build amd64 && !noasm

#include "textflag.h"

// func dot3AVX2(a, b, c *float32, n int) (sum float32)
TEXT ·dot3AVX2(SB), NOSPLIT, $0-36
	MOVQ   a+0(FP), DI
	MOVQ   b+8(FP), SI
	MOVQ   c+16(FP), DX
	MOVQ   n+24(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $32, CX
	JLT    dot3Rest

dot3Loop:
	VMOVUPS     (DI), Y4
	VMOVUPS     32(DI), Y5
	VMOVUPS     64(DI), Y6
	VMOVUPS     96(DI), Y7
	VMULPS      (SI), Y4, Y4
	VMULPS      32(SI), Y5, Y5
	VMULPS      64(SI), Y6, Y6
	VMULPS      96(SI), Y7, Y7
	VFMADD231PS (DX), Y4, Y0
	VFMADD231PS 32(DX), Y5, Y1
	VFMADD231PS 64(DX), Y6, Y2
	VFMADD231PS 96(DX), Y7, Y3
	ADDQ        $128, DI
	ADDQ        $128, SI
	ADDQ        $128, DX
	SUBQ        $32, CX
	JGE         dot3Loop

dot3Rest:
	ADDQ $32, CX
	JZ   dot3Sum

dot3Tail:
	VMOVUPS     (DI), Y4
	VMULPS      (SI), Y4, Y4
	VFMADD231PS (DX), Y4, Y0
	ADDQ        $32, DI
	ADDQ        $32, SI
	ADDQ        $32, DX
	SUBQ        $8, CX
	JNZ         dot3Tail

dot3Sum:
	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, sum+32(FP)
	VZEROUPPER
	RET

// func normGradAVX2(dx, dgamma, dz, x, gamma *float32, n int, rsigma, k float32)
TEXT ·normGradAVX2(SB), NOSPLIT, $0-56
	MOVQ         dx+0(FP), DI
	MOVQ         dgamma+8(FP), R8
	MOVQ         dz+16(FP), SI
	MOVQ         x+24(FP), DX
	MOVQ         gamma+32(FP), BX
	MOVQ         n+40(FP), CX
	VBROADCASTSS rsigma+48(FP), Y0
	VBROADCASTSS k+52(FP), Y1
	LEAQ         (DI)(CX*4), DI
	LEAQ         (R8)(CX*4), R8
	LEAQ         (SI)(CX*4), SI
	LEAQ         (DX)(CX*4), DX
	LEAQ         (BX)(CX*4), BX
	SHLQ         $2, CX
	MOVQ         CX, AX
	NEGQ         AX

normGradLoop:
	VMOVUPS     (SI)(AX*1), Y2         // dz
	VMOVUPS     (DX)(AX*1), Y3         // x
	VMULPS      Y3, Y1, Y4             // x·k
	VMULPS      Y3, Y0, Y3             // x·rsigma
	VMOVUPS     (R8)(AX*1), Y5
	VFMADD231PS Y2, Y3, Y5
	VMOVUPS     Y5, (R8)(AX*1)
	VFMSUB132PS (BX)(AX*1), Y4, Y2     // dz·g − x·k
	VMULPS      Y2, Y0, Y2
	VMOVUPS     Y2, (DI)(AX*1)
	ADDQ        $32, AX
	JNZ         normGradLoop
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
