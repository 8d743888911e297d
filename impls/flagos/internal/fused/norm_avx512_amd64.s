//go:build amd64 && !noasm

#include "textflag.h"

// MASK sets K1 to the CX < 16 elements that are left.
#define MASK \
	MOVL  $1, AX   \
	SHLL  CX, AX   \
	DECL  AX       \
	KMOVW AX, K1

// func dot3AVX512(a, b, c *float32, n int) (sum float32)
TEXT ·dot3AVX512(SB), NOSPLIT, $0-36
	MOVQ   a+0(FP), DI
	MOVQ   b+8(FP), SI
	MOVQ   c+16(FP), DX
	MOVQ   n+24(FP), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3

dot3x64:
	CMPQ        CX, $64
	JLT         dot3x16
	VMOVUPS     (DI), Z4
	VMOVUPS     64(DI), Z5
	VMOVUPS     128(DI), Z6
	VMOVUPS     192(DI), Z7
	VMULPS      (SI), Z4, Z4
	VMULPS      64(SI), Z5, Z5
	VMULPS      128(SI), Z6, Z6
	VMULPS      192(SI), Z7, Z7
	VFMADD231PS (DX), Z4, Z0
	VFMADD231PS 64(DX), Z5, Z1
	VFMADD231PS 128(DX), Z6, Z2
	VFMADD231PS 192(DX), Z7, Z3
	ADDQ        $256, DI
	ADDQ        $256, SI
	ADDQ        $256, DX
	SUBQ        $64, CX
	JMP         dot3x64

dot3x16:
	CMPQ        CX, $16
	JLT         dot3x1
	VMOVUPS     (DI), Z4
	VMULPS      (SI), Z4, Z4
	VFMADD231PS (DX), Z4, Z0
	ADDQ        $64, DI
	ADDQ        $64, SI
	ADDQ        $64, DX
	SUBQ        $16, CX
	JMP         dot3x16

dot3x1:
	TESTQ       CX, CX
	JEQ         dot3x0
	MASK
	VMOVUPS.Z   (DI), K1, Z4
	VMOVUPS.Z   (SI), K1, Z5
	VMOVUPS.Z   (DX), K1, Z6
	VMULPS      Z5, Z4, Z4
	VFMADD231PS Z6, Z4, Z1

dot3x0:
	VADDPS        Z1, Z0, Z0
	VADDPS        Z3, Z2, Z2
	VADDPS        Z2, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	VMOVHLPS      X0, X0, X1
	VADDPS        X1, X0, X0
	VMOVSHDUP     X0, X1
	VADDSS        X1, X0, X0
	VMOVSS        X0, sum+32(FP)
	VZEROUPPER
	RET

// GRAD turns dz, x in place into dx and dgamma; g is gamma and t scratch.
#define GRAD(dz, x, g, dgamma, t) \
	VMULPS      x, Z1, t      \
	VMULPS      x, Z0, x      \
	VFMADD231PS dz, x, dgamma \
	VFMSUB132PS g, t, dz      \
	VMULPS      dz, Z0, dz

// func normGradAVX512(dx, dgamma, dz, x, gamma *float32, n int, rsigma, k float32)
TEXT ·normGradAVX512(SB), NOSPLIT, $0-56
	MOVQ         dx+0(FP), DI
	MOVQ         dgamma+8(FP), R8
	MOVQ         dz+16(FP), SI
	MOVQ         x+24(FP), DX
	MOVQ         gamma+32(FP), BX
	MOVQ         n+40(FP), CX
	VBROADCASTSS rsigma+48(FP), Z0
	VBROADCASTSS k+52(FP), Z1

	// The next row is likely to follow: its stores need not wait for their lines.
	MOVQ CX, R9
	SHLQ $2, R9

normGrad16:
	CMPQ       CX, $16
	JLT        normGrad1
	VMOVUPS    (SI), Z2
	VMOVUPS    (DX), Z3
	VMOVUPS    (R8), Z4
	PREFETCHT0 (DI)(R9*1)
	GRAD(Z2, Z3, (BX), Z4, Z5)
	VMOVUPS    Z4, (R8)
	VMOVUPS    Z2, (DI)
	ADDQ       $64, SI
	ADDQ       $64, DX
	ADDQ       $64, BX
	ADDQ       $64, R8
	ADDQ       $64, DI
	SUBQ       $16, CX
	JMP        normGrad16

normGrad1:
	TESTQ     CX, CX
	JEQ       normGrad0
	MASK
	VMOVUPS.Z (SI), K1, Z2
	VMOVUPS.Z (DX), K1, Z3
	VMOVUPS.Z (R8), K1, Z4
	VMOVUPS.Z (BX), K1, Z6
	GRAD(Z2, Z3, Z6, Z4, Z5)
	VMOVUPS   Z4, K1, (R8)
	VMOVUPS   Z2, K1, (DI)

normGrad0:
	VZEROUPPER
	RET
