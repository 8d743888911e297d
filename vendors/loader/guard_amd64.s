//go:build (linux || darwin) && !android && !nopurego

#include "textflag.h"

DATA ·guardEntry(SB)/8, $guard<>(SB)
GLOBL ·guardEntry(SB), NOPTR|RODATA, $8

// guard has the calling convention of C: DI points to a guardFrame. On entry the stack is 8 bytes
// off an address that 16 divides.
TEXT guard<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ   BX
	SUBQ    $16, SP
	MOVQ    DI, BX
	STMXCSR 48(BX)
	MOVL    $0, 52(BX)
	MOVL    $0, 60(BX)
	FSTCW   52(BX)
	MOVQ    0(BX), AX
	MOVQ    8(BX), DI
	MOVQ    16(BX), SI
	MOVQ    24(BX), DX
	MOVQ    32(BX), CX
	CALL    AX
	CLD
	MOVQ    AX, 40(BX)
	STMXCSR 56(BX)
	FSTCW   60(BX)
	MOVL    48(BX), CX
	XORL    56(BX), CX
	ANDL    $0xffc0, CX
	JZ      same
	LDMXCSR 48(BX)

same:
	MOVL 52(BX), CX
	CMPL CX, 60(BX)
	JEQ  done
	FLDCW 52(BX)

done:
	ADDQ $16, SP
	POPQ BX
	RET

// func readControl(c *Control)
TEXT ·readControl(SB), NOSPLIT, $0-8
	MOVQ    c+0(FP), AX
	STMXCSR 0(AX)
	MOVL    $0, 4(AX)
	FSTCW   4(AX)
	RET

// func writeControl(c *Control)
TEXT ·writeControl(SB), NOSPLIT, $0-8
	MOVQ    c+0(FP), AX
	LDMXCSR 0(AX)
	FLDCW   4(AX)
	RET
