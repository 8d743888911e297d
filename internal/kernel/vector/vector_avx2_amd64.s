//go:build !noasm

#include "avx2_amd64.h"

#define MAXTAIL(mem, v, none, t) \
	TAIL(mem, t)               \
	VBLENDVPS Y15, t, none, t  \
	VMAXPS    t, v, v

#define WITHIN(x) \
	VCMPPS $0x15, Y0, x, Y8 \
	VCMPPS $0x1a, Y1, x, Y9 \
	VANDPS Y9, Y8, Y8
#define KEPT(y, v) VANDPS y, Y8, v

#define DOT ·dotAVX2
#define SUM ·sumAVX2
#define MAXIMUM ·maximumAVX2
#define AXPY ·axpyAVX2
#define SCALE ·scaleAVX2
#define ADD ·addAVX2
#define MUL ·mulAVX2
#define MULSUB ·mulSubAVX2
#define CLAMP ·clampAVX2
#define KEEP ·keepAVX2

#include "vector_amd64.h"
