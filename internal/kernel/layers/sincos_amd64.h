// The sines and cosines for vectors of any width: a file that includes this one says in V0 to V7 and
// LANES what a vector of float64s is and in H6 and H7 what half of one is, and defines SINCOS and
//
//	CONSTANTS        prepares for all that follow
//	CHECK            goes to sinCosDone if an angle in V0 is too large
//	SHIFT, SIGN, ODD, TURN, HIGH, LOW, ONE   registers with the constants of these names
//	S3 to S9, C2 to C10                      constants of the series
//	START(c, sum)    sets sum to one of these, and FMA(c, x, sum) to sum·x + c
//	EXCHANGE(q, x, y, x1, y1)  sets x1 and y1 to x and y, exchanged where q is odd, with V2 as scratch
//	CVTPD2PS         the instruction that rounds a vector to float32s

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

// func sinCos(sin, cos, theta *float32, n int) (done int)
TEXT SINCOS(SB), NOSPLIT, $0-40
	MOVQ sin+0(FP), DI
	MOVQ cos+8(FP), SI
	MOVQ theta+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ BX, BX
	CONSTANTS

sinCosLoop:
	VCVTPS2PD    (DX)(BX*4), V0
	CHECK
	VMOVAPD      SHIFT, V1
	VFMADD231PD  TURN, V0, V1  // quadrant in the low bits
	VSUBPD       SHIFT, V1, V2 // turns
	VFNMADD231PD HIGH, V2, V0
	VFNMADD231PD LOW, V2, V0   // r
	VMULPD       V0, V0, V3    // z
	START(S9, V4)
	START(C10, V5)
	FMA(S7, V3, V4)
	FMA(C8, V3, V5)
	FMA(S5, V3, V4)
	FMA(C6, V3, V5)
	FMA(S3, V3, V4)
	FMA(C4, V3, V5)
	VMULPD       V0, V3, V6
	FMA(C2, V3, V5)
	VFMADD213PD  V0, V6, V4    // sin r
	VFMADD213PD  ONE, V3, V5   // cos r
	EXCHANGE(V1, V4, V5, V6, V7)
	VPADDQ       ODD, V1, V3
	VPSLLQ       $62, V1, V2
	VPSLLQ       $62, V3, V3
	VANDPD       SIGN, V2, V2
	VANDPD       SIGN, V3, V3
	VXORPD       V2, V6, V6
	VXORPD       V3, V7, V7
	CVTPD2PS     V6, H6
	CVTPD2PS     V7, H7
	VMOVUPS      H6, (DI)(BX*4)
	VMOVUPS      H7, (SI)(BX*4)
	ADDQ         $LANES, BX
	CMPQ         BX, CX
	JLT          sinCosLoop

sinCosDone:
	MOVQ BX, done+32(FP)
	VZEROUPPER
	RET
