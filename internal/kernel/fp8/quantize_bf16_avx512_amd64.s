//go:build !noasm

#include "textflag.h"
#include "format_avx512_amd64.h"

#define SIZE 2
#define AHEAD 8192

#define FETCHFOUR \
	PREFETCHT0 AHEAD(SI)    \
	PREFETCHT0 AHEAD+64(SI)

#define LOAD(i, to) \
	VPMOVZXWD (32*i)(SI), to \
	VPSLLD    $16, to, to

#define PRODUCT(i, scale, to) \
	LOAD(i, to)            \
	VMULPS to, scale, to

#define SIGNSOF \
	MOVL         $0x7fff7fff, AX \
	VPBROADCASTD AX, Z31

// An integer has two elements, which are compared by themselves.
#define GREATERS(i, to, t) VPANDD (64*(i))(R13), Z31, to

#define MAXIMUM VPMAXUW

#define WHOLE(x, t) \
	VPSLLD  $16, x, t \
	VPMAXUW t, x, x   \
	VPSRLD  $16, x, x \
	VPSLLD  $16, x, x

#define ENCODEAMAX ·encodeAmaxBF16AVX512
#define QUANTIZE ·quantizeBF16AVX512
#define QUANTIZEE8M0 ·quantizeE8M0BF16AVX512

#include "quantize_avx512_amd64.h"

// func amaxBF16AVX512(x *uint16, n int) (amax float32)
TEXT ·amaxBF16AVX512(SB), NOSPLIT, $0-20
	MOVQ   x+0(FP), R13
	MOVQ   n+8(FP), CX
	SIGNSOF
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1

magnitudes:
	PREFETCHT0 AHEAD(R13)
	PREFETCHT0 AHEAD+64(R13)
	GREATERS(0, Z2, Z4)
	GREATERS(1, Z3, Z4)
	MAXIMUM    Z2, Z0, Z0
	MAXIMUM    Z3, Z1, Z1
	ADDQ       $128, R13
	SUBQ       $64, CX
	JNZ        magnitudes
	MAXIMUM    Z1, Z0, Z0
	WHOLE(Z0, Z1)
	HALVES($0x4e, $0xe4, Z0, Z0, Z1)
	HALVES($0xb1, $0xe4, Z0, Z0, Z1)
	VPSHUFD    $0x4e, X0, X1
	VPMAXUD    X1, X0, X0
	VPSHUFD    $0xb1, X0, X1
	VPMAXUD    X1, X0, X0
	VMOVSS     X0, amax+16(FP)
	VZEROUPPER
	RET
