//go:build amd64 && !noasm

#include "textflag.h"

// The constants of sinCosGo: see there.
DATA trig<>+0(SB)/8, $0x3fe45f306dc9c883   // 2/π
DATA trig<>+8(SB)/8, $0x4338000000000000   // roundShift
DATA trig<>+16(SB)/8, $0x3ff921fb54400000  // halfPiHigh
DATA trig<>+24(SB)/8, $0x3dd0b4611a626331  // halfPiLow
DATA trig<>+32(SB)/8, $0x3ec71de3a556c734  // 1/9!
DATA trig<>+40(SB)/8, $0xbf2a01a01a01a01a  // −1/7!
DATA trig<>+48(SB)/8, $0x3f81111111111111  // 1/5!
DATA trig<>+56(SB)/8, $0xbfc5555555555555  // −1/3!
DATA trig<>+64(SB)/8, $0xbe927e4fb7789f5c  // −1/10!
DATA trig<>+72(SB)/8, $0x3efa01a01a01a01a  // 1/8!
DATA trig<>+80(SB)/8, $0xbf56c16c16c16c17  // −1/6!
DATA trig<>+88(SB)/8, $0x3fa5555555555555  // 1/4!
DATA trig<>+96(SB)/8, $0xbfe0000000000000  // −1/2
DATA trig<>+104(SB)/8, $0x3ff0000000000000 // 1
DATA trig<>+112(SB)/8, $0x8000000000000000 // sign
DATA trig<>+120(SB)/8, $0x0000000000000001
DATA trig<>+128(SB)/8, $0x4130000000000000 // maxReduced
GLOBL trig<>(SB), RODATA|NOPTR, $136

// func sinCosAVX2(sin, cos, theta *float32, n int)
TEXT ·sinCosAVX2(SB), NOSPLIT, $0-32
	MOVQ         sin+0(FP), DI
	MOVQ         cos+8(FP), SI
	MOVQ         theta+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD trig<>+104(SB), Y15
	VBROADCASTSD trig<>+112(SB), Y14
	VBROADCASTSD trig<>+120(SB), Y13
	VBROADCASTSD trig<>+0(SB), Y12
	VBROADCASTSD trig<>+8(SB), Y11
	VBROADCASTSD trig<>+16(SB), Y10
	VBROADCASTSD trig<>+24(SB), Y9
	VBROADCASTSD trig<>+56(SB), Y8

sinCosLoop:
	VCVTPS2PD    (DX), Y0
	VMOVAPD      Y11, Y1
	VFMADD231PD  Y12, Y0, Y1               // quadrant in the low bits
	VSUBPD       Y11, Y1, Y2               // turns
	VFNMADD231PD Y10, Y2, Y0
	VFNMADD231PD Y9, Y2, Y0                // r
	VMULPD       Y0, Y0, Y3                // z
	VBROADCASTSD trig<>+32(SB), Y4
	VBROADCASTSD trig<>+40(SB), Y2
	VFMADD213PD  Y2, Y3, Y4
	VBROADCASTSD trig<>+48(SB), Y2
	VFMADD213PD  Y2, Y3, Y4
	VFMADD213PD  Y8, Y3, Y4
	VMULPD       Y0, Y3, Y2
	VFMADD213PD  Y0, Y2, Y4                // sin r
	VBROADCASTSD trig<>+64(SB), Y5
	VBROADCASTSD trig<>+72(SB), Y2
	VFMADD213PD  Y2, Y3, Y5
	VBROADCASTSD trig<>+80(SB), Y2
	VFMADD213PD  Y2, Y3, Y5
	VBROADCASTSD trig<>+88(SB), Y2
	VFMADD213PD  Y2, Y3, Y5
	VBROADCASTSD trig<>+96(SB), Y2
	VFMADD213PD  Y2, Y3, Y5
	VFMADD213PD  Y15, Y3, Y5               // cos r
	VPSLLQ       $63, Y1, Y2
	VBLENDVPD    Y2, Y5, Y4, Y6            // exchanged in odd quadrants
	VBLENDVPD    Y2, Y4, Y5, Y7
	VPADDQ       Y13, Y1, Y3
	VPSLLQ       $62, Y1, Y2
	VPSLLQ       $62, Y3, Y3
	VPAND        Y14, Y2, Y2
	VPAND        Y14, Y3, Y3
	VXORPD       Y2, Y6, Y6
	VXORPD       Y3, Y7, Y7
	VCVTPD2PSY   Y6, X6
	VCVTPD2PSY   Y7, X7
	VMOVUPS      X6, (DI)
	VMOVUPS      X7, (SI)
	ADDQ         $16, DX
	ADDQ         $16, DI
	ADDQ         $16, SI
	SUBQ         $4, CX
	JNZ          sinCosLoop
	VZEROUPPER
	RET

