//go:build amd64 && !noasm

#include "go_asm.h"
#include "textflag.h"

// TURN turns the pair (x0, x1) by c0, c1, s0 and s1 into (y0, y1).
#define TURN(x0, x1, c0, c1, s0, s1, y0, y1) \
	VMULPS      s0, x1, y0 \
	VMULPS      s1, x0, y1 \
	VFMSUB231PS c0, x0, y0 \
	VFMADD231PS c1, x1, y1

// func rotateHalvesAVX2(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)
TEXT ·rotateHalvesAVX2(SB), NOSPLIT, $0-96
	MOVQ y0+0(FP), DI
	MOVQ y1+8(FP), SI
	MOVQ yPitch+16(FP), DX
	MOVQ x0+24(FP), R8
	MOVQ x1+32(FP), R9
	MOVQ xPitch+40(FP), BX
	MOVQ heads+48(FP), R15
	MOVQ c0+56(FP), R10
	MOVQ c1+64(FP), R11
	MOVQ s0+72(FP), R12
	MOVQ s1+80(FP), R13
	MOVQ n+88(FP), CX
	SHLQ $2, CX

rotateHalvesHead:
	XORQ AX, AX

rotateHalvesLoop:
	VMOVUPS     (R8)(AX*1), Y0
	VMOVUPS     (R9)(AX*1), Y1
	TURN(Y0, Y1, (R10)(AX*1), (R11)(AX*1), (R12)(AX*1), (R13)(AX*1), Y2, Y3)
	VMOVUPS     Y2, (DI)(AX*1)
	VMOVUPS     Y3, (SI)(AX*1)
	ADDQ        $32, AX
	CMPQ        AX, CX
	JLT         rotateHalvesLoop
	LEAQ        (DI)(DX*4), DI
	LEAQ        (SI)(DX*4), SI
	LEAQ        (R8)(BX*4), R8
	LEAQ        (R9)(BX*4), R9
	DECQ        R15
	JNZ         rotateHalvesHead
	VZEROUPPER
	RET

// func rotateHalvesAVX512(t *Turns, y, x *Pitch, y0, y1, x0, x1, c0, c1, s0, s1 *float32)
TEXT ·rotateHalvesAVX512(SB), NOSPLIT, $40-88
	MOVQ y0+24(FP), DI
	MOVQ y1+32(FP), SI
	MOVQ x0+40(FP), R8
	MOVQ x1+48(FP), R9
	MOVQ c0+56(FP), R10
	MOVQ c1+64(FP), R11
	MOVQ s0+72(FP), R12
	MOVQ s1+80(FP), R13
	SUBQ DI, SI          // from y0 to y1
	SUBQ R8, R9          // from x0 to x1
	MOVQ t+0(FP), AX
	MOVQ Turns_Steps(AX), CX
	MOVQ CX, steps-8(SP)

rotateHalvesStep:
	XORQ CX, CX // bytes of the columns that are done

	// All heads of 32 columns at a time: their angles stay in registers. The lines
	// that are written next are prefetched.
rotateHalvesColumns:
	MOVQ t+0(FP), AX
	MOVQ Turns_Columns(AX), DX
	SHLQ $2, DX
	SUBQ CX, DX
	MOVL $-1, BX
	CMPQ DX, $128
	JGE  rotateHalvesAngles
	SHRQ $2, DX
	MOVL $1, BX
	SHLXL DX, BX, BX
	DECL BX

rotateHalvesAngles:
	KMOVW     BX, K1
	SHRL      $16, BX
	KMOVW     BX, K2
	VMOVUPS.Z (R10)(CX*1), K1, Z0
	VMOVUPS.Z 64(R10)(CX*1), K2, Z1
	VMOVUPS.Z (R11)(CX*1), K1, Z2
	VMOVUPS.Z 64(R11)(CX*1), K2, Z3
	VMOVUPS.Z (R12)(CX*1), K1, Z4
	VMOVUPS.Z 64(R12)(CX*1), K2, Z5
	VMOVUPS.Z (R13)(CX*1), K1, Z6
	VMOVUPS.Z 64(R13)(CX*1), K2, Z7
	LEAQ      (DI)(CX*1), DX
	LEAQ      (R8)(CX*1), BX
	MOVQ      DX, yGroup-16(SP)
	MOVQ      BX, xGroup-24(SP)
	MOVQ      Turns_Groups(AX), AX
	MOVQ      AX, groups-32(SP)
	MOVQ      y+8(FP), R14
	MOVQ      x+16(FP), R15
	MOVQ      Pitch_Head(R14), R14
	MOVQ      Pitch_Head(R15), R15
	SHLQ      $2, R14
	SHLQ      $2, R15

rotateHalvesGroup:
	MOVQ t+0(FP), AX
	MOVQ Turns_Heads(AX), AX

