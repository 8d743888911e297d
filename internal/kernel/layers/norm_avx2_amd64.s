//go:build amd64 && !noasm

#include "go_asm.h"
#include "textflag.h"

// Eight ones, then eight zeros: read from 4n bytes before the middle, they begin with n ones.
DATA tailMask<>+0(SB)/8, $-1
DATA tailMask<>+8(SB)/8, $-1
DATA tailMask<>+16(SB)/8, $-1
DATA tailMask<>+24(SB)/8, $-1
DATA tailMask<>+32(SB)/8, $0
DATA tailMask<>+40(SB)/8, $0
DATA tailMask<>+48(SB)/8, $0
DATA tailMask<>+56(SB)/8, $0
GLOBL tailMask<>(SB), RODATA|NOPTR, $64

#define LANES 8
#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define V7 Y7
#define V8 Y8
#define V9 Y9
#define V10 Y10
#define V11 Y11
#define V12 Y12

// MASK takes n in a register other than R12, which it changes.
#define MASK(n) \
	LEAQ    tailMask<>+32(SB), R12 \
	NEGQ    n                      \
	VMOVDQU (R12)(n*4), Y15
#define TAIL(mem, v) VMASKMOVPS mem, Y15, v
#define PUTTAIL(v, mem) VMASKMOVPS v, Y15, mem
#define FOLD(add, v, y, t)

#define MOMENTS ·momentsAVX2
#define CENTER ·centerAVX2
#define NORMGRAD ·normGradAVX2

#include "norm_amd64.h"
