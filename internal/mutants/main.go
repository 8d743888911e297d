package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/program"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

// opsOfRule is how many ops each rule is applied to, and opsWithArguments how many lose their
// arguments one by one.
const (
	opsOfRule        = 7
	opsWithArguments = 14
)

// corpus returns the known mutants and those of the rules, for ops that a seed draws.
func corpus(seed uint64) []mutant {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := known()
	apply := func(rules []rule) {
		for _, r := range rules {
			for _, op := range draw(rng, opsOfRule, r.fits) {
				if m := r.of(op); !slices.ContainsFunc(list, func(k mutant) bool { return k.name() == m.name() }) {
					list = append(list, m)
				}
			}
		}
	}
	apply(rules())
	for _, op := range draw(rng, opsWithArguments, nil) {
		list = append(list, argumentMutants(op)...)
	}
	apply(magnitudes())
	return list
}

// draw returns n ops that fit, of as many families as there are.
func draw(rng *rand.Rand, n int, fits func(opregistry.Handle) bool) []opregistry.Handle {
	byFamily := map[string][]opregistry.Handle{}
	for _, op := range ops.All() {
		if op.Name() != "barrier" && (fits == nil || fits(op)) {
			byFamily[family(op)] = append(byFamily[family(op)], op)
		}
	}
	families := slices.Sorted(maps.Keys(byFamily))
	rng.Shuffle(len(families), func(i, k int) { families[i], families[k] = families[k], families[i] })
	var drawn []opregistry.Handle
	for len(drawn) < n && len(byFamily) > 0 {
		for _, f := range families {
			if left := byFamily[f]; len(left) > 0 && len(drawn) < n {
				i := rng.IntN(len(left))
				drawn = append(drawn, left[i])
				byFamily[f] = slices.Delete(left, i, i+1)
			} else if len(left) == 0 {
				delete(byFamily, f)
			}
		}
	}
	return drawn
}

// outcome is what the kit said about a mutant.
type outcome struct {
	name, family, reason string
	changed              int64  // of a survivor: the calls whose results were wrong; −1 when it is not known
	equivalent           string // why a survivor is right, "" when that is not proved
}

// judge runs the kit on a mutant, and counts the wrong results of a survivor.
func judge(m mutant) (outcome, error) {
	reason, err := m.refusal()
	o := outcome{name: m.name(), family: family(m.impl.Op), reason: reason, changed: -1}
	if err != nil || reason != "" || m.changed == nil {
		return o, err
	}
	counted := m.counted()
	counted.changed.Store(0)
	counted.results.Store(0)
	if _, err := counted.refusal(); err != nil {
		return o, err
	}
	o.changed = counted.changed.Load()
	switch {
	case o.changed > 0:
	case m.free != nil && m.free.Load() == 0:
		o.equivalent = "the other arguments of each call allow no other value"
	case counted.results.Load() == 0:
		o.equivalent = "the op writes nothing"
	}
	return o, nil
}

func main() { program.Main("mutants", run) }

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(progress)
	seed := flags.Uint64("seed", 1, "what the ops of the rules are drawn from")
	only := flags.String("only", "", "only mutants whose name has this text")
	verbose := flags.Bool("v", false, "print why each mutant was refused")
	inC := flags.Bool("c", false, "judge mistakes in the kernels of examples/outtree_c, for which cc is needed, in place of those in Go")
	library := flags.String("library", "", "judge an op of this plugin only, and print why it is refused")
	op := flags.String("op", "", "the op of -library")
	jobs := flags.Int("j", goruntime.GOMAXPROCS(0), "how many mutants are judged at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *jobs < 1 {
		return fmt.Errorf("-j: given %d, want a number from 1", *jobs)
	}
	if *library != "" {
		return judgeLibrary(*library, *op, out)
	}
	if *inC {
		outcomes, err := judgeC(ctx, *only, *jobs, *verbose, progress)
		if err != nil {
			return err
		}
		return report(out, "kernels in C", outcomes)
	}
	chosen := slices.DeleteFunc(corpus(*seed), func(m mutant) bool { return !strings.Contains(m.name(), *only) })
	outcomes, err := judgeAll(ctx, chosen, *jobs, func(_ int, m mutant) (outcome, error) { return judge(m) }, func(i int, o outcome) { o.print(progress, i+1, len(chosen), *verbose) })
	if err != nil {
		return err
	}
	return report(out, fmt.Sprintf("seed %d", *seed), outcomes)
}

