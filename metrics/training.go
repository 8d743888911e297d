package metrics

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// Training exports the progress of a run. It observes the trainer.
type Training struct {
	set       *set
	peakFLOPS float64
	run       backend.Run
	exemplar  stepExemplar

	info, patches                                                   *prometheus.GaugeVec
	running, failed, stalled, diverged, lastStep, steps, flops, mfu prometheus.Gauge
	stalls, judgements                                              *prometheus.CounterVec
	step, loss, validLoss, learningRate, gradNorm, tokensPerSecond  prometheus.Gauge
	checkpointStep, checkpointTime, deviceMemory                    prometheus.Gauge
	tokens, nonFinite, checkpoints                                  prometheus.Counter
	deviceBusy, deviceQueue, deviceCommands                         prometheus.Counter
	stepDuration                                                    prometheus.Histogram
	ranks, slowestRank, skew                                        prometheus.Gauge
	rankCompute                                                     *prometheus.GaugeVec
	wait                                                            prometheus.Counter
	sentBytes, sentSeconds                                          *prometheus.CounterVec
	traffic                                                         []backend.Traffic // as it was counted last
}

// TrainingSettings are the optional settings of NewTraining. The zero value is usable.
type TrainingSettings struct {
	// PeakFLOPS is the peak rate of the devices of this process in floating-point operations per
	// second. 0 means unknown; the utilisation is then NaN.
	PeakFLOPS float64
}

