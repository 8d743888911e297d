//go:build amd64 && !noasm

#include "textflag.h"

#define LANES 8
#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4
#define V5 Z5
#define V6 Z6
#define V7 Z7
#define H6 Y6
#define H7 Y7

#define TURN Z31
#define SHIFT Z30
#define HIGH Z29
#define LOW Z28
#define S9 Z27
#define S7 Z26
#define S5 Z25
#define S3 Z24
#define C10 Z23
#define C8 Z22
#define C6 Z21
#define C4 Z20
#define C2 Z19
#define ONE Z18
#define SIGN Z17
#define ODD Z16
#define LARGE Z15

#define CONSTANTS \
	VBROADCASTSD trig<>+0(SB), TURN \
	VBROADCASTSD trig<>+8(SB), SHIFT \
	VBROADCASTSD trig<>+16(SB), HIGH \
	VBROADCASTSD trig<>+24(SB), LOW \
	VBROADCASTSD trig<>+32(SB), S9 \
	VBROADCASTSD trig<>+40(SB), S7 \
	VBROADCASTSD trig<>+48(SB), S5 \
	VBROADCASTSD trig<>+56(SB), S3 \
	VBROADCASTSD trig<>+64(SB), C10 \
	VBROADCASTSD trig<>+72(SB), C8 \
	VBROADCASTSD trig<>+80(SB), C6 \
	VBROADCASTSD trig<>+88(SB), C4 \
	VBROADCASTSD trig<>+96(SB), C2 \
	VBROADCASTSD trig<>+104(SB), ONE \
	VBROADCASTSD trig<>+112(SB), SIGN \
	VBROADCASTSD trig<>+120(SB), ODD \
	VBROADCASTSD trig<>+128(SB), LARGE

#define START(c, sum) VMOVAPD c, sum
#define FMA(c, x, sum) VFMADD213PD c, x, sum

// CHECK compares for "less than", which does not hold for NaN.
#define CHECK \
	VPANDNQ V0, SIGN, V1      \
	VCMPPD  $1, LARGE, V1, K1 \
	KMOVW   K1, AX            \
	CMPL    AX, $0xff         \
	JNE     sinCosDone

#define EXCHANGE(q, x, y, x1, y1) \
	VPTESTMQ  ODD, q, K1   \
	VBLENDMPD y, x, K1, x1 \
	VBLENDMPD x, y, K1, y1

#define CVTPD2PS VCVTPD2PS
#define SINCOS ·sinCosAVX512

#include "sincos_amd64.h"
