package metrics

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// set is a set of collectors that are registered and unregistered together.
type set struct {
	reg        prometheus.Registerer
	collectors []prometheus.Collector
}

// register registers all collectors or none. what names them in errors.
func register(reg prometheus.Registerer, what string, collectors ...prometheus.Collector) (*set, error) {
	s := &set{reg: reg}
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			s.close()
			return nil, fmt.Errorf("metrics: register %s: %w", what, err)
		}
		s.collectors = append(s.collectors, c)
	}
	return s, nil
}

// close unregisters the collectors. Further calls do nothing.
func (s *set) close() {
	for _, c := range s.collectors {
		s.reg.Unregister(c)
	}
	s.collectors = nil
}

// stepExemplar is the training step as the labels of an exemplar, nil outside of steps. The map is
// never changed.
type stepExemplar struct {
	current atomic.Pointer[prometheus.Labels]
}

func (e *stepExemplar) set(step int) {
	e.current.Store(&prometheus.Labels{"step": strconv.Itoa(step)})
}

func (e *stepExemplar) clear() { e.current.Store(nil) }

func (e *stepExemplar) labels() prometheus.Labels {
	if l := e.current.Load(); l != nil {
		return *l
	}
	return nil
}