// NewTraining registers the metrics of training. Values that are not known yet are NaN. If one of
// the names is taken, it registers none and returns the error of reg.
func NewTraining(reg prometheus.Registerer, s TrainingSettings) (*Training, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "primus_" + name, Help: help})
	}
	info := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "primus_" + name, Help: help}, labels)
	}
	counters := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "primus_" + name, Help: help}, []string{"op"})
	}
	t := &Training{
		peakFLOPS:       s.PeakFLOPS,
		info:            info("train_model_info", "The model that is trained.", "model"),
		patches:         info("patch_applied_info", "A patch that was applied to the training backend.", "patch", "phase"),
		running:         gauge("train_running", "1 from the beginning of training to its end, however it ends."),
		failed:          gauge("train_failed", "1 after training ended with an error other than an interrupt."),
		stalled:         gauge("train_stalled", "1 while training hangs: its phase lasts longer than --hang-timeout, and ten times as long as usual."),
		stalls:          prometheus.NewCounterVec(prometheus.CounterOpts{Name: "primus_train_stalls_total", Help: "Times that training hung, by phase."}, []string{"phase"}),
		diverged:        gauge("train_diverged", "1 from when training has diverged until it recovers, also after its end; see on_spike."),
		judgements:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "primus_train_judgements_total", Help: "Spikes of loss or gradient norm that trained on (spike), were skipped, or sent the run back (rewound); and how often it diverged and recovered."}, []string{"change"}),
		step:            gauge("train_step", "Last finished step; a run that continues from a checkpoint begins with its step."),
		steps:           gauge("train_steps", "The last step of the run."),
		lastStep:        gauge("train_last_step_timestamp_seconds", "Time at which the last step was finished, or training began."),
		loss:            gauge("train_loss", "Training loss of the last step, in nats per token."),
		validLoss:       gauge("train_valid_loss", "Last validation loss, in nats per token."),
		learningRate:    gauge("train_learning_rate", "Learning rate of the last step."),
		gradNorm:        gauge("train_grad_norm", "Global gradient norm of the last step, before clipping."),
		tokensPerSecond: gauge("train_tokens_per_second", "Throughput of the last step."),
		flops:           gauge("train_flops_per_second", "Floating-point operations per second of the last step, as the model requires them; for a Python framework, what it reports for a device, times the number of devices."),
		mfu:             gauge("train_mfu_ratio", "Floating-point operations per second of the last step as a fraction of the peak of the devices, which --peak-tflops sets."),
		deviceMemory:    gauge("train_device_memory_bytes", "Memory of the device in use after the last step, or what a Python framework reports of its devices."),
		deviceBusy:      counter("train_device_busy_seconds_total", "Time in which the device ran commands of steps: its rate is the share of the time in which the device is busy."),
		deviceQueue:     counter("train_device_queue_seconds_total", "Time that commands of steps waited in queues of the device, summed over commands."),
		deviceCommands:  counter("train_device_commands_total", "Commands of steps that the device has completed."),
		tokens:          counter("train_tokens_total", "Tokens that this process trained on."),
		nonFinite:       counter("train_nonfinite_total", "Steps whose loss or gradient was NaN or infinite; such a step ends a run of the native backend, unless on_spike is skip or rewind."),
		checkpoints:     counter("checkpoint_saves_total", "Checkpoints saved by this process."),
		checkpointStep:  gauge("checkpoint_step", "Step of the last checkpoint of this process."),
		checkpointTime:  gauge("checkpoint_timestamp_seconds", "When the last checkpoint of this process was complete; time() minus this is its age."),
		ranks:           gauge("train_ranks", "Ranks that train together."),
		slowestRank:     gauge("train_slowest_rank", "The rank that computed longest in the last step."),
		skew:            gauge("train_rank_skew_ratio", "How far the time of the slowest rank in the last step is above the mean of all ranks, as a fraction of the mean."),
		rankCompute:     info("train_rank_compute_seconds", "Time that a rank, of the first 64, computed in the last step, without waiting for others.", "of_rank"),
		wait:            counter("train_wait_seconds_total", "Time that this rank waited for others in steps: the communication that was not hidden."),
		sentBytes:       counters("collective_sent_bytes_total", "Bytes that this rank passed to calls of a collective."),
		sentSeconds:     counters("collective_seconds_total", "Time in calls of a collective, hidden or not."),
		stepDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "primus_train_step_duration_seconds", Help: "Duration of steps, without evaluation and checkpoints; exemplars carry the step.",
			Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 18), // 1 ms to 131 s
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}),
	}
	for _, phase := range backend.Phases() {
		t.stalls.WithLabelValues(phase.String())
	}
	for _, change := range backend.HealthChanges() {
		t.judgements.WithLabelValues(string(change))
	}
	unknown := []prometheus.Gauge{
		t.step, t.steps, t.lastStep, t.loss, t.validLoss, t.learningRate, t.gradNorm, t.tokensPerSecond, t.flops, t.mfu, t.checkpointStep, t.checkpointTime, t.deviceMemory,
		t.ranks, t.slowestRank, t.skew,
	}
	for _, g := range unknown {
		g.Set(math.NaN())
	}
	collectors := []prometheus.Collector{t.info, t.patches, t.running, t.failed, t.stalled, t.stalls, t.diverged, t.judgements, t.tokens, t.nonFinite, t.checkpoints, t.stepDuration, t.rankCompute, t.wait, t.sentBytes, t.sentSeconds, t.deviceBusy, t.deviceQueue, t.deviceCommands}
	for _, g := range unknown {
		collectors = append(collectors, g)
	}
	var err error
	if t.set, err = register(reg, "training", collectors...); err != nil {
		return nil, err
	}
	return t, nil
}

// Close unregisters the metrics. Further calls do nothing.
func (t *Training) Close() { t.set.close() }

// RunStarted records the model and the first step of the run.
func (t *Training) RunStarted(r backend.Run) {
	t.run = r
	t.info.WithLabelValues(r.Model).Set(1)
	t.running.Set(1)
	t.failed.Set(0)
	t.step.Set(float64(r.FirstStep - 1))
	t.steps.Set(float64(r.Steps))
	t.lastStep.SetToCurrentTime()
}

