package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/health"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/rundir/tracking"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/runtime/backend"
)

// Args are the parameters of a native trainer, with Megatron's names where it has one.
type Args struct {
	model.Config
	optim.OptimizerConfig
	optim.LossScaleConfig
	optim.EarlyStoppingConfig
	health.SpikeConfig
	optim.Schedule // an lr_decay_iters of 0 means train_iters
	world.Parallel
	stages.Pipeline
	weights.Start
	data.SourceConfig
	data.TokenizerConfig
	model.MaskConfig
	tracking.Trackers
	posttrain.Tuning
	EntropyFusion

	TrainIters      int             `param:"train_iters"`
	GlobalBatchSize int             `param:"global_batch_size"`
	MicroBatchSize  int             `param:"micro_batch_size"`
	RampupBatchSize optim.BatchRamp `param:"rampup_batch_size"`
	Seed            int64           `param:"seed"`

	LogInterval    int     `param:"log_interval"`
	EvalInterval   int     `param:"eval_interval"` // 0 means no evaluation
	EvalIters      int     `param:"eval_iters"`
	FinalWindows   int     `param:"final_eval_windows"` // 0 means as many as eval_iters
	Save           string  `param:"save"`               // directory of checkpoints; "" means that of the run
	SaveInterval   int     `param:"save_interval"`
	RetainInterval int     `param:"save_retain_interval"`  // Megatron's name of keep_every
	ExitInterval   int     `param:"exit_interval"`         // a run ends at a multiple of it; 0 means that none does
	ExitDuration   float64 `param:"exit_duration_in_mins"` // a run ends with the step in which so many minutes are over; 0 means that none does
	SaveInitial    bool    `param:"save_initial"`
	AsyncSave      bool    `param:"async_save"`              // training goes on while a copy of its state is written
	KeepLast       int     `param:"keep_last"`               // checkpoints that a save leaves; 0 means 2
	KeepEvery      int     `param:"keep_every"`              // a save leaves those of steps that are multiples; 0 means none
	KeepBest       int     `param:"keep_best"`               // a save leaves so many with the lowest validation losses
	Load           string  `param:"load"`                    // "" continues from the run's own checkpoints, "none" starts a new run
	AllowNonFinite bool    `param:"allow_nonfinite_weights"` // loads and saves weights that are NaN or infinite
	DumpBatches    int     `param:"dump_batches"`

	// Device is the device that trains, such as opencl:0; "" means the one that STEPMESH_BACKEND
	// names, or the CPU. The program has chosen it by Needs.
	Device string `param:"device"`

	DisableTensorboard bool `param:"disable_tensorboard"`

	VocabDivisor int `param:"make_vocab_size_divisible_by"` // vocab_size is rounded up to a multiple; 0 means 1

	SamplePrompt string `param:"sample_prompt"` // the beginning of the text generated at the end; "" means words of the corpus

	ModelName string `param:"model_name"`

	tokenizer tokenizer.Tokenizer
	stage     string

	planned     *stages.Plan // nil for one stage, and before it was made
	evalWindows int          // of an evaluation: eval_iters of micro_batch_size, also where ranks have smaller micro batches
}

// loadNone is the value of load that starts a new run.
const loadNone = "none"

// newArgs converts the arguments of a run to Args and checks them.
func newArgs(tc *backend.TrainContext) (*Args, error) {
	a := &Args{OptimizerConfig: optim.DefaultConfig(), SpikeConfig: health.DefaultConfig(), LossScaleConfig: optim.DefaultLossScale(), stage: cmp.Or(tc.Stage, stagePretrain)}
	if err := architecture.WriteOutWindows(tc.Args); err != nil {
		return nil, err
	}
	if _, err := document.Decode(tc.Args.Map(), a); err != nil {
		return nil, err
	}
	if err := a.adoptWeights(tc); err != nil {
		return nil, err
	}
	tokenizerErr := a.loadTokenizer(tc)
	if tokenizerErr != nil && a.VocabSize == 0 { // which would be another fault
		return nil, describe(tc, tokenizerErr)
	}
	a.padVocab()
	if a.LRDecayIters == 0 {
		a.LRDecayIters = max(a.TrainIters, a.LRWarmupIters)
	}
	if a.KeepEvery == 0 {
		a.KeepEvery = a.RetainInterval
	}
	if a.ModelName == "" {
		a.ModelName = tc.Module.Model
	}
	refused, err := refusals(tc, a)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(a.validate(), a.Trackers.Validate(variables(tc)), a.validateStage(), a.checkDevice(tc), tokenizerErr, refused); err != nil {
		return nil, describe(tc, err)
	}
	a.evalWindows = a.EvalIters * a.MicroBatchSize
	return a, nil
}

