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
	STMXCSR 32(BX)
	MOVL    $0, 36(BX)
	MOVL    $0, 44(BX)
	FSTCW   36(BX)
	MOVQ    0(BX), AX
	MOVQ    8(BX), DI
	MOVQ    16(BX), SI
	CALL    AX
	CLD
	MOVQ    AX, 24(BX)
	STMXCSR 40(BX)
	FSTCW   44(BX)
	MOVL    32(BX), CX
	XORL    40(BX), CX
	ANDL    $0xffc0, CX
	JZ      same
	LDMXCSR 32(BX)

same:
	MOVL 36(BX), CX
	CMPL CX, 44(BX)
	JEQ  done
	FLDCW 36(BX)

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
