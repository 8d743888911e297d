//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

#define PRODUCT(d, n, m, e) FMLA(d, n, m, e)
#define KERNEL ·gemm6x16NEON

#include "kernel_arm64.h"
