package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// cMutant is a C source with one mistake.
type cMutant struct {
	op, rule string
	source   string
}

func (m cMutant) name() string { return m.op + ":" + m.rule }

// cRules are mistakes in the kernels of examples/outtree_c: the first text becomes the second one
// in each place where it stands.
var cRules = [][2]string{
	{"i < cols;", "i < cols - 1;"},
	{"i < cols;", "i <= cols;"},
	{"i < cols;", "i < cols / 8 * 8;"},
	{"i < cols;", "i < (cols < 1024 ? cols : 1024);"},
	{"r < n;", "r < n - 1;"},
	{"r < n;", "r <= n;"},
	{"r < n;", "r < (n < 1000 ? n : 1000);"},
	{"int64_t i = 0;", "int64_t i = 1;"},
	{"double sum = 0;", "static double sum = 0;"},
	{"double mean = 0;", "static double mean = 0;"},
	{"double sum = 0;", "double sum = 1e-3;"},
	{" += ", " = "},
	{" += ", " -= "},
	{" * ", " / "},
	{" * ", " + "},
	{" + ", " - "},
	{" - ", " + "},
	{"(double)cols", "(double)(cols + 1)"},
	{"const double eps =", "static double eps; if (eps == 0) eps ="},
	{"const double shift =", "static double shift; if (shift == 0) shift ="},
	{"const double eps =", "const double eps = 0 *"},
	{"const double shift =", "const double shift = 0 *"},
	{"sum += v * v;", "sum += v * v; { char s[4]; store(s, 0, sum, bfloat); sum = load(s, 0, bfloat); }"},
	{"sum += v * v;", "if (v == v) sum += v * v;"},
	{"sum += v * v;", "if (!isinf(v)) sum += v * v;"},
	{"sum += v * v;", "sum += fmin(v * v, 3e38);"},
	{"sums[i] += g * hat;", "if (r < 512) sums[i] += g * hat;"},
	{"sums[i] += g * hat;", "if (g == g) sums[i] += g * hat;"},
	{"memset(", "if (0) memset("},
	{"double *sums = call->workspace;", "static double sums[1 << 20];"},
	{"(bfloat ? 2 : 4)", "4"},
	{"rsigma[r]", "rsigma[r ^ 1]"},
	{"rsigma[r] =", "if (r % 64 != 63) rsigma[r] ="},
	{"load(weight, i,", "load(weight, 0,"},
	{"load(gamma, i,", "load(gamma, 0,"},
	{"load(x, i,", "load(x, i ^ 1,"},
	{"load(dz, i,", "load(dz, i + 1,"},
	{"store(y, i,", "if (i % 64 != 63) store(y, i,"},
	{"store(y, i,", "if (r < 2048) store(y, i,"},
	{"store(dx, i,", "if (i < 2000) store(dx, i,"},
	{"store(dgamma, i,", "store(dgamma, i ^ 1,"},
	{", bfloat);", ", 0);"},
}

// plainRules are mistakes in the kernels of testdata/kernels.c, in each place where the expression
// matches and in all families.
var plainRules = []plainRule{
	inC(`(\w) < (\w+);`, "$1 < $2 - 1;"),
	inC(`(\w) < (\w+);`, "$1 < $2 / 8 * 8;"),
	inC(`(\w) < (\w+);`, "$1 < ($2 < 1000 ? $2 : 1000);"),
	inC(`(\w) < (rows|n|tokens|tensors);`, "$1 <= $2;"),
	inC(`int64_t (\w) = 0;`, "int64_t $1 = 1;"),
	inC(`sum = 0;`, "sum = 1e-3;"),
	inC(`sum \+= (.*);`, "sum = $1;"),
	inC(`sum \+= (.*);`, "sum -= $1;"),
	inC(`sum \+= (.*);`, "sum = narrow(sum + $1);"),
	inC(` \* `, " + "),
	inC(` \+ `, " - "),
	inC(` - `, " + "),
	inC(` / `, " * "),
	inC(`exp\(-`, "exp("),
	inC(`cosf`, "sinf"),
	inC(`const (double|int64_t) (\w+) = (.*)call->args(.*);`, "static $1 $2, seen_$2; if (!seen_$2) { seen_$2 = 1; $2 = ${3}call->args${4}; }"),
	inC(`const (double|int64_t) (\w+) = (.*)call->args(.*);`, "const $1 $2 = 0 * (${3}call->args${4});"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "if (($2) % 64 != 63) store($1, $2, $3);"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "if (($2) < 3000) store($1, $2, $3);"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "store($1, $2, narrow($3));"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "{ double v_ = $3; store($1, $2, v_ == v_ ? v_ : 0); }"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "store($1, $2, ($3) * 1.001);"),
	inC(`store\((\w+), ([^,]*), (.*)\);`, "{ static double v_; v_ = v_ == 0 ? $3 : v_; store($1, $2, v_); }"),
	inC(`load\((\w+), ([^()]*)\)`, "load($1, ($2) ^ 1)"),
	inC(`load\((\w+), ([^()]*)\)`, "load($1, 0)"),
	inC(`turned_(\w) \?`, "!turned_$1 ?"),
	inC(`(\w+) \? (.*) :`, "1 ? $2 :"),
	inC(`if \((\w+)\)`, "if (0 && $1)"),
	inC(`if \(!`, "if ("),
}

