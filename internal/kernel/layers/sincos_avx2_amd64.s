//go:build amd64 && !noasm

#include "textflag.h"

#define LANES 4
#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define V7 Y7
#define H6 X6
#define H7 X7

// The registers hold some of the constants, the rest is read when it is needed.
#define ONE Y15
#define SIGN Y14
#define ODD Y13
#define TURN Y12
#define SHIFT Y11
#define HIGH Y10
#define LOW Y9
#define S9 trig<>+32(SB)
#define S7 trig<>+40(SB)
#define S5 trig<>+48(SB)
#define S3 trig<>+56(SB)
#define C10 trig<>+64(SB)
#define C8 trig<>+72(SB)
#define C6 trig<>+80(SB)
#define C4 trig<>+88(SB)
#define C2 trig<>+96(SB)

#define CONSTANTS \
	VBROADCASTSD trig<>+104(SB), ONE \
	VBROADCASTSD trig<>+112(SB), SIGN \
	VBROADCASTSD trig<>+120(SB), ODD \
	VBROADCASTSD trig<>+0(SB), TURN \
	VBROADCASTSD trig<>+8(SB), SHIFT \
	VBROADCASTSD trig<>+16(SB), HIGH \
	VBROADCASTSD trig<>+24(SB), LOW

#define START(c, sum) VBROADCASTSD c, sum
#define FMA(c, x, sum) \
	VBROADCASTSD c, Y2      \
	VFMADD213PD  Y2, x, sum

// The caller has checked the angles.
#define CHECK

#define EXCHANGE(q, x, y, x1, y1) \
	VPSLLQ    $63, q, Y2   \
	VBLENDVPD Y2, y, x, x1 \
	VBLENDVPD Y2, x, y, y1

#define CVTPD2PS VCVTPD2PSY
#define SINCOS ·sinCosAVX2

#include "sincos_amd64.h"
