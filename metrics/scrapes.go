package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Scrapes is a Gatherer that knows when it is asked, so that a program that ends can wait until its last figures were seen.
type Scrapes struct {
	from prometheus.Gatherer

	mu       sync.Mutex
	last     time.Time     // of the beginning of a scrape
	interval time.Duration // between the last two
	waiting  []chan struct{}
}

// NewScrapes returns a Gatherer that asks another one.
func NewScrapes(from prometheus.Gatherer) *Scrapes { return &Scrapes{from: from} }

// Gather implements prometheus.Gatherer.
func (s *Scrapes) Gather() ([]*dto.MetricFamily, error) {
	for _, seen := range s.begin() {
		defer close(seen)
	}
	return s.from.Gather()
}

func (s *Scrapes) begin() (waiting []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.interval = now.Sub(s.last)
	}
	s.last = now
	waiting, s.waiting = s.waiting, nil
	return waiting
}

// Next returns a channel that is closed when a scrape that begins from now on has read the metrics.
func (s *Scrapes) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(chan struct{})
	s.waiting = append(s.waiting, seen)
	return seen
}

// Interval returns the time between the last two scrapes. It is 0 after one scrape, and ok is false before that.
func (s *Scrapes) Interval() (interval time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interval, !s.last.IsZero()
}

var _ prometheus.Gatherer = (*Scrapes)(nil)
