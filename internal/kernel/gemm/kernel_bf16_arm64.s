//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// PRODUCT adds products of pairs: BFDOT Vd.4S, Vn.8H, Vm.2H[e].
#define PRODUCT(d, n, m, e) WORD $(0x4f40f000 | ((e)&1)<<21 | ((e)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define KERNEL ·pairs6x16NEON

#include "kernel_arm64.h"
