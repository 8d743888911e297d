package plugin_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/norm"
)

// openOld opens a library that is built with the headers of an earlier commit.
func openOld(t *testing.T, commit string) (*plugin.Plugin, map[string]opregistry.Impl) {
	t.Helper()
	const dir = "testdata/headers"
	path := loadertest.Library(t, "libold.so", dir+"/old.c", "-I"+dir, "-I"+dir+"/"+commit)
	p, err := plugin.Open(path, plugin.Settings{Ops: ops.All()})
	require.NoError(t, err)
	require.NoError(t, opregistry.NewRegistry().Register(p.Source()))
	impls := map[string]opregistry.Impl{}
	for _, i := range p.Source().Impls {
		impls[i.Op.Name()] = i
	}
	return p, impls
}

// Libraries of earlier versions are used: where arguments have another name now, and where an op
// has more of them, for the calls that leave those out.
func TestOldLibraries(t *testing.T) {
	t.Parallel()
	commits, err := os.ReadDir("testdata/headers")
	require.NoError(t, err)
	tested := 0
	for _, commit := range commits {
		if !commit.IsDir() {
			continue
		}
		tested++
		t.Run(commit.Name(), func(t *testing.T) {
			t.Parallel()
			p, impls := openOld(t, commit.Name())
			assert.Equal(t, "1.0", p.ABI())
			for name, i := range impls {
				assert.NoError(t, i.Available(), name)
				assert.Equal(t, name == "all_reduce", len(i.Support.Without) > 0, name)
			}
			out := make([]float32, 2)
			run := impls["rmsnorm_fwd"].Run.(opregistry.Func[norm.RMSNormFwdArgs])
			require.NoError(t, run(newExec(), norm.RMSNormFwdArgs{
				Input: floats(t, []float32{1, 2}, 1, 2), Weight: floats(t, []float32{1, 1}), Output: floats(t, out, 1, 2), RSigma: floats(t, []float32{0}), Eps: 1e-5,
			}))
			assert.Equal(t, []float32{6, 0}, out, "it is called with the arguments that it knows")
		})
	}
	assert.Equal(t, 3, tested)
}

func TestOldLibraryWithoutANewArgument(t *testing.T) {
	t.Parallel()
	p, impls := openOld(t, "82735246")
	impl := impls["all_reduce"]
	assert.Equal(t, []string{"first", "stride"}, impl.Support.Without)
	out := make([]float32, 2)
	args := collective.AllReduceArgs{Input: floats(t, []float32{1, 2}), Output: floats(t, out), Group: collective.Group{Ranks: 2}}
	require.NoError(t, opregistry.Serves(&impl.Support, collective.AllReduce, args))
	require.NoError(t, impl.Run.(opregistry.Func[collective.AllReduceArgs])(newExec(), args))
	assert.Equal(t, []float32{5, 0}, out, "it gets the arguments that it was compiled with")
	args.Stride = 2
	err := opregistry.Serves(&impl.Support, collective.AllReduce, args)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.EqualError(t, err, "unsupported: argument stride is given: declared for calls without it")

	r := p.Report()
	assert.Equal(t, []string{`impl "vendor.acme" was compiled before op "all_reduce" had first, stride: calls that give one of these arguments go to other impls`}, r.Outdated())
}

// An op of a library whose op is not in the catalogue any more does not concern the others.
func TestOldLibraryWithAnOpThatIsGone(t *testing.T) {
	t.Parallel()
	p, _ := openOld(t, "20b7de58")
	require.Len(t, p.Unused(), 1)
	assert.Equal(t, "nvshmem_finalize", p.Unused()[0].Op)
}

// changed is an op with other arguments than that of the catalogue: a library that is compiled with
// it is what an earlier or later version of the op would have given.
func changed(op opregistry.Handle, params []opregistry.Param) uint64 {
	for i := range params {
		params[i].Index = i
	}
	return plugin.HashOf(op.Name(), params)
}

// For every op of the catalogue, what libraries of other versions of it would be compiled with: the
// op is used, or left out with a reason that names the argument.
func TestOtherVersionsOfEachOp(t *testing.T) {
	t.Parallel()
	catalogue := plugin.CatalogueOf(ops.All())
	appended, without := 0, func(list []opregistry.Param, i int) []opregistry.Param {
		return append(append([]opregistry.Param{}, list[:i]...), list[i+1:]...)
	}
	for _, op := range ops.All() {
		params, err := plugin.Layout(op)
		if err != nil || len(params) == 0 {
			continue
		}
		fit := func(layout uint64) ([]opregistry.Param, []string, string) {
			known, lacks, err := catalogue.Fit(op, layout)
			if err != nil {
				require.Empty(t, known)
				return nil, nil, err.Error()
			}
			return known, lacks, ""
		}
		known, lacks, reason := fit(plugin.LayoutHash(op))
		require.Empty(t, reason, op.Name())
		require.Empty(t, lacks)
		require.Len(t, known, len(params))

		last := params[len(params)-1]
		known, lacks, reason = fit(changed(op, without(params, len(params)-1)))
		if last.Optional {
			appended++
			require.Empty(t, reason, op.Name())
			require.Equal(t, []string{last.Name}, lacks, op.Name())
			require.Len(t, known, len(params)-1)
		} else {
			require.Contains(t, reason, `it was compiled before op "`+op.Name()+`" had argument "`+last.Name+`", which every call gives`)
		}
		for i, p := range params {
			if i+1 < len(params) {
				_, _, reason = fit(changed(op, without(params, i)))
				require.Contains(t, reason, `without argument "`+p.Name+`"`, op.Name())
				next := params[i+1]
				swapped := append(append(append([]opregistry.Param{}, params[:i]...), next, p), params[i+2:]...)
				_, _, reason = fit(changed(op, swapped))
				require.Contains(t, reason, `with arguments "`+p.Name+`" and "`+next.Name+`" of op "`+op.Name()+`" in each other's place`)
				moved := append(append([]opregistry.Param{}, without(params, i)...), p)
				_, _, reason = fit(changed(op, moved))
				require.Contains(t, reason, `"`+p.Name+`"`, op.Name())
			}
			retyped := append([]opregistry.Param{}, params...)
			retyped[i].Sort = p.Sort%opregistry.SortInts + 1
			_, _, reason = fit(changed(op, retyped))
			require.Contains(t, reason, `with argument "`+p.Name+`" of op "`+op.Name()+`" as `+retyped[i].Sort.String(), op.Name())
		}
		extra := opregistry.Param{Name: "k_freqs", Sort: opregistry.SortTensor}
		for _, p := range params {
			if p.Name == extra.Name || strings.HasSuffix(p.Name, "."+extra.Name) {
				extra.Name = "page_table"
			}
		}
		for i := range len(params) + 1 {
			longer := append(append(append([]opregistry.Param{}, params[:i]...), extra), params[i:]...)
			_, _, reason = fit(changed(op, longer))
			require.Contains(t, reason, `with an argument "`+extra.Name+`" (tensor) at index`, op.Name())
		}
		_, _, reason = fit(1)
		require.Contains(t, reason, "differ in several places")
		_, _, reason = fit(0)
		require.Contains(t, reason, "has no layout")
	}
	assert.Greater(t, appended, 40, "ops whose last argument is optional")
}
