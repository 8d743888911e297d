//go:build amd64 && !noasm

#include "go_asm.h"
#include "textflag.h"

// moments turns the gradient in Y9 and m and v in memory into the new m in Y10
// and the new v in Y11, and stores both.
#define moments \
	VMULPS      (SI)(AX*1), Y0, Y10  \
	VMULPS      (DX)(AX*1), Y2, Y11  \
	VMULPS      Y9, Y9, Y12          \
	VFMADD231PS Y9, Y1, Y10          \
	VFMADD231PS Y12, Y3, Y11         \
	VMOVUPS     Y10, (SI)(AX*1)      \
	VMOVUPS     Y11, (DX)(AX*1)

// descend turns p in Y8, m in Y10 and v in Y11 into the new p, and stores it.
#define descend \
	VSQRTPS      Y11, Y11            \
	VFMADD213PS  Y5, Y4, Y11         \
	VMULPS       Y6, Y10, Y10        \
	VDIVPS       Y11, Y10, Y10       \
	VFNMADD231PS Y8, Y7, Y8          \
	VSUBPS       Y10, Y8, Y8         \
	VMOVUPS      Y8, (DI)(AX*1)

// begin loads the arguments, with pointers to the ends of the operands.
#define begin \
	MOVQ         p+0(FP), DI \
	MOVQ         m+8(FP), SI \
	MOVQ         v+16(FP), DX \
	MOVQ         grad+24(FP), BX \
	MOVQ         n+32(FP), CX \
	MOVQ         step+40(FP), R8 \
	VBROADCASTSS AdamStep_Beta1(R8), Y0 \
	VBROADCASTSS AdamStep_Rest1(R8), Y1 \
	VBROADCASTSS AdamStep_Beta2(R8), Y2 \
	VBROADCASTSS AdamStep_Rest2(R8), Y3 \
	VBROADCASTSS AdamStep_RootScale(R8), Y4 \
	VBROADCASTSS AdamStep_Epsilon(R8), Y5 \
	VBROADCASTSS AdamStep_Rate(R8), Y6 \
	VBROADCASTSS AdamStep_Decay(R8), Y7 \
	VBROADCASTSS AdamStep_L2(R8), Y13 \
	LEAQ         (DI)(CX*4), DI \
	LEAQ         (SI)(CX*4), SI \
	LEAQ         (DX)(CX*4), DX \
	LEAQ         (BX)(CX*4), BX \
	SHLQ         $2, CX \
	MOVQ         CX, AX \
	NEGQ         AX

// raise raises Y14 to the magnitudes of the new p, those in Y8, that are not NaN.
#define raise \
	VANDPS Y15, Y8, Y10  \
	VMAXPS Y14, Y10, Y14

// func adamAVX2(p, m, v, grad *float32, n int, step *AdamStep)
TEXT ·adamAVX2(SB), NOSPLIT, $0-48
	begin
	VXORPS       X14, X14, X14
	VUCOMISS     X14, X13
	JNE          adamL2
	JP           adamL2

adamLoop:
	VMOVUPS (BX)(AX*1), Y9
	VMOVUPS (DI)(AX*1), Y8
	moments
	descend
	ADDQ    $32, AX
	JNZ     adamLoop
	VZEROUPPER
	RET

adamL2:
	VMOVUPS     (BX)(AX*1), Y9
	VMOVUPS     (DI)(AX*1), Y8
	VFMADD231PS Y8, Y13, Y9
	moments
	descend
	ADDQ        $32, AX
	JNZ         adamL2
	VZEROUPPER
	RET

// func adamLargestAVX2(p, m, v, grad *float32, n int, step *AdamStep) (largest float32)
TEXT ·adamLargestAVX2(SB), NOSPLIT, $0-52
	begin
	VPCMPEQD Y15, Y15, Y15
	VPSRLD   $1, Y15, Y15
	VXORPS   X14, X14, X14
	VUCOMISS X14, X13
	JNE      largestL2
	JP       largestL2

largestLoop:
	VMOVUPS (BX)(AX*1), Y9
	VMOVUPS (DI)(AX*1), Y8
	moments
	descend
	raise
	ADDQ    $32, AX
	JNZ     largestLoop
	JMP     largestDone

largestL2:
	VMOVUPS     (BX)(AX*1), Y9
	VMOVUPS     (DI)(AX*1), Y8
	VFMADD231PS Y8, Y13, Y9
	moments
	descend
	raise
	ADDQ        $32, AX
	JNZ         largestL2

largestDone:
	VEXTRACTF128 $1, Y14, X0
	VMAXPS       X0, X14, X14
	VMOVHLPS     X14, X14, X0
	VMAXPS       X0, X14, X14
	VMOVSHDUP    X14, X0
	VMAXSS       X0, X14, X14
	VMOVSS       X14, largest+48(FP)
	VZEROUPPER
	RET
