// What the functions of one kind begin with: go vet does not take arguments for those of the function
// before in a header.

// BEGIN loads the arguments of a function largest, -Inf and +Inf.
#define BEGIN \
	MOVQ top+0(FP), DI \
	MOVQ x+8(FP), SI   \
	MOVQ n+16(FP), CX  \
	VBROADCASTSS constants<>+12(SB), Z28 \
	VBROADCASTSS constants<>+0(SB), Z29

// Registers of the gradients: DI results, SI scores, DX gradients, BX choice, R10 to R13 bytes from
// row to row of these, R9 rows left, R8 columns; AX is the column, CX columns left, Z31 the scale.
#define OPERANDS \
	MOVQ dx+0(FP), DI            \
	MOVQ dxPitch+8(FP), R10      \
	MOVQ s+16(FP), SI            \
	MOVQ sPitch+24(FP), R11      \
	MOVQ grad+32(FP), DX            \
	MOVQ gradPitch+40(FP), R12      \
	MOVQ chosen+48(FP), BX       \
	MOVQ chosenPitch+56(FP), R13 \
	MOVQ rows+64(FP), R9         \
	MOVQ cols+72(FP), R8         \
	VBROADCASTSS scale+80(FP), Z31 \
	SHLQ $2, R10                 \
	SHLQ $2, R11                 \
	SHLQ $2, R12
