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

var optimProgram = NewProgram("optim", optimSource, []string{"G", "Q", "M", "N"}, []string{"MASTER", "FACTOR"})

const (
	withMaster Flags = 1 << iota
	withFactor
)

// optimImpls returns the impls of the family.
func optimImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(optim.MultiTensorAdam, adam, Storage),
		Impl(optim.MultiTensorSGD, sgd, Storage),
		Impl(optim.MultiTensorScale, optimScale, Storage),
		Impl(optim.MultiTensorScaleTensor, scaleTensor, Storage),
		Impl(optim.MultiTensorL2Norm, l2norm, Storage),
		Impl(optim.MultiTensorUnscaleL2Norm, unscaleL2Norm, Storage),
	}
}

// views views the tensors of all lists and the flag.
func views(c *Call, flag *tensor.Tensor, lists [][]*tensor.Tensor) {
	for _, list := range lists {
		for _, t := range list {
			c.Vector("tensor_lists", t)
		}
	}
	if flag != nil {
		c.Numbers("noop_flag", flag, tensor.I32)
	}
}

// typesOf returns the dtypes of the i-th tensors.
func typesOf(lists [][]*tensor.Tensor, i int) (types Types) {
	for j, list := range lists {
		if j < 4 {
			types[j] = list[i].DType()
		}
	}
	return types
}

// dense starts the launch of a kernel for the i-th tensors.
func dense(c *Call, name string, flags Flags, lists [][]*tensor.Tensor, i int) *Launch {
	l := c.Dense(optimProgram, name, typesOf(lists, i), flags)
	for _, list := range lists {
		l.Vec(list[i])
	}
	return l
}

func adam(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	c := Begin(e)
	views(&c, nil, a.TensorLists)
	if c.Err != nil {
		return c.Err
	}
	c1, c2 := 1.0, 1.0
	if a.BiasCorrection {
		c1, c2 = 1-math.Pow(float64(a.Beta1), float64(a.Step)), 1-math.Pow(float64(a.Beta2), float64(a.Step))
	}
	flags := Flags(0)
	if len(a.TensorLists) > 4 {
		flags = withMaster
	}
	for i, g := range a.TensorLists[0] {
		l := dense(&c, "adam", flags, a.TensorLists, i).Size(g.NumElements())
		l.F32(a.LR, a.Beta1, a.Beta2, float32(1-float64(a.Beta1)), float32(1-float64(a.Beta2)), float32(c1), float32(c2), a.Epsilon, a.WeightDecay)
		if err := l.Bool(a.Mode == optim.AdamL2).Run(); err != nil {
			return err
		}
	}
	return nil
}

func sgd(e *opregistry.Exec, a optim.MultiTensorSGDArgs) error {
	c := Begin(e)
	views(&c, a.NoopFlag, a.TensorLists)
	if c.Err != nil {
		return c.Err
	}
	flags := Flags(0)
	if len(a.TensorLists) > 3 {
		flags = withMaster
	}
	for i, g := range a.TensorLists[0] {
		l := dense(&c, "sgd", flags, a.TensorLists, i).Vec(a.NoopFlag).Size(g.NumElements())
		l.F32(a.WD, a.Momentum, float32(1-float64(a.Dampening)), a.LR, a.Scale)
		if err := l.Bool(a.Nesterov, a.FirstRun, a.WDAfterMomentum).Run(); err != nil {
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
	c := Begin(e)
	views(&c, flag, lists)
	flags := Flags(0)
	if by != nil {
		c.Numbers("scale", by, tensor.F32)
		flags = withFactor
	}
	if c.Err != nil {
		return c.Err
	}
	for i, in := range lists[0] {
		l := dense(&c, "scale", flags, lists, i).Vec(flag)
		if by != nil {
			l.Vec(by)
		}
		if err := l.Size(in.NumElements()).F32(number).Run(); err != nil {
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
	c := Begin(e)
	views(&c, a.NoopFlag, a.TensorLists)
	c.Numbers("norm", a.Norm, tensor.F32)
	flags := Flags(0)
	if a.InvScale != nil {
		c.Numbers("inv_scale", a.InvScale, tensor.F32)
		flags = withFactor
	}
	if a.PerTensor != nil {
		c.Numbers("per_tensor", a.PerTensor, tensor.F32)
	}
	if c.Err != nil {
		return c.Err
	}
	total := 0
	for _, t := range a.TensorLists[0] {
		total += c.Groups(t.NumElements())
	}
	sums, err := c.Scratch(total)
	if err != nil {
		return err
	}
	defer sums.Release()
	at := 0
	for i, t := range a.TensorLists[0] {
		n, part := c.Groups(t.NumElements()), sums.At(at)
		at += n
		l := dense(&c, "squares", flags, a.TensorLists, i).Vec(part)
		if a.InvScale != nil {
			l.Vec(a.InvScale)
		}
		if err := l.Size(t.NumElements()).Run(); err != nil {
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
func root(c *Call, sums *tensor.Tensor, n int, flag, to *tensor.Tensor) error {
	return c.Kernel(optimProgram, "root", Types{}, 0).Vec(sums, flag, to).U32(n).RunGroups(1, 1)
}