type plainRule struct {
	from *regexp.Regexp
	to   string
}

func inC(from, to string) plainRule { return plainRule{regexp.MustCompile(from), to} }

// kernel is the beginning of a function that computes an op.
var kernel = regexp.MustCompile(`static inline void (\w+)\(const primus_call \*call`)

// kernels calls visit with each kernel of a source, up to a text: its op, and where it begins and
// ends.
func kernels(source, end string, visit func(op string, from, to int)) error {
	last := strings.Index(source, end)
	starts := kernel.FindAllStringSubmatchIndex(source, -1)
	if last < 0 || len(starts) == 0 || starts[len(starts)-1][0] > last {
		return fmt.Errorf("given a source without kernels before %q", end)
	}
	for i, at := range starts {
		to := last
		if i+1 < len(starts) {
			to = starts[i+1][0]
		}
		visit(source[at[2]:at[3]], at[1], to)
	}
	return nil
}

// cMutants applies the rules to the kernels of examples/outtree_c.
func cMutants(source string) (all []cMutant, err error) {
	found := make([]bool, len(cRules))
	err = kernels(source, "static int32_t forward_supports(", func(name string, from, to int) {
		for n, rule := range cRules {
			for at := from; ; at += len(rule[0]) {
				next := strings.Index(source[at:to], rule[0])
				if next < 0 {
					break
				}
				at += next
				found[n] = true
				all = append(all, mistake(source, map[string]string{"forward": "rmsnorm_fwd", "backward": "rmsnorm_bwd"}[name], at, rule[0], rule[1]))
			}
		}
	})
	if n := slices.Index(found, false); err == nil && n >= 0 {
		return nil, fmt.Errorf("given a source without %q, want one in a kernel", cRules[n][0])
	}
	return all, err
}

// plainMutants applies the rules to the kernels of testdata/kernels.c.
func plainMutants(source string) (all []cMutant, err error) {
	found := make([]bool, len(plainRules))
	err = kernels(source, "/* end of the kernels */", func(op string, from, to int) {
		for n, rule := range plainRules {
			for _, at := range rule.from.FindAllStringSubmatchIndex(source[from:to], -1) {
				found[n] = true
				with := string(rule.from.ExpandString(nil, rule.to, source[from:to], at))
				all = append(all, mistake(source, op, from+at[0], source[from+at[0]:from+at[1]], with))
			}
		}
	})
	if n := slices.Index(found, false); err == nil && n >= 0 {
		return nil, fmt.Errorf("given a source without %q, want one in a kernel", plainRules[n].from)
	}
	return all, err
}

// mistake returns the source with another text in place of one.
func mistake(source, op string, at int, from, to string) cMutant {
	line, column := 1+strings.Count(source[:at], "\n"), at-strings.LastIndex(source[:at], "\n")
	return cMutant{
		op: op, source: source[:at] + to + source[at+len(from):],
		rule: fmt.Sprintf("%d:%d: %s becomes %s", line, column, strings.TrimSpace(from), strings.TrimSpace(to)),
	}
}

// cJudge judges libraries in processes of their own.
type cJudge struct {
	root string // of the source tree
	dir  string // for libraries
	self string // runs judgeLibrary when it is called with -library and -op
	env  []string

	patience map[string]time.Duration // for a mutant, by op
}

// mutants returns the mutants of both sources, and both sources.
func (j cJudge) mutants() (all []cMutant, rms, plain string, err error) {
	for _, from := range []struct {
		path    string
		source  *string
		mutants func(string) ([]cMutant, error)
	}{{"examples/outtree_c/acme.c", &rms, cMutants}, {"internal/mutants/testdata/kernels.c", &plain, plainMutants}} {
		text, err := os.ReadFile(filepath.Join(j.root, filepath.FromSlash(from.path)))
		if err != nil {
			return nil, "", "", err
		}
		*from.source = string(text)
		some, err := from.mutants(*from.source)
		if err != nil {
			return nil, "", "", fmt.Errorf("%s: %w", from.path, err)
		}
		all = append(all, some...)
	}
	return all, rms, plain, nil
}

