//go:build amd64 && !noasm

#include "go_asm.h"
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
#define V12 Z12

// MASK takes n in a register other than R12, which it changes.
#define MASK(n) \
	MOVL  $-1, R12     \
	BZHIL n, R12, R12  \
	KMOVW R12, K1
#define TAIL(mem, v) VMOVUPS.Z mem, K1, v
#define PUTTAIL(v, mem) VMOVUPS v, K1, mem
#define FOLD(add, v, y, t) \
	VEXTRACTF64X4 $1, v, t \
	add           t, y, y

#define MOMENTS ·momentsAVX512
#define CENTER ·centerAVX512
#define NORMGRAD ·normGradAVX512

#include "norm_amd64.h"