// StepDone records a step.
func (t *Training) StepDone(s backend.Step) {
	t.step.Set(float64(s.Step))
	if s.Steps > 0 {
		t.steps.Set(float64(s.Steps))
	}
	t.lastStep.SetToCurrentTime()
	t.loss.Set(s.Loss)
	t.learningRate.Set(s.LR)
	t.gradNorm.Set(s.GradNorm)
	t.tokensPerSecond.Set(s.TokensPerSecond)
	t.tokens.Add(float64(s.Tokens))
	t.exemplar.set(s.Step)
	t.stepDuration.(prometheus.ExemplarObserver).ObserveWithExemplar(s.Duration.Seconds(), t.exemplar.labels())
	if s.ValidLoss != nil {
		t.validLoss.Set(*s.ValidLoss)
	}
	if !finite(s.Loss) || !finite(s.GradNorm) {
		t.nonFinite.Inc()
	}
	if s.MemoryBytes > 0 {
		t.deviceMemory.Set(float64(s.MemoryBytes))
	}
	if s.Device != nil {
		t.deviceBusy.Add(s.Device.Busy.Seconds())
		t.deviceQueue.Add(s.Device.Queued.Seconds())
		t.deviceCommands.Add(float64(s.Device.Commands))
	}
	if s.Ranks != nil {
		t.ranksDone(s.Ranks)
	}
	flops := t.run.FLOPsPerToken * s.TokensPerSecond
	if s.TFLOPSPerDevice > 0 {
		flops = s.TFLOPSPerDevice * 1e12 * float64(max(t.run.Devices, 1))
	}
	if flops > 0 {
		t.flops.Set(flops)
		if t.peakFLOPS > 0 {
			t.mfu.Set(flops / t.peakFLOPS)
		}
	}
}

// maxRanks is how many ranks have a series of their own. Of more ranks the slowest one and the skew
// say what is needed.
const maxRanks = 64

// ranksDone records how ranks spent a step.
func (t *Training) ranksDone(r *backend.RankTimes) {
	t.ranks.Set(float64(len(r.Computed)))
	slowest, skew := r.Slowest()
	t.slowestRank.Set(float64(slowest))
	t.skew.Set(skew)
	t.wait.Add(r.Waited.Seconds())
	for i, d := range r.Computed[:min(len(r.Computed), maxRanks)] {
		t.rankCompute.WithLabelValues(strconv.Itoa(i)).Set(d.Seconds())
	}
	for i, now := range r.Traffic {
		if i < len(t.traffic) {
			now.Bytes -= t.traffic[i].Bytes
			now.Time -= t.traffic[i].Time
		}
		t.sentBytes.WithLabelValues(now.Op).Add(float64(now.Bytes))
		t.sentSeconds.WithLabelValues(now.Op).Add(now.Time.Seconds())
	}
	t.traffic = r.Traffic
}

// Stalled records that training hangs.
func (t *Training) Stalled(s backend.Stall) {
	t.stalled.Set(1)
	t.stalls.WithLabelValues(s.Phase.String()).Inc()
}

// Resumed records that it goes on.
func (t *Training) Resumed() { t.stalled.Set(0) }

// Judged records a spike, and whether training has diverged.
func (t *Training) Judged(j backend.Judgement) {
	t.judgements.WithLabelValues(string(j.Change)).Inc()
	switch j.Change {
	case backend.HealthDiverged:
		t.diverged.Set(1)
	case backend.HealthRecovered, backend.HealthRewound:
		t.diverged.Set(0)
	case backend.HealthSpike, backend.HealthSkipped:
	}
}

// CheckpointSaved records a checkpoint.
func (t *Training) CheckpointSaved(step int) {
	t.checkpoints.Inc()
	t.checkpointStep.Set(float64(step))
	t.checkpointTime.SetToCurrentTime()
}

// PatchesApplied records the patches of a phase.
func (t *Training) PatchesApplied(phase string, ids []string) {
	for _, id := range ids {
		t.patches.WithLabelValues(id, phase).Set(1)
	}
}

// RunEnded records the end of the run, whether it failed, and whether a step was not finite. The
// last values remain.
func (t *Training) RunEnded(r backend.Result) {
	t.running.Set(0)
	if r.Err != nil && !errors.Is(r.Err, backend.ErrInterrupted) {
		t.failed.Set(1)
	}
	if errors.Is(r.Err, backend.ErrNonFinite) {
		t.nonFinite.Inc()
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

var (
	_ backend.Observer           = (*Training)(nil)
	_ backend.CheckpointObserver = (*Training)(nil)
	_ backend.PatchObserver      = (*Training)(nil)
	_ backend.StallObserver      = (*Training)(nil)
	_ backend.HealthObserver     = (*Training)(nil)
)
