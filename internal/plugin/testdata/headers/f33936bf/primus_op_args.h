/* primus_op_args.h of commit f33936bf: some of its ops. */

#define PRIMUS_RMSNORM_FWD_INPUT 0u /* tensor */
#define PRIMUS_RMSNORM_FWD_WEIGHT 1u /* tensor */
#define PRIMUS_RMSNORM_FWD_OUTPUT 2u /* tensor */
#define PRIMUS_RMSNORM_FWD_RSIGMA 3u /* tensor */
#define PRIMUS_RMSNORM_FWD_EPS 4u /* float */
#define PRIMUS_RMSNORM_FWD_ZERO_CENTERED_GAMMA 5u /* int */
#define PRIMUS_RMSNORM_FWD_N_ARGS 6u
#define PRIMUS_RMSNORM_FWD_LAYOUT UINT64_C(0xe46d47ae59628598)

#define PRIMUS_DEQUANTIZE_INPUT_DATA 0u /* tensor */
#define PRIMUS_DEQUANTIZE_INPUT_SCALE_INV 1u /* tensor */
#define PRIMUS_DEQUANTIZE_INPUT_COLUMNWISE_DATA 2u /* tensor */
#define PRIMUS_DEQUANTIZE_INPUT_COLUMNWISE_SCALE_INV 3u /* tensor */
#define PRIMUS_DEQUANTIZE_INPUT_SCALE 4u /* tensor */
#define PRIMUS_DEQUANTIZE_INPUT_AMAX 5u /* tensor */
#define PRIMUS_DEQUANTIZE_SCALING 6u /* int */
#define PRIMUS_DEQUANTIZE_BLOCK2_D 7u /* int */
#define PRIMUS_DEQUANTIZE_OUTPUT 8u /* tensor */
#define PRIMUS_DEQUANTIZE_N_ARGS 9u
#define PRIMUS_DEQUANTIZE_LAYOUT UINT64_C(0xde6bd60423de2bc5)
