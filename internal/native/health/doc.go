// Package health judges the losses and gradient norms of a training run.
//
// # The rule
//
// A Monitor keeps the last spike_window losses and the logarithms of the last spike_window gradient
// norms, without those that it judged to be spikes. Let m be the median of such a window, d the
// median of the distances from m (the MAD), σ = 1.4826·d, which is the standard deviation of normal
// numbers, and L the loss of guessing: ln(vocab_size), or ln 2 in stage dpo. With k for
// spike_threshold,
//
//	a loss is a spike if           loss > m + max(k·σ, L/20)
//	a gradient norm is a spike if  ln(norm) > m + max(k·σ, ln 10), and norm > clip_grad
//
// While a window has fewer than 8 numbers, a loss is a spike above twice the largest of them and L,
// and a gradient norm above 100 times the largest. NaN and infinities always are one.
//
// Training has diverged when 8 of the last 16 losses were spikes, or when the median of the losses
// is L/5 above the lowest one that it has had, which is L at the start. It has recovered when none
// of the last 16 losses was a spike and the median has come back below that.
//
// Only rises count. A loss that falls, as at the start, leaves a median above itself.
//
// # Concurrency
//
// A Monitor belongs to one goroutine.
package health
