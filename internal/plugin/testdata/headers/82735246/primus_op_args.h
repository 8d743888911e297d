/* primus_op_args.h of commit 82735246: some of its ops. */

#define PRIMUS_RMSNORM_FWD_INPUT 0u /* tensor */
#define PRIMUS_RMSNORM_FWD_WEIGHT 1u /* tensor */
#define PRIMUS_RMSNORM_FWD_OUTPUT 2u /* tensor */
#define PRIMUS_RMSNORM_FWD_RSIGMA 3u /* tensor */
#define PRIMUS_RMSNORM_FWD_EPS 4u /* float */
#define PRIMUS_RMSNORM_FWD_ZERO_CENTERED_GAMMA 5u /* int */
#define PRIMUS_RMSNORM_FWD_N_ARGS 6u
#define PRIMUS_RMSNORM_FWD_LAYOUT UINT64_C(0xe46d47ae59628598)

#define PRIMUS_ALL_REDUCE_INPUT 0u /* tensor */
#define PRIMUS_ALL_REDUCE_OUTPUT 1u /* tensor */
#define PRIMUS_ALL_REDUCE_REDUCTION 2u /* int */
#define PRIMUS_ALL_REDUCE_RANK 3u /* int */
#define PRIMUS_ALL_REDUCE_RANKS 4u /* int */
#define PRIMUS_ALL_REDUCE_N_ARGS 5u
#define PRIMUS_ALL_REDUCE_LAYOUT UINT64_C(0x06f85daff57ed58a)
