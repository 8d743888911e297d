//go:build !noasm

#include "textflag.h"
#include "format_avx512_amd64.h"

#define SIZE 4
#define AHEAD 16384

#define FETCHFOUR \
	PREFETCHT0 AHEAD(SI)     \
	PREFETCHT0 AHEAD+64(SI)  \
	PREFETCHT0 AHEAD+128(SI) \
	PREFETCHT0 AHEAD+192(SI)

#define LOAD(i, to) VMOVUPS (64*i)(SI), to

#define PRODUCT(i, scale, to) VMULPS (64*i)(SI), scale, to

#define SIGNSOF

#define GREATERS(i, to, t) \
	VPANDD  (128*(i))(R13), Z16, to   \
	VPANDD  (128*(i)+64)(R13), Z16, t \
	VPMAXUD t, to, to

#define MAXIMUM VPMAXUD

#define WHOLE(x, t)

#define ENCODEAMAX ·encodeAmaxAVX512
#define QUANTIZE ·quantizeAVX512
#define QUANTIZEE8M0 ·quantizeE8M0AVX512

#include "quantize_avx512_amd64.h"
