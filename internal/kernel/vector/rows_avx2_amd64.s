//go:build !noasm

#include "avx2_amd64.h"

// HALFTAIL copies the elements to zeros on the stack. MASK has made CX four times their number.
#define HALFTAIL(from, v) \
	VPXOR   X5, X5, X5       \
	VMOVDQU X5, half-16(SP)  \
	LEAQ    half-16(SP), R13 \
	SHRQ    $1, CX           \
copy:                        \
	MOVW    -2(DX)(CX*1), AX \
	MOVW    AX, -2(R13)(CX*1) \
	SUBQ    $2, CX           \
	JNE     copy             \
	from(half-16(SP), v)

#define AXPYROWS ·axpyRowsAVX2
#define SUMROWS ·sumRowsAVX2
#define DOTROWSF32 ·dotRowsAVX2
#define DOTROWSBF16 ·dotRowsBF16AVX2
#define DOTROWSF16 ·dotRowsF16AVX2
#define DOTTILE ·dotTileAVX2
#define V12 Y12
#define V13 Y13
#define V14 Y14
#define V15 Y15

#include "rows_amd64.h"