// adoptWeights takes the architecture from the folder of load_hf, whose weights it compares with
// what that describes, and its tokenizer if none is given.
func (a *Args) adoptWeights(tc *backend.TrainContext) (err error) {
	if a.LoadHF == "" {
		return nil
	}
	folder, err := weights.Open(context.Background(), a.LoadHF, weights.Settings{})
	if err != nil {
		return describe(tc, fmt.Errorf("load_hf: %w", err))
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	given := func(param string) bool {
		v, ok := tc.Args.Lookup(param)
		return ok && !v.IsNull()
	}
	if err := folder.Adopt(&a.Config, given); err != nil {
		return describe(tc, err)
	}
	if _, err := folder.Tensors(); err != nil {
		return describe(tc, fmt.Errorf("load_hf: %w", err))
	}
	if a.TokenizerConfig == (data.TokenizerConfig{}) {
		if a.tokenizer, err = folder.Tokenizer(); err != nil {
			return describe(tc, fmt.Errorf("load_hf: %w", err))
		}
	}
	if v := a.VocabSize; v > 0 {
		if a.padVocab(); a.VocabSize != v {
			return describe(tc, fmt.Errorf("make_vocab_size_divisible_by: given %d, want a divisor of the vocabulary of load_hf, %d", a.VocabDivisor, v))
		}
	}
	return nil
}

// padVocab rounds vocab_size up to a multiple of make_vocab_size_divisible_by.
func (a *Args) padVocab() {
	if d := a.VocabDivisor; d > 1 && a.VocabSize > 0 && a.VocabSize <= math.MaxInt-d {
		a.VocabSize = (a.VocabSize + d - 1) / d * d
	}
}

// validate returns every fault; each begins with the key it is about.
func (a *Args) validate() error {
	if faults := architecture.Representable(a); faults != nil {
		return errors.Join(faults...)
	}
	faults := []error{a.Config.Validate(), a.OptimizerConfig.Validate(), a.LossScaleConfig.Validate(), a.EarlyStoppingConfig.Validate(), a.SpikeConfig.Validate(), a.Parallel.Validate(), a.Schedule.Validate(), a.SourceConfig.Validate(), a.Tuning.Validate(), a.EntropyFusion.validate()}
	atLeast := func(key string, v, least int) {
		if v < least {
			faults = append(faults, fmt.Errorf("%s: given %d, want a number >= %d", key, v, least))
		}
	}
	atLeast("make_vocab_size_divisible_by", a.VocabDivisor, 0)
	atLeast("train_iters", a.TrainIters, 0)
	atLeast("micro_batch_size", a.MicroBatchSize, 1)
	atLeast("global_batch_size", a.GlobalBatchSize, 1)
	atLeast("log_interval", a.LogInterval, 1)
	atLeast("eval_interval", a.EvalInterval, 0)
	atLeast("final_eval_windows", a.FinalWindows, 0)
	atLeast("save_interval", a.SaveInterval, 0)
	atLeast("exit_interval", a.ExitInterval, 0)
	if !(a.ExitDuration >= 0) || math.IsInf(a.ExitDuration, 0) {
		faults = append(faults, fmt.Errorf("exit_duration_in_mins: given %v, want a number of minutes >= 0", a.ExitDuration))
	}
	atLeast("keep_last", a.KeepLast, 0)
	atLeast("keep_every", a.KeepEvery, 0)
	atLeast("keep_best", a.KeepBest, 0)
	if r := a.RetainInterval; r != 0 && r != a.KeepEvery {
		faults = append(faults, fmt.Errorf("save_retain_interval: given %d, and keep_every is %d: want one of them", r, a.KeepEvery))
	}
	if a.KeepBest > 0 && (a.EvalInterval == 0 || a.SaveInterval%a.EvalInterval != 0 || a.ValidFraction == 0 && a.ValidDataPath == "") {
		faults = append(faults, fmt.Errorf("keep_best: given %d, want 0, or validation text and a save_interval that is a multiple of eval_interval: the validation losses of checkpoints decide", a.KeepBest))
	}
	atLeast("dump_batches", a.DumpBatches, 0)
	if a.EvalInterval > 0 {
		atLeast("eval_iters", a.EvalIters, 1)
	}
	if a.EMADecay > 0 && a.Adapts() {
		faults = append(faults, errors.New("ema_decay: given a decay, want 0 with lora_rank"))
	}
	if a.Sharded && a.Optimizer == optim.Muon {
		faults = append(faults, errors.New("use_distributed_optimizer: given true, want false with optimizer muon, which needs whole matrices"))
	}
	if a.Patience > 0 && (a.EvalInterval == 0 || a.ValidFraction == 0 && a.ValidDataPath == "") {
		faults = append(faults, errors.New("early_stopping_patience: given no evaluation, want an eval_interval and validation text"))
	}
	if a.MicroBatchSize > 0 {
		faults = append(faults, a.RampupBatchSize.Validate(a.GlobalBatchSize, a.MicroBatchSize))
	}
	if a.MicroBatchSize > 0 && a.GlobalBatchSize%a.MicroBatchSize != 0 {
		faults = append(faults, fmt.Errorf("global_batch_size: given %d, want a multiple of micro_batch_size %d", a.GlobalBatchSize, a.MicroBatchSize))
	}
	if n := a.ExpertRanks(); n > 1 && (a.NumExperts == 0 || a.NumExperts%n != 0) {
		faults = append(faults, fmt.Errorf("expert_model_parallel_size: given %d, want a divisor of num_experts %d", n, a.NumExperts))
	}
	if n := a.TensorRanks(); n > 1 {
		if heads, groups := a.NumAttentionHeads, a.Groups(); heads%n != 0 || groups%n != 0 || a.NumExperts == 0 && a.FFNHiddenSize%n != 0 {
			faults = append(faults, fmt.Errorf("tensor_model_parallel_size: given %d, want a divisor of num_attention_heads %d, num_query_groups %d and ffn_hidden_size %d", n, heads, groups, a.FFNHiddenSize))
		}
		if a.QKNormWhole {
			faults = append(faults, fmt.Errorf("qk_layernorm_whole: given true, want false with tensor_model_parallel_size %d: a rank has some of the heads, and the norm is that of all", n))
		}
		if a.VocabSize > 0 && a.VocabSize < n {
			faults = append(faults, fmt.Errorf("tensor_model_parallel_size: given %d, want at most vocab_size %d", n, a.VocabSize))
		}
		if a.SequenceParallel && a.SeqLength%n != 0 {
			faults = append(faults, fmt.Errorf("sequence_parallel: given true, want false, or a seq_length that tensor_model_parallel_size %d divides, in place of %d", n, a.SeqLength))
		}
		if a.SequenceParallel && a.HiddenDropout > 0 && a.SeqLength/n*a.HiddenSize%4 != 0 {
			faults = append(faults, fmt.Errorf("sequence_parallel: given true, want false with hidden_dropout where a rank has a part of a sequence of %d·%d elements, which is not a multiple of 4", a.SeqLength/n, a.HiddenSize))
		}
		if a.AttentionDropout > 0 && (a.SeqLength%2 != 0 || a.ResetAttention || a.tunes() && a.Packing) {
			faults = append(faults, fmt.Errorf("tensor_model_parallel_size: given %d, want 1 with attention_dropout where sequences are packed (reset_attention_mask, packing) or seq_length is odd", n))
		}
		if a.LoRA.Dropout > 0 && a.Adapts() {
			faults = append(faults, fmt.Errorf("lora_dropout: given %v, want 0 with tensor_model_parallel_size %d", a.LoRA.Dropout, n))
		}
		if a.NumExperts > 0 && !a.SequenceParallel {
			faults = append(faults, fmt.Errorf("sequence_parallel: given false, want true with num_experts %d and tensor_model_parallel_size %d, as in Megatron", a.NumExperts, n))
		}
	}
	faults = append(faults, a.validatePipeline(), a.validateContext())
	if !(a.DistributedTimeout >= 0) {
		faults = append(faults, fmt.Errorf("distributed_timeout_minutes: given %v, want a number >= 0", a.DistributedTimeout))
	}
	return errors.Join(faults...)
}

// microBatches is the number of micro batches per step.
func (a *Args) microBatches() int { return a.GlobalBatchSize / a.MicroBatchSize }