// judge returns why the kit refuses a mutant.
func (j cJudge) judge(ctx context.Context, m cMutant) (outcome, error) {
	o := outcome{name: m.name(), family: "C", changed: -1}
	source, library := filepath.Join(j.dir, "mutant.c"), filepath.Join(j.dir, "mutant.so")
	if err := os.WriteFile(source, []byte(m.source), 0o600); err != nil {
		return o, err
	}
	cc := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-I"+filepath.Join(j.root, "vendors", "abi"), "-o", library, source, "-lm")
	if text, err := cc.CombinedOutput(); err != nil {
		return o, fmt.Errorf("%w: %s", err, text)
	}
	patience := max(j.patience[m.op], leastPatience)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, j.self, "-library", library, "-op", m.op)
	cmd.Env = append(os.Environ(), j.env...)
	var out, faults bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &faults
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case limited.Err() != nil:
		o.reason = fmt.Sprintf("it did not end within %v", patience)
	case errors.As(err, &exit) && exit.ExitCode() != failed: // by a signal, or by Go, whose memory is damaged
		line, _, _ := strings.Cut(faults.String(), "\n")
		o.reason = "it ended the process: " + line
	case err != nil:
		return o, fmt.Errorf("%w: %s", err, faults.String())
	default:
		o.reason = strings.TrimSpace(out.String())
	}
	return o, nil
}

// A mutant may take much longer than the right kernel of its op, on this machine and with what else
// it does, before it counts as one that hangs.
const (
	leastPatience = 2 * time.Minute
	muchLonger    = 20
)

// failed is the exit code of a process that says itself why it cannot judge.
const failed = 1

// judgeLibrary prints why the kit refuses the impl of an op in a library, and nothing if it passes.
func judgeLibrary(path, op string, out io.Writer) error {
	p, err := plugin.Open(path, plugin.Settings{Ops: ops.All()})
	if err != nil {
		return err
	}
	for _, impl := range p.Source().Impls {
		if impl.Op.Name() != op {
			continue
		}
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
			m := mutant{impl: impl, oracle: right(impl.Op), dtype: d}
			if forward, ok := opstest.Forward(p.Source(), impl); ok {
				m.options = append(m.options, opstest.WithForward(forward))
			}
			reason, err := m.refusal()
			if err != nil || reason != "" {
				_, printed := fmt.Fprintln(out, reason)
				return errors.Join(err, printed)
			}
		}
		return nil
	}
	return fmt.Errorf("given op %q, want one of %s", op, path)
}

// judgeC judges the mutants in C whose name has a text, from the root of the source tree, after the
// right kernels of their ops, which must pass.
func judgeC(ctx context.Context, only string, workers int, verbose bool, progress io.Writer) (outcomes []outcome, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	j := cJudge{root: ".", self: self}
	all, rms, plain, err := j.mutants()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m cMutant) bool { return !strings.Contains(m.name(), only) })
	var right []cMutant
	for _, m := range all {
		source := plain
		if strings.HasPrefix(m.op, "rmsnorm_") {
			source = rms
		}
		if k := (cMutant{op: m.op, rule: "right", source: source}); !slices.Contains(right, k) {
			right = append(right, k)
		}
	}
	var mu sync.Mutex
	patience := map[string]time.Duration{}
	judge := func(worker int, m cMutant) (outcome, error) {
		own := j
		own.dir = filepath.Join(dir, fmt.Sprint(worker))
		if err := os.MkdirAll(own.dir, 0o700); err != nil {
			return outcome{}, err
		}
		return own.judge(ctx, m)
	}
	if _, err := judgeAll(ctx, right, workers, func(worker int, m cMutant) (outcome, error) {
		begin := time.Now()
		o, err := judge(worker, m)
		if err == nil && o.reason != "" {
			err = fmt.Errorf("the right kernel is refused: %s", o.reason)
		}
		mu.Lock()
		defer mu.Unlock()
		patience[m.op] = muchLonger * time.Since(begin)
		return o, err
	}, func(int, outcome) {}); err != nil {
		return nil, err
	}
	j.patience = patience
	return judgeAll(ctx, all, workers, judge, func(i int, o outcome) { o.print(progress, i+1, len(all), verbose) })
}
