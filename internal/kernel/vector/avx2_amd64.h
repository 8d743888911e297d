// Vectors of AVX2, for the sources that are written for any width.

#include "textflag.h"

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

// MASK sets Y15 for the CX < LANES elements that are left, and changes AX and CX.
#define MASK \
	LEAQ    tailMask<>+32(SB), AX \
	SHLQ    $2, CX                \
	SUBQ    CX, AX                \
	VMOVUPS (AX), Y15

// TAIL loads the elements of MASK, with zeros after them, and PUTTAIL stores them.
#define TAIL(mem, v) VMASKMOVPS mem, Y15, v
#define PUTTAIL(v, mem) VMASKMOVPS v, Y15, mem

// FOLD adds, or whatever packed and single do, the lanes of V0 into X0.
#define FOLD(packed, single) \
	VEXTRACTF128 $1, Y0, X1 \
	packed       X1, X0, X0 \
	VMOVHLPS     X0, X0, X1 \
	packed       X1, X0, X0 \
	VMOVSHDUP    X0, X1     \
	single       X1, X0, X0
