package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/hftokenizers"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// tokenizeOptions are the flags of tokenize.
type tokenizeOptions struct {
	input   string
	vocab   int
	size    int
	rounds  int
	pattern string
	cpu     bool
}

// tokenize measures a tokenizer that is trained on the Go standard library's sources, or on other
// text: how fast it is trained, and how fast it encodes on one thread beside
// @huggingface/tokenizers, which must give the same ids. The figures are medians over the rounds.
func tokenize(ctx context.Context, args []string, out, progress io.Writer) error {
	var o tokenizeOptions
	flags := newFlags("tokenize", progress)
	flags.StringVar(&o.input, "input", "", "a file, directory or glob of text (default: the Go standard library's sources)")
	flags.IntVar(&o.vocab, "vocab-size", 32000, "tokens")
	flags.IntVar(&o.size, "bytes", 8<<20, "bytes of the text that are encoded, from its beginning")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds")
	flags.StringVar(&o.pattern, "pattern", "llama3", "the expression that cuts text into words")
	flags.BoolVar(&o.cpu, "cpu", false, "measure CPU time, for machines that are busy")
	if err := parse(flags, args); err != nil {
		return err
	}
	now := opbench.Elapsed()
	if o.cpu {
		var err error
		if now, err = cpuTime(); err != nil {
			return fmt.Errorf("-cpu: %w", err)
		}
	}
	texts, trained, learned, took, err := trainTokenizer(ctx, o, now)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tokenize-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // it has nothing that is read again
	file := filepath.Join(work, "tokenizer.json")
	if err := os.WriteFile(file, learned.JSON, 0o600); err != nil {
		return err
	}
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	ours, theirs, err := encode(ctx, o, now, file, texts)
	if err != nil && !errors.Is(err, hftokenizers.ErrAbsent) {
		return err
	}
	unit := "MB/s"
	if o.cpu {
		unit = "MB per second of CPU time"
	}
	t := plaintext.NewTable(table.Row{"what", unit, ""}, 2)
	rate := func(bytes int, seconds float64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6/seconds) }
	t.AppendRow(table.Row{"train", rate(int(trained), took.Seconds()), fmt.Sprintf("%d tokens from %d bytes, %.0f GB/hour", learned.Tokens, trained, float64(trained)/1e9*3600/took.Seconds())})
	t.AppendRow(table.Row{"encode, one thread", rate(size, ours), ""})
	if err == nil {
		t.AppendRow(table.Row{"@huggingface/tokenizers", rate(size, theirs), fmt.Sprintf("the same ids, %.1f times as long", theirs/ours)})
	} else {
		t.AppendRow(table.Row{"@huggingface/tokenizers", "-", err})
	}
	_, err = fmt.Fprintf(out, "%s, %d rounds, %d bytes\n%s\n", machine(), o.rounds, size, plaintext.Render(out, t))
	return err
}

// trainTokenizer returns a beginning of the text in parts, the size of all of it, and what was
// learned from it in what time.
func trainTokenizer(ctx context.Context, o tokenizeOptions, now opbench.Clock) (texts [][]byte, size int64, r *trainer.Result, took time.Duration, err error) {
	c, err := corpus.Find(ctx, corpus.Settings{Key: "-input", Path: o.input})
	if err != nil {
		return nil, 0, nil, 0, err
	}
	config := trainer.Default()
	config.VocabSize, config.Pattern = o.vocab, o.pattern
	t, err := trainer.New(config)
	if err != nil {
		return nil, 0, nil, 0, err
	}
	left := o.size
	begin := now()
	err = c.Read(ctx, func(p corpus.Piece) error {
		if left > 0 {
			text := p.Text[:min(left, len(p.Text))]
			texts = append(texts, slices.Clone(text))
			left -= len(text)
		}
		t.AddText(p.Text)
		return nil
	})
	if err != nil {
		return nil, 0, nil, 0, err
	}
	size = t.Bytes()
	r, err = t.Train(ctx)
	return texts, size, r, now() - begin, err
}

// encode returns the median seconds that encoding takes here and there.
func encode(ctx context.Context, o tokenizeOptions, now opbench.Clock, file string, texts [][]byte) (ours, theirs float64, err error) {
	tok, err := tokenizer.Load(file)
	if err != nil {
		return 0, 0, err
	}
	var here, there []float64
	ids := make([][]int32, len(texts))
	for range o.rounds {
		debug.FreeOSMemory()
		begin := now()
		for i, text := range texts {
			ids[i] = tok.Encode(ids[i][:0], text)
		}
		here = append(here, (now() - begin).Seconds())
		r, err := hftokenizers.Encode(ctx, file, texts)
		if errors.Is(err, hftokenizers.ErrAbsent) {
			return stats.Median(here), 0, err
		}
		if err != nil {
			return 0, 0, err
		}
		took := r.Took
		if o.cpu {
			took = r.CPU
		}
		there = append(there, took.Seconds())
		for i := range ids {
			if !slices.Equal(ids[i], r.IDs[i]) {
				return 0, 0, fmt.Errorf("the ids of text %d differ from those of the peer", i)
			}
		}
	}
	return stats.Median(here), stats.Median(there), nil
}
