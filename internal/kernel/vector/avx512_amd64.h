// Vectors of AVX-512, for the sources that are written for any width.

#include "textflag.h"

#define LANES 16
#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4
#define V5 Z5
#define V6 Z6
#define V7 Z7
#define V8 Z8
#define V9 Z9
#define V10 Z10
#define V11 Z11

// MASK sets K1 for the CX < LANES elements that are left, and changes AX.
#define MASK \
	MOVL  $1, AX \
	SHLL  CX, AX \
	DECL  AX     \
	KMOVW AX, K1

// TAIL loads the elements of MASK, with zeros after them, and PUTTAIL stores them.
#define TAIL(mem, v) VMOVUPS.Z mem, K1, v
#define PUTTAIL(v, mem) VMOVUPS v, K1, mem

// FOLD adds, or whatever packed and single do, the lanes of V0 into X0.
#define FOLD(packed, single) \
	VEXTRACTF64X4 $1, Z0, Y1 \
	packed        Y1, Y0, Y0 \
	VEXTRACTF128  $1, Y0, X1 \
	packed        X1, X0, X0 \
	VMOVHLPS      X0, X0, X1 \
	packed        X1, X0, X0 \
	VMOVSHDUP     X0, X1     \
	single        X1, X0, X0
