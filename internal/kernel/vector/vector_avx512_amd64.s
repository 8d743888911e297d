//go:build !noasm

#include "avx512_amd64.h"

#define MAXTAIL(mem, v, none, t) VMAXPS mem, v, K1, v

#define WITHIN(x) \
	VCMPPS $0x15, Z0, x, K2     \
	VCMPPS $0x1a, Z1, x, K2, K2
#define KEPT(y, v) VMOVUPS.Z y, K2, v

#define DOT ·dotAVX512
#define SUM ·sumAVX512
#define MAXIMUM ·maximumAVX512
#define AXPY ·axpyAVX512
#define SCALE ·scaleAVX512
#define ADD ·addAVX512
#define MUL ·mulAVX512
#define MULSUB ·mulSubAVX512
#define CLAMP ·clampAVX512
#define KEEP ·keepAVX512

#include "vector_amd64.h"
