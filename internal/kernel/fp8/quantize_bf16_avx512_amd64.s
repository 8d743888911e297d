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
