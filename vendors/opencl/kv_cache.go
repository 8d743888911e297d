package opencl

import (
	_ "embed"
	"fmt"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

//go:embed kv_cache.cl
var cacheSource string

// bytesOf is the variant of a program for elements of that many bytes.
type bytesOf int

// Options returns the macro that kv_cache.cl asks for.
func (n bytesOf) Options() []string {
	return []string{define("ELEMENT", map[bytesOf]string{1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[n])}
}

var cacheProgram = newKernelProgram[bytesOf]("kv_cache", cacheSource)

// cacheCopy is a call of copyToKVCache.
type cacheCopy struct {
	attention.CopyToKVCacheArgs
	exec   *opregistry.Exec
	device *opencl.Device
	batch  int
}

// copyToKVCache implements attention.CopyToKVCache for tensors of any strides.
func copyToKVCache(x *opregistry.Exec, a attention.CopyToKVCacheArgs) error {
	var v operandViews
	for name, t := range map[string]*tensor.Tensor{"new_k": a.NewK, "new_v": a.NewV, "k_cache": a.KCache, "v_cache": a.VCache} {
		v.on(name, t)
	}
	for name, t := range map[string]*tensor.Tensor{"page_table": a.PageTable, "cu_new_lens": a.CuNewLens, "cu_cached_lens": a.CuCachedLens} {
		if v.on(name, t) && !t.IsContiguous() {
			v.decline("strides %v of %s, this impl serves contiguous elements", t.Strides(), name)
		}
	}
	if v.Err != nil || v.Device == nil {
		return v.Err
	}
	c := cacheCopy{CopyToKVCacheArgs: a, exec: x, device: v.Device, batch: a.CuNewLens.NumElements() - 1}
	for _, pair := range [][2]*tensor.Tensor{{a.NewK, a.KCache}, {a.NewV, a.VCache}} {
		if err := c.queue(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// cached returns the arguments of the macro CACHED for distances of entries, positions, heads and
// elements.
func cached(t *tensor.Tensor, strides ...int) []opencl.Arg {
	list := []opencl.Arg{buf(t)}
	for _, s := range strides {
		list = append(list, opencl.I64(int64(s)))
	}
	return list
}

// queue queues the kernels for keys or for values.
func (c *cacheCopy) queue(fresh, cache *tensor.Tensor) error {
	shape := cache.Shape()
	each, capacity := shape[2]*shape[3], shape[1]
	if c.batch == 0 || each == 0 || capacity == 0 {
		return nil
	}
	variant := bytesOf(cache.DType().Size())
	lists := []opencl.Arg{buf(c.PageTable), buf(c.CuNewLens), buf(c.CuCachedLens), intArg(c.batch), intArg(shape[2]), intArg(shape[3]), intArg(capacity)}
	to := cached(cache, cache.Strides()...)
	items, group := roundUp(each, usualGroup), []int{usualGroup, 1, 1}
	pages := c.PageTable.Shape()[1]
	if c.IsNonPaged {
		pages = 0
		kern, err := cacheProgram.Kernel(c.device, variant, "reorder")
		if err == nil {
			err = kern.Launch(c.exec.Stream(), []int{items, capacity, 1}, group, join(to, lists)...)
		}
		if err != nil {
			return fmt.Errorf("reorder the slots: %w", err)
		}
	}
	s, strides := fresh.Shape(), fresh.Strides()
	var from []opencl.Arg
	steps, entries := s[0], c.batch
	switch c.QKVFormat {
	case attention.BSHD:
		steps, from = s[1], cached(fresh, strides...)
	case attention.SBHD:
		from = cached(fresh, strides[1], strides[0], strides[2], strides[3])
	default:
		entries, from = 1, cached(fresh, 0, strides[0], strides[1], strides[2])
	}
	if steps == 0 {
		return nil
	}
	kern, err := cacheProgram.Kernel(c.device, variant, "append")
	if err != nil {
		return err
	}
	return kern.Launch(c.exec.Stream(), []int{items, steps, entries}, group, join(from, to, lists, []opencl.Arg{intArg(pages), truth(c.QKVFormat == attention.THD)})...)
}
