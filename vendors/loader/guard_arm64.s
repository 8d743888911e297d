//go:build (linux || darwin) && !android && !nopurego

#include "textflag.h"

DATA ·guardEntry(SB)/8, $guard<>(SB)
GLOBL ·guardEntry(SB), NOPTR|RODATA, $8

// guard has the calling convention of C: R0 points to a guardFrame, R19 and R20 belong to the
// caller.
TEXT guard<>(SB), NOSPLIT|NOFRAME, $0
	SUB  $32, RSP
	STP  (R29, R30), 0(RSP)
	STP  (R19, R20), 16(RSP)
	MOVD RSP, R29
	MOVD R0, R19
	MRS  FPCR, R20
	MOVW R20, 48(R19)
	MOVW ZR, 52(R19)
	MOVD 0(R19), R9
	MOVD 8(R19), R0
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 32(R19), R3
	CALL (R9)
	MOVD R0, 40(R19)
	MRS  FPCR, R9
	MOVW R9, 56(R19)
	MOVW ZR, 60(R19)
	CMP  R9, R20
	BEQ  done
	MSR  R20, FPCR

done:
	LDP 16(RSP), (R19, R20)
	LDP 0(RSP), (R29, R30)
	ADD $32, RSP
	RET

// func readControl(c *Control)
TEXT ·readControl(SB), NOSPLIT, $0-8
	MOVD c+0(FP), R0
	MRS  FPCR, R1
	MOVW R1, 0(R0)
	MOVW ZR, 4(R0)
	RET

// func writeControl(c *Control)
TEXT ·writeControl(SB), NOSPLIT, $0-8
	MOVD  c+0(FP), R0
	MOVWU 0(R0), R1
	MSR   R1, FPCR
	RET
