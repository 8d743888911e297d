package opencl

import (
	"math"
	"sync"
	"time"

	"github.com/primus-fl/primus/device/opencl"
)

const (
	// leastWork is the number of multiplications of a product that is worth a measurement.
	leastWork = 1 << 24

	// rounds and patience bound the calls of a shape that is measured.
	rounds   = 5
	patience = 20 * time.Millisecond
)

// chooser chooses a shape for each class of products on each device: the one that was the fastest
// in the first product of the class that is large enough. The choice is one of speed alone, because
// all shapes give the same bits. Where it cannot be kept for later runs, nothing is measured.
type chooser struct {
	classes func(info opencl.Info, m, n int) (class, []shape)
	measure func(p *product, s shape, m, n, k int) (time.Duration, error)

	mu     sync.Mutex
	chosen map[chosenFor]choice
}

type chosenFor struct {
	device *opencl.Device
	class  class
}

// choice is a shape, and whether it is final: measured now or in an earlier run.
type choice struct {
	shape shape
	final bool
}

func newChooser() *chooser {
	return &chooser{classes: classOf, measure: (*product).measure, chosen: make(map[chosenFor]choice)}
}

// shape returns the shape for a product, which it may run several times.
func (c *chooser) shape(p *product, m, n, k int) (shape, error) {
	class, shapes := c.classes(p.device.Info(), m, n)
	if len(shapes) == 1 || !p.device.Measures() {
		return shapes[0], nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := chosenFor{p.device, class}
	one, ok := c.chosen[key]
	if !ok {
		one = kept(p, class, shapes)
		c.chosen[key] = one
	}
	if one.final || m*n*k < leastWork || p.beta() != 0 {
		return one.shape, nil
	}
	least := time.Duration(math.MaxInt64)
	for _, s := range shapes {
		took, err := c.measure(p, s, m, n, k)
		if err != nil {
			return shape{}, err
		}
		if took < least {
			one.shape, least = s, took
		}
	}
	one.final = true
	c.chosen[key] = one
	p.device.Choose(nameOf(p, class), one.shape.String())
	return one.shape, nil
}

// kept returns the choice of an earlier run, or the first shape.
func kept(p *product, of class, shapes []shape) choice {
	name := p.device.Choice(nameOf(p, of))
	for _, s := range shapes {
		if s.String() == name {
			return choice{s, true}
		}
	}
	return choice{shapes[0], false}
}

// nameOf returns the name of a choice.
func nameOf(p *product, of class) string { return p.program.Label() + ", " + string(of) }

// measure returns the least time that the product takes with a shape. It must not add to D, so that
// it may run again.
func (p *product) measure(s shape, m, n, k int) (time.Duration, error) {
	trial := *p
	trial.variant.shape = s
	least := time.Duration(math.MaxInt64)
	for round, began := 0, time.Now(); round <= rounds && (round < 2 || time.Since(began) < patience); round++ {
		start := time.Now()
		if err := trial.multiply(m, n, k); err != nil {
			return 0, err
		}
		if err := trial.device.Wait(trial.stream); err != nil {
			return 0, err
		}
		if round > 0 { // the first one builds the program
			least = min(least, time.Since(start))
		} else {
			began = time.Now()
		}
	}
	return least, nil
}
