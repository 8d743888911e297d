// What the loops with AVX-512 that round to E2M1 share.

#define BROADCAST(value, to) \
	MOVL         value, AX \
	VPBROADCASTD AX, to

// AHEAD is how far ahead of the elements the loops prefetch.
#define AHEAD 8192

// CODES leaves the codes of a block in the highest bits of z. A magnitude above the largest limit
// is replaced by that, as is a NaN; the product and the number whose unit is a quarter make a sum
// whose lowest four bits are the index of the limit to compare with, and of the code below it.
#define CODES(block, from, z) \
	MOVBLZX          block(DX), AX            \
	SHLL             $6, AX                   \
	VPANDD           from, Z25, Z16           \
	VPMINUD.BCST     44(R8)(AX*1), Z16, Z16   \
	VMOVAPS          Z26, Z17                 \
	VFMADD231PS.BCST 60(R8)(AX*1), Z16, Z17   \
	VPERMPS          (R8)(AX*1), Z17, Z18     \
	VPCMPUD          $5, Z18, Z16, K1         \
	VPERMD           Z27, Z17, z              \
	VPADDD           Z28, z, K1, z            \
	VPTERNLOGD       $0xf8, from, Z29, z

// MERGE leaves in the bytes of the odd elements of d the pairs of codes of four blocks.
#define MERGE(a, b, c, d, t) \
	VPSRLD     $24, a, a      \
	VPSRLD     $16, b, b      \
	VPSRLD     $8, c, c       \
	VPTERNLOGD $0xfe, b, a, c \
	VPORD      c, d, d        \
	VPSLLQ     $28, d, t      \
	VPORD      t, d, d

// CODEBYTES stores the pairs of codes of eight blocks, of which MERGE has left four in a and four
// in b.
#define CODEBYTES(a, b, to) \
	VSHUFPS   $0xdd, b, a, a \
	VPSHUFB   Z30, a, a      \
	VPERMW    a, Z31, a      \
	VMOVDQU64 a, to

// ENCODER loads what these need: masks, the number whose unit is a quarter, codes and orders.
#define ENCODER \
	BROADCAST($0x7fffffff, Z25)          \
	BROADCAST($0x4a400000, Z26)          \
	VMOVDQU32       e2m1Below<>(SB), Z27 \
	BROADCAST($0x10000000, Z28)          \
	BROADCAST($0x80000000, Z29)          \
	VBROADCASTI32X4 e2m1Pairs<>(SB), Z30 \
	VMOVDQU64       e2m1Words<>(SB), Z31

// The codes of the magnitudes below the limit at an index.
DATA e2m1Below<>+0(SB)/4, $0x00000000
DATA e2m1Below<>+4(SB)/4, $0x00000000
DATA e2m1Below<>+8(SB)/4, $0x10000000
DATA e2m1Below<>+12(SB)/4, $0x20000000
DATA e2m1Below<>+16(SB)/4, $0x30000000
DATA e2m1Below<>+20(SB)/4, $0x40000000
DATA e2m1Below<>+24(SB)/4, $0x40000000
DATA e2m1Below<>+28(SB)/4, $0x50000000
DATA e2m1Below<>+32(SB)/4, $0x50000000
DATA e2m1Below<>+36(SB)/4, $0x60000000
DATA e2m1Below<>+40(SB)/4, $0x60000000
DATA e2m1Below<>+44(SB)/4, $0x60000000
DATA e2m1Below<>+48(SB)/4, $0x00000000
DATA e2m1Below<>+52(SB)/4, $0x00000000
DATA e2m1Below<>+56(SB)/4, $0x00000000
DATA e2m1Below<>+60(SB)/4, $0x00000000
GLOBL e2m1Below<>(SB), RODATA|NOPTR, $64

// The bytes of a quarter: those of the first pair of elements of eight blocks and of the second
// one.
DATA e2m1Pairs<>+0(SB)/8, $0x0703060205010400
DATA e2m1Pairs<>+8(SB)/8, $0x0f0b0e0a0d090c08
GLOBL e2m1Pairs<>(SB), RODATA|NOPTR, $16

// Word l of block j is word j of quarter l.
DATA e2m1Words<>+0(SB)/8, $0x0018001000080000
DATA e2m1Words<>+8(SB)/8, $0x0019001100090001
DATA e2m1Words<>+16(SB)/8, $0x001a0012000a0002
DATA e2m1Words<>+24(SB)/8, $0x001b0013000b0003
DATA e2m1Words<>+32(SB)/8, $0x001c0014000c0004
DATA e2m1Words<>+40(SB)/8, $0x001d0015000d0005
DATA e2m1Words<>+48(SB)/8, $0x001e0016000e0006
DATA e2m1Words<>+56(SB)/8, $0x001f0017000f0007
GLOBL e2m1Words<>(SB), RODATA|NOPTR, $64