// func sinCosAVX512(sin, cos, theta *float32, n int) (done int)
TEXT ·sinCosAVX512(SB), NOSPLIT, $0-40
	MOVQ         sin+0(FP), DI
	MOVQ         cos+8(FP), SI
	MOVQ         theta+16(FP), DX
	MOVQ         n+24(FP), CX
	XORQ         BX, BX
	VBROADCASTSD trig<>+0(SB), Z31
	VBROADCASTSD trig<>+8(SB), Z30
	VBROADCASTSD trig<>+16(SB), Z29
	VBROADCASTSD trig<>+24(SB), Z28
	VBROADCASTSD trig<>+32(SB), Z27
	VBROADCASTSD trig<>+40(SB), Z26
	VBROADCASTSD trig<>+48(SB), Z25
	VBROADCASTSD trig<>+56(SB), Z24
	VBROADCASTSD trig<>+64(SB), Z23
	VBROADCASTSD trig<>+72(SB), Z22
	VBROADCASTSD trig<>+80(SB), Z21
	VBROADCASTSD trig<>+88(SB), Z20
	VBROADCASTSD trig<>+96(SB), Z19
	VBROADCASTSD trig<>+104(SB), Z18
	VBROADCASTSD trig<>+112(SB), Z17
	VBROADCASTSD trig<>+120(SB), Z16
	VBROADCASTSD trig<>+128(SB), Z15

sinCos8:
	VCVTPS2PD    (DX)(BX*4), Z0
	VPANDNQ      Z0, Z17, Z1
	VCMPPD       $1, Z15, Z1, K1           // not for NaN
	KMOVW        K1, AX
	CMPL         AX, $0xff
	JNE          sinCosDone
	VMOVAPD      Z30, Z1
	VFMADD231PD  Z31, Z0, Z1               // quadrant in the low bits
	VSUBPD       Z30, Z1, Z2               // turns
	VFNMADD231PD Z29, Z2, Z0
	VFNMADD231PD Z28, Z2, Z0               // r
	VMULPD       Z0, Z0, Z3                // z
	VMOVAPD      Z27, Z4
	VMOVAPD      Z23, Z5
	VFMADD213PD  Z26, Z3, Z4
	VFMADD213PD  Z22, Z3, Z5
	VFMADD213PD  Z25, Z3, Z4
	VFMADD213PD  Z21, Z3, Z5
	VFMADD213PD  Z24, Z3, Z4
	VFMADD213PD  Z20, Z3, Z5
	VMULPD       Z0, Z3, Z2
	VFMADD213PD  Z19, Z3, Z5
	VFMADD213PD  Z0, Z2, Z4                // sin r
	VFMADD213PD  Z18, Z3, Z5               // cos r
	VPTESTMQ     Z16, Z1, K1
	VBLENDMPD    Z5, Z4, K1, Z6            // exchanged in odd quadrants
	VBLENDMPD    Z4, Z5, K1, Z7
	VPADDQ       Z16, Z1, Z3
	VPSLLQ       $62, Z1, Z2
	VPSLLQ       $62, Z3, Z3
	VPANDQ       Z17, Z2, Z2
	VPANDQ       Z17, Z3, Z3
	VPXORQ       Z2, Z6, Z6
	VPXORQ       Z3, Z7, Z7
	VCVTPD2PS    Z6, Y6
	VCVTPD2PS    Z7, Y7
	VMOVUPS      Y6, (DI)(BX*4)
	VMOVUPS      Y7, (SI)(BX*4)
	ADDQ         $8, BX
	CMPQ         BX, CX
	JLT          sinCos8

sinCosDone:
	MOVQ BX, done+32(FP)
	VZEROUPPER
	RET