rotateHalvesHead:
	PREFETCHT0 1024(DX)
	PREFETCHT0 1088(DX)
	PREFETCHT0 1024(DX)(SI*1)
	PREFETCHT0 1088(DX)(SI*1)
	VMOVUPS.Z  (BX), K1, Z8
	VMOVUPS.Z  64(BX), K2, Z9
	VMOVUPS.Z  (BX)(R9*1), K1, Z10
	VMOVUPS.Z  64(BX)(R9*1), K2, Z11
	TURN(Z8, Z10, Z0, Z2, Z4, Z6, Z12, Z13)
	TURN(Z9, Z11, Z1, Z3, Z5, Z7, Z14, Z15)
	VMOVUPS    Z12, K1, (DX)
	VMOVUPS    Z14, K2, 64(DX)
	VMOVUPS    Z13, K1, (DX)(SI*1)
	VMOVUPS    Z15, K2, 64(DX)(SI*1)
	ADDQ       R14, DX
	ADDQ       R15, BX
	DECQ       AX
	JNZ        rotateHalvesHead
	MOVQ       y+8(FP), DX
	MOVQ       Pitch_Group(DX), DX
	SHLQ       $2, DX
	ADDQ       yGroup-16(SP), DX
	MOVQ       DX, yGroup-16(SP)
	MOVQ       x+16(FP), BX
	MOVQ       Pitch_Group(BX), BX
	SHLQ       $2, BX
	ADDQ       xGroup-24(SP), BX
	MOVQ       BX, xGroup-24(SP)
	DECQ       groups-32(SP)
	JNZ        rotateHalvesGroup
	MOVQ       t+0(FP), AX
	ADDQ       $128, CX
	MOVQ       Turns_Columns(AX), DX
	SHLQ       $2, DX
	CMPQ       CX, DX
	JLT        rotateHalvesColumns
	MOVQ       Turns_Angles(AX), DX
	LEAQ       (R10)(DX*4), R10
	LEAQ       (R11)(DX*4), R11
	LEAQ       (R12)(DX*4), R12
	LEAQ       (R13)(DX*4), R13
	MOVQ       y+8(FP), DX
	MOVQ       Pitch_Step(DX), DX
	LEAQ       (DI)(DX*4), DI
	MOVQ       x+16(FP), DX
	MOVQ       Pitch_Step(DX), DX
	LEAQ       (R8)(DX*4), R8
	DECQ       steps-8(SP)
	JNZ        rotateHalvesStep
	VZEROUPPER
	RET

// func copyHeadsAVX512(t *Turns, y, x *Pitch, to, from *float32)
TEXT ·copyHeadsAVX512(SB), NOSPLIT, $0-40
	MOVQ t+0(FP), AX
	MOVQ y+8(FP), BX
	MOVQ x+16(FP), DX
	MOVQ to+24(FP), DI
	MOVQ from+32(FP), SI
	MOVQ Turns_Steps(AX), R8

copyStep:
	MOVQ DI, R12
	MOVQ SI, R13
	MOVQ Turns_Groups(AX), R9

copyGroup:
	MOVQ R12, R14
	MOVQ R13, R15
	MOVQ Turns_Heads(AX), R10

copyHead:
	XORQ R11, R11
	MOVQ Turns_Columns(AX), CX

copy16:
	SUBQ    $16, CX
	JLT     copyRest
	VMOVUPS (R15)(R11*1), Z0
	VMOVUPS Z0, (R14)(R11*1)
	ADDQ    $64, R11
	JMP     copy16

copyRest:
	ADDQ      $16, CX
	JEQ       copyNext
	PUSHQ     AX
	MOVL      $1, AX
	SHLL      CX, AX
	DECL      AX
	KMOVW     AX, K1
	POPQ      AX
	VMOVUPS.Z (R15)(R11*1), K1, Z0
	VMOVUPS   Z0, K1, (R14)(R11*1)

copyNext:
	MOVQ Pitch_Head(BX), CX
	LEAQ (R14)(CX*4), R14
	MOVQ Pitch_Head(DX), CX
	LEAQ (R15)(CX*4), R15
	DECQ R10
	JNZ  copyHead
	MOVQ Pitch_Group(BX), CX
	LEAQ (R12)(CX*4), R12
	MOVQ Pitch_Group(DX), CX
	LEAQ (R13)(CX*4), R13
	DECQ R9
	JNZ  copyGroup
	MOVQ Pitch_Step(BX), CX
	LEAQ (DI)(CX*4), DI
	MOVQ Pitch_Step(DX), CX
	LEAQ (SI)(CX*4), SI
	DECQ R8
	JNZ  copyStep
	VZEROUPPER
	RET

// func rotatePairsAVX2(y, x, c, s *float32, n int)
TEXT ·rotatePairsAVX2(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ c+16(FP), DX
	MOVQ s+24(FP), BX
	MOVQ n+32(FP), CX
	SHLQ $2, CX
	XORQ AX, AX

rotatePairsLoop:
	VMOVUPS     (SI)(AX*1), Y0
	VPERMILPS   $0xB1, Y0, Y1
	VMULPS      (BX)(AX*1), Y1, Y1
	VFMADD231PS (DX)(AX*1), Y0, Y1
	VMOVUPS     Y1, (DI)(AX*1)
	ADDQ        $32, AX
	CMPQ        AX, CX
	JLT         rotatePairsLoop
	VZEROUPPER
	RET