// TURN transposes the sixteen vectors Z0 to Z15, also with Z19: the vectors that result are, in
// order, Z10, Z8, Z5, Z11, Z13, Z6, Z4, Z1, Z2, Z0, Z19, Z3, Z14, Z12, Z9 and Z15.
#define TURN \
	VUNPCKLPS  Z1, Z0, Z19          \
	VUNPCKHPS  Z1, Z0, Z1           \
	VUNPCKLPS  Z3, Z2, Z0           \
	VUNPCKHPS  Z3, Z2, Z3           \
	VUNPCKLPD  Z0, Z19, Z2          \
	VUNPCKHPD  Z0, Z19, Z0          \
	VUNPCKLPD  Z3, Z1, Z19          \
	VUNPCKHPD  Z3, Z1, Z3           \
	VUNPCKLPS  Z5, Z4, Z1           \
	VUNPCKHPS  Z5, Z4, Z5           \
	VUNPCKLPS  Z7, Z6, Z4           \
	VUNPCKHPS  Z7, Z6, Z7           \
	VUNPCKLPD  Z4, Z1, Z6           \
	VUNPCKHPD  Z4, Z1, Z4           \
	VUNPCKLPD  Z7, Z5, Z1           \
	VUNPCKHPD  Z7, Z5, Z7           \
	VUNPCKLPS  Z9, Z8, Z5           \
	VUNPCKHPS  Z9, Z8, Z9           \
	VUNPCKLPS  Z11, Z10, Z8         \
	VUNPCKHPS  Z11, Z10, Z11        \
	VUNPCKLPD  Z8, Z5, Z10          \
	VUNPCKHPD  Z8, Z5, Z8           \
	VUNPCKLPD  Z11, Z9, Z5          \
	VUNPCKHPD  Z11, Z9, Z11         \
	VUNPCKLPS  Z13, Z12, Z9         \
	VUNPCKHPS  Z13, Z12, Z13        \
	VUNPCKLPS  Z15, Z14, Z12        \
	VUNPCKHPS  Z15, Z14, Z15        \
	VUNPCKLPD  Z12, Z9, Z14         \
	VUNPCKHPD  Z12, Z9, Z12         \
	VUNPCKLPD  Z15, Z13, Z9         \
	VUNPCKHPD  Z15, Z13, Z15        \
	VSHUFF64X2 $0x88, Z6, Z2, Z13   \
	VSHUFF64X2 $0xdd, Z6, Z2, Z6    \
	VSHUFF64X2 $0x88, Z14, Z10, Z2  \
	VSHUFF64X2 $0xdd, Z14, Z10, Z14 \
	VSHUFF64X2 $0x88, Z2, Z13, Z10  \
	VSHUFF64X2 $0xdd, Z2, Z13, Z2   \
	VSHUFF64X2 $0x88, Z14, Z6, Z13  \
	VSHUFF64X2 $0xdd, Z14, Z6, Z14  \
	VSHUFF64X2 $0x88, Z4, Z0, Z6    \
	VSHUFF64X2 $0xdd, Z4, Z0, Z4    \
	VSHUFF64X2 $0x88, Z12, Z8, Z0   \
	VSHUFF64X2 $0xdd, Z12, Z8, Z12  \
	VSHUFF64X2 $0x88, Z0, Z6, Z8    \
	VSHUFF64X2 $0xdd, Z0, Z6, Z0    \
	VSHUFF64X2 $0x88, Z12, Z4, Z6   \
	VSHUFF64X2 $0xdd, Z12, Z4, Z12  \
	VSHUFF64X2 $0x88, Z1, Z19, Z4   \
	VSHUFF64X2 $0xdd, Z1, Z19, Z1   \
	VSHUFF64X2 $0x88, Z9, Z5, Z19   \
	VSHUFF64X2 $0xdd, Z9, Z5, Z9    \
	VSHUFF64X2 $0x88, Z19, Z4, Z5   \
	VSHUFF64X2 $0xdd, Z19, Z4, Z19  \
	VSHUFF64X2 $0x88, Z9, Z1, Z4    \
	VSHUFF64X2 $0xdd, Z9, Z1, Z9    \
	VSHUFF64X2 $0x88, Z7, Z3, Z1    \
	VSHUFF64X2 $0xdd, Z7, Z3, Z7    \
	VSHUFF64X2 $0x88, Z15, Z11, Z3  \
	VSHUFF64X2 $0xdd, Z15, Z11, Z15 \
	VSHUFF64X2 $0x88, Z3, Z1, Z11   \
	VSHUFF64X2 $0xdd, Z3, Z1, Z3    \
	VSHUFF64X2 $0x88, Z15, Z7, Z1   \
	VSHUFF64X2 $0xdd, Z15, Z7, Z15

// FETCHLINES prefetches sixteen lines from R14 on and goes on to the next ones.
#define FETCHLINES \
	PREFETCHT0 (R14)     \
	PREFETCHT0 64(R14)   \
	PREFETCHT0 128(R14)  \
	PREFETCHT0 192(R14)  \
	PREFETCHT0 256(R14)  \
	PREFETCHT0 320(R14)  \
	PREFETCHT0 384(R14)  \
	PREFETCHT0 448(R14)  \
	PREFETCHT0 512(R14)  \
	PREFETCHT0 576(R14)  \
	PREFETCHT0 640(R14)  \
	PREFETCHT0 704(R14)  \
	PREFETCHT0 768(R14)  \
	PREFETCHT0 832(R14)  \
	PREFETCHT0 896(R14)  \
	PREFETCHT0 960(R14)  \
	ADDQ $1024, R14
