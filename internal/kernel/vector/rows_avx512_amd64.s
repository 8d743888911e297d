//go:build !noasm

#include "avx512_amd64.h"

#define HALFTAIL(from, v) \
	VMOVDQU16.Z (DX), K1, Y5 \
	from(Y5, v)

#define AXPYROWS ·axpyRowsAVX512
#define SUMROWS ·sumRowsAVX512
#define DOTROWSF32 ·dotRowsAVX512
#define DOTROWSBF16 ·dotRowsBF16AVX512
#define DOTROWSF16 ·dotRowsF16AVX512
#define DOTTILE ·dotTileAVX512
#define V12 Z12
#define V13 Z13
#define V14 Z14
#define V15 Z15

#include "rows_amd64.h"
