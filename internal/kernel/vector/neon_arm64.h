// Instructions of NEON for which the assembler has no name, on registers that are given by number,
// destination first.

#define FADD(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))   // FADD Vd.4S, Vn.4S, Vm.4S
#define FSUB(d, n, m) WORD $(0x4ea0d400 | (m)<<16 | (n)<<5 | (d))   // FSUB Vd.4S, Vn.4S, Vm.4S
#define FMUL(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))   // FMUL Vd.4S, Vn.4S, Vm.4S
#define FDIV(d, n, m) WORD $(0x6e20fc00 | (m)<<16 | (n)<<5 | (d))   // FDIV Vd.4S, Vn.4S, Vm.4S
#define FMAX(d, n, m) WORD $(0x4e20f400 | (m)<<16 | (n)<<5 | (d))   // FMAX Vd.4S, Vn.4S, Vm.4S
#define FMIN(d, n, m) WORD $(0x4ea0f400 | (m)<<16 | (n)<<5 | (d))   // FMIN Vd.4S, Vn.4S, Vm.4S
#define FMLA(d, n, m) WORD $(0x4e20cc00 | (m)<<16 | (n)<<5 | (d))   // FMLA Vd.4S, Vn.4S, Vm.4S
#define FMLS(d, n, m) WORD $(0x4ea0cc00 | (m)<<16 | (n)<<5 | (d))   // FMLS Vd.4S, Vn.4S, Vm.4S
#define FADDP(d, n, m) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d))  // FADDP Vd.4S, Vn.4S, Vm.4S
#define FCMGT(d, n, m) WORD $(0x6ea0e400 | (m)<<16 | (n)<<5 | (d))  // FCMGT Vd.4S, Vn.4S, Vm.4S
#define BIC(d, n, m) WORD $(0x4e601c00 | (m)<<16 | (n)<<5 | (d))    // BIC Vd.16B, Vn.16B, Vm.16B
#define COPY(d, n) WORD $(0x4ea01c00 | (n)<<16 | (n)<<5 | (d))      // ORR Vd.16B, Vn.16B, Vn.16B
#define FNEG(d, n) WORD $(0x6ea0f800 | (n)<<5 | (d))                // FNEG Vd.4S, Vn.4S
#define FRINTN(d, n) WORD $(0x4e218800 | (n)<<5 | (d))              // FRINTN Vd.4S, Vn.4S
#define FCVTNS(d, n) WORD $(0x4e21a800 | (n)<<5 | (d))              // FCVTNS Vd.4S, Vn.4S
#define HALVE(d, n) WORD $(0x4f3f0400 | (n)<<5 | (d))               // SSHR Vd.4S, Vn.4S, #1
#define EXPONENT(d, n) WORD $(0x4f375400 | (n)<<5 | (d))            // SHL Vd.4S, Vn.4S, #23
#define IADD(d, n, m) WORD $(0x4ea08400 | (m)<<16 | (n)<<5 | (d))   // ADD Vd.4S, Vn.4S, Vm.4S
#define ISUB(d, n, m) WORD $(0x6ea08400 | (m)<<16 | (n)<<5 | (d))   // SUB Vd.4S, Vn.4S, Vm.4S
#define FMAXV(d, n) WORD $(0x6e30f800 | (n)<<5 | (d))               // FMAXV Sd, Vn.4S
#define FCVTL(d, n) WORD $(0x0e617800 | (n)<<5 | (d))               // FCVTL Vd.2D, Vn.2S
#define FCVTL2(d, n) WORD $(0x4e617800 | (n)<<5 | (d))              // FCVTL2 Vd.2D, Vn.4S
#define FMLAD(d, n, m) WORD $(0x4e60cc00 | (m)<<16 | (n)<<5 | (d))  // FMLA Vd.2D, Vn.2D, Vm.2D
#define FADDD(d, n, m) WORD $(0x4e60d400 | (m)<<16 | (n)<<5 | (d))  // FADD Vd.2D, Vn.2D, Vm.2D
#define FADDPD(d, n) WORD $(0x7e70d800 | (n)<<5 | (d))              // FADDP Dd, Vn.2D
#define FMULE(d, n, m) WORD $(0x4f809000 | (m)<<16 | (n)<<5 | (d))  // FMUL Vd.4S, Vn.4S, Vm.S[0]
#define FMLAE(d, n, m) WORD $(0x4f801000 | (m)<<16 | (n)<<5 | (d))  // FMLA Vd.4S, Vn.4S, Vm.S[0]