// judgeAll judges mutants, some of them at the same time by workers that have numbers, and calls
// show with each outcome in order.
func judgeAll[M interface{ name() string }](ctx context.Context, all []M, workers int, judge func(worker int, m M) (outcome, error), show func(i int, o outcome)) ([]outcome, error) {
	var (
		outcomes = make([]outcome, len(all))
		errs     = make([]error, len(all))
		judged   = make([]chan struct{}, len(all))
		next     atomic.Int64
		group    sync.WaitGroup
	)
	for i := range judged {
		judged[i] = make(chan struct{})
	}
	ctx, end := context.WithCancel(ctx)
	defer group.Wait()
	defer end()
	for worker := range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					outcomes[i], errs[i] = judge(worker, all[i])
				}
				close(judged[i])
			}
		})
	}
	for i, m := range all {
		if <-judged[i]; errs[i] != nil {
			return nil, fmt.Errorf("%s: %w", m.name(), errs[i])
		}
		show(i, outcomes[i])
	}
	return outcomes, nil
}

// print prints a mutant that passed, and others if all are wanted.
func (o outcome) print(w io.Writer, i, n int, all bool) {
	switch {
	case o.reason == "":
		fmt.Fprintf(w, "%d of %d: %s passed; %s\n", i, n, o.name, o.explain())
	case all:
		fmt.Fprintf(w, "%d of %d: %s: %s\n", i, n, o.name, plaintext.Lines(o.reason, "  "))
	}
}

// explain says what is known about a survivor.
func (o outcome) explain() string {
	switch {
	case o.equivalent != "":
		return o.equivalent
	case o.changed == 0:
		return "its results were right in every case"
	case o.changed > 0:
		return fmt.Sprintf("its results differed in %d calls, by less than the bounds", o.changed)
	}
	return "how it differs is not known"
}

// report prints how many mutants of each family were refused, and the survivors.
func report(out io.Writer, title string, outcomes []outcome) error {
	type count struct {
		ops                       map[string]bool
		all, survived, equivalent int
	}
	counts := map[string]*count{}
	names := map[string]bool{}
	total := count{}
	for _, o := range outcomes {
		c := counts[o.family]
		if c == nil {
			c = &count{ops: map[string]bool{}}
			counts[o.family] = c
		}
		op, _, _ := strings.Cut(o.name, ":")
		c.ops[op], names[op] = true, true
		c.all++
		total.all++
		switch {
		case o.equivalent != "":
			c.equivalent++
			total.equivalent++
		case o.reason == "":
			c.survived++
			total.survived++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| family | ops | mutants | equivalent | refused |\n|---|---:|---:|---:|---:|\n", title)
	for _, f := range slices.Sorted(maps.Keys(counts)) {
		c := counts[f]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", f, len(c.ops), c.all, c.equivalent, c.all-c.equivalent-c.survived)
	}
	wrong := total.all - total.equivalent
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d (%.1f %%) |\n", len(names), total.all, total.equivalent, wrong-total.survived, 100*float64(wrong-total.survived)/float64(max(wrong, 1)))
	for _, o := range outcomes {
		switch {
		case o.equivalent != "":
			fmt.Fprintf(&b, "\nequivalent: %s; %s", o.name, o.equivalent)
		case o.reason == "":
			fmt.Fprintf(&b, "\nsurvived: %s; %s", o.name, o.explain())
		}
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}
