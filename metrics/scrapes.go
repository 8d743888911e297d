package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Scrapes is a Gatherer that records when it is scraped, so that a program can wait for the scrape
// of its last values before it ends.
type Scrapes struct {
	from prometheus.Gatherer

	mu       sync.Mutex
	last     time.Time     // of the beginning of a scrape
	interval time.Duration // between the last two
	waiting  []chan struct{}
}

// NewScrapes returns a Gatherer that wraps another one.
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

// Next returns a channel that is closed after the next scrape that begins after this call.
func (s *Scrapes) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(chan struct{})
	s.waiting = append(s.waiting, seen)
	return seen
}

// Interval returns the time between the last two scrapes, 0 after a single one. ok is false before
// the first.
func (s *Scrapes) Interval() (interval time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interval, !s.last.IsZero()
}

var _ prometheus.Gatherer = (*Scrapes)(nil)
