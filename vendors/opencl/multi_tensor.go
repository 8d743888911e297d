package opencl

import (
	_ "embed"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

//go:embed optim.cl
var optimSource string

var optimProgram = newProgram("optim", optimSource, []string{"G", "Q", "M", "N"}, []string{"MASTER", "FACTOR"})

const (
	withMaster macroFlags = 1 << iota
	withFactor
)

// optimImpls returns the impls of the family.
func optimImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(optim.MultiTensorAdam, adam, Storage),
		openclImpl(optim.MultiTensorSGD, sgd, Storage),
		openclImpl(optim.MultiTensorScale, optimScale, Storage),
		openclImpl(optim.MultiTensorScaleTensor, scaleTensor, Storage),
		openclImpl(optim.MultiTensorL2Norm, l2norm, Storage),
		openclImpl(optim.MultiTensorUnscaleL2Norm, unscaleL2Norm, Storage),
	}
}

// views views the tensors of all lists and the flag.
func views(c *kernelCall, flag *tensor.Tensor, lists [][]*tensor.Tensor) {
	for _, list := range lists {
		for _, t := range list {
			c.vector("tensor_lists", t)
		}
	}
	if flag != nil {
		c.numbers("noop_flag", flag, tensor.I32)
	}
}

// typesOf returns the dtypes of the i-th tensors.
func typesOf(lists [][]*tensor.Tensor, i int) (types typeList) {
	for j, list := range lists {
		if j < 4 {
			types[j] = list[i].DType()
		}
	}
	return types
}

// dense starts the launch of a kernel for the i-th tensors.
func dense(c *kernelCall, name string, flags macroFlags, lists [][]*tensor.Tensor, i int) *kernelLaunch {
	l := c.dense(optimProgram, name, typesOf(lists, i), flags)
	for _, list := range lists {
		l.vec(list[i])
	}
	return l
}

func adam(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	c := begin(e)
	views(&c, nil, a.TensorLists)
	if c.Err != nil {
		return c.Err
	}
	c1, c2 := 1.0, 1.0
	if a.BiasCorrection {
		c1, c2 = 1-math.Pow(float64(a.Beta1), float64(a.Step)), 1-math.Pow(float64(a.Beta2), float64(a.Step))
	}
	flags := macroFlags(0)
	if len(a.TensorLists) > 4 {
		flags = withMaster
	}
	for i, g := range a.TensorLists[0] {
		l := dense(&c, "adam", flags, a.TensorLists, i).elements(g.NumElements())
		l.f32(a.LR, a.Beta1, a.Beta2, float32(1-float64(a.Beta1)), float32(1-float64(a.Beta2)), float32(c1), float32(c2), a.Epsilon, a.WeightDecay)
		if err := l.bool(a.Mode == optim.AdamL2).Run(); err != nil {
			return err
		}
	}
	return nil
}

func sgd(e *opregistry.Exec, a optim.MultiTensorSGDArgs) error {
	c := begin(e)
	views(&c, a.NoopFlag, a.TensorLists)
	if c.Err != nil {
		return c.Err
	}
	flags := macroFlags(0)
	if len(a.TensorLists) > 3 {
		flags = withMaster
	}
	for i, g := range a.TensorLists[0] {
		l := dense(&c, "sgd", flags, a.TensorLists, i).vec(a.NoopFlag).elements(g.NumElements())
		l.f32(a.WD, a.Momentum, float32(1-float64(a.Dampening)), a.LR, a.Scale)
		if err := l.bool(a.Nesterov, a.FirstRun, a.WDAfterMomentum).Run(); err != nil {
			return err
		}
	}
	return nil
}

func optimScale(e *opregistry.Exec, a optim.MultiTensorScaleArgs) error {
	return scaleBy(e, a.NoopFlag, a.TensorLists, nil, a.Scale)
}

func scaleTensor(e *opregistry.Exec, a optim.MultiTensorScaleTensorArgs) error {
	return scaleBy(e, a.NoopFlag, a.TensorLists, a.Scale, 0)
}

// scaleBy multiplies by a number, or by what a tensor holds unless that is nil.
func scaleBy(e *opregistry.Exec, flag *tensor.Tensor, lists [][]*tensor.Tensor, by *tensor.Tensor, number float32) error {
	c := begin(e)
	views(&c, flag, lists)
	flags := macroFlags(0)
	if by != nil {
		c.numbers("scale", by, tensor.F32)
		flags = withFactor
	}
	if c.Err != nil {
		return c.Err
	}
	for i, in := range lists[0] {
		l := dense(&c, "scale", flags, lists, i).vec(flag)
		if by != nil {
			l.vec(by)
		}
		if err := l.elements(in.NumElements()).f32(number).Run(); err != nil {
			return err
		}
	}
	return nil
}

func l2norm(e *opregistry.Exec, a optim.MultiTensorL2NormArgs) error {
	return optimNorm(e, optim.MultiTensorUnscaleL2NormArgs{NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, Norm: a.Norm, PerTensor: a.PerTensor})
}

func unscaleL2Norm(e *opregistry.Exec, a optim.MultiTensorUnscaleL2NormArgs) error {
	return optimNorm(e, a)
}

// optimNorm computes the norm of the tensors, times inv_scale unless that is nil. Each group adds
// up the squares of its elements; one group adds up those sums, in order.
func optimNorm(e *opregistry.Exec, a optim.MultiTensorUnscaleL2NormArgs) error {
	c := begin(e)
	views(&c, a.NoopFlag, a.TensorLists)
	c.numbers("norm", a.Norm, tensor.F32)
	flags := macroFlags(0)
	if a.InvScale != nil {
		c.numbers("inv_scale", a.InvScale, tensor.F32)
		flags = withFactor
	}
	if a.PerTensor != nil {
		c.numbers("per_tensor", a.PerTensor, tensor.F32)
	}
	if c.Err != nil {
		return c.Err
	}
	total := 0
	for _, t := range a.TensorLists[0] {
		total += c.groups(t.NumElements())
	}
	sums, err := c.scratch(total)
	if err != nil {
		return err
	}
	defer sums.Release()
	at := 0
	for i, t := range a.TensorLists[0] {
		n, part := c.groups(t.NumElements()), sums.At(at)
		at += n
		l := dense(&c, "squares", flags, a.TensorLists, i).vec(part)
		if a.InvScale != nil {
			l.vec(a.InvScale)
		}
		if err := l.elements(t.NumElements()).Run(); err != nil {
			return err
		}
		if a.PerTensor == nil {
			continue
		}
		own, err := a.PerTensor.Slice(0, i, i+1)
		if err != nil {
			return err
		}
		if err := root(&c, part, n, a.NoopFlag, own); err != nil {
			return err
		}
	}
	return root(&c, sums.At(0), total, a.NoopFlag, a.Norm)
}

// root writes the root of the sum of n sums of squares.
func root(c *kernelCall, sums *tensor.Tensor, n int, flag, to *tensor.Tensor) error {
	return c.kernel(optimProgram, "root", typeList{}, 0).vec(sums, flag, to).u32(n).runGroups(1, 1)
}
