//go:build !noasm

#include "textflag.h"

// Instructions for which the assembler has no name, on registers that are given by number,
// destination first.
#define FADD(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))   // FADD Vd.4S, Vn.4S, Vm.4S
#define FSUB(d, n, m) WORD $(0x4ea0d400 | (m)<<16 | (n)<<5 | (d))   // FSUB Vd.4S, Vn.4S, Vm.4S
#define FMUL(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))   // FMUL Vd.4S, Vn.4S, Vm.4S
#define FDIV(d, n, m) WORD $(0x6e20fc00 | (m)<<16 | (n)<<5 | (d))   // FDIV Vd.4S, Vn.4S, Vm.4S
#define FMLA(d, n, m) WORD $(0x4e20cc00 | (m)<<16 | (n)<<5 | (d))   // FMLA Vd.4S, Vn.4S, Vm.4S
#define FMLS(d, n, m) WORD $(0x4ea0cc00 | (m)<<16 | (n)<<5 | (d))   // FMLS Vd.4S, Vn.4S, Vm.4S
#define FSQRT(d, n) WORD $(0x6ea1f800 | (n)<<5 | (d))               // FSQRT Vd.4S, Vn.4S
#define FABS(d, n) WORD $(0x4ea0f800 | (n)<<5 | (d))                // FABS Vd.4S, Vn.4S
#define FCMEQZ(d, n) WORD $(0x4ea0d800 | (n)<<5 | (d))              // FCMEQ Vd.4S, Vn.4S, #0
#define BIC(d, n, m) WORD $(0x4e601c00 | (m)<<16 | (n)<<5 | (d))    // BIC Vd.16B, Vn.16B, Vm.16B
#define FMAXNM(d, n, m) WORD $(0x4e20c400 | (m)<<16 | (n)<<5 | (d)) // FMAXNM Vd.4S, Vn.4S, Vm.4S
#define FMAXNMV(d, n) WORD $(0x6e30c800 | (n)<<5 | (d))             // FMAXNMV Sd, Vn.4S

// Registers: R0 to R3 p, m, v and the gradient, R4 the elements left. V16 to V24 the numbers of the
// step, in the order of AdamStep; V25 all ones where L2 is 0; V7 the largest magnitudes.

// func adamNEON(p, m, v, grad *float32, n int, step *AdamStep) (largest float32)
TEXT ·adamNEON(SB), NOSPLIT, $0-52
	MOVD    p+0(FP), R0
	MOVD    m+8(FP), R1
	MOVD    v+16(FP), R2
	MOVD    grad+24(FP), R3
	MOVD    n+32(FP), R4
	MOVD    step+40(FP), R5
	VLD1R.P 4(R5), [V16.S4]
	VLD1R.P 4(R5), [V17.S4]
	VLD1R.P 4(R5), [V18.S4]
	VLD1R.P 4(R5), [V19.S4]
	VLD1R.P 4(R5), [V20.S4]
	VLD1R.P 4(R5), [V21.S4]
	VLD1R.P 4(R5), [V22.S4]
	VLD1R.P 4(R5), [V23.S4]
	VLD1R.P 4(R5), [V24.S4]
	FCMEQZ(25, 24)
	VEOR    V7.B16, V7.B16, V7.B16

step:
	VLD1   (R0), [V0.S4]
	VLD1   (R1), [V1.S4]
	VLD1   (R2), [V2.S4]
	VLD1.P 16(R3), [V3.S4]
	FMUL(4, 0, 24)
	BIC(4, 4, 25)
	FADD(3, 3, 4)
	FMUL(1, 1, 16)
	FMLA(1, 3, 17)
	FMUL(3, 3, 3)
	FMUL(2, 2, 18)
	FMLA(2, 3, 19)
	VST1.P [V1.S4], 16(R1)
	VST1.P [V2.S4], 16(R2)
	FSQRT(2, 2)
	FMUL(2, 2, 20)
	FADD(2, 2, 21)
	FMUL(1, 1, 22)
	FDIV(1, 1, 2)
	VORR   V0.B16, V0.B16, V4.B16
	FMLS(0, 4, 23)
	FSUB(0, 0, 1)
	VST1.P [V0.S4], 16(R0)
	FABS(0, 0)
	FMAXNM(7, 7, 0)
	SUBS   $4, R4
	BNE    step
	FMAXNMV(7, 7)
	FMOVS  F7, largest+48(FP)
	RET
