package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{}, 1)
		s := metrics.NewScrapes(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			<-release
			return nil, nil
		}))
		gather := func() {
			release <- struct{}{}
			_, err := s.Gather()
			require.NoError(t, err)
		}
		seen := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		_, ok := s.Interval()
		assert.False(t, ok)
		gather()
		interval, ok := s.Interval()
		assert.True(t, ok)
		assert.Zero(t, interval)
		time.Sleep(5 * time.Second)

		go func() { _, _ = s.Gather() }()
		synctest.Wait()
		next := s.Next()
		release <- struct{}{}
		synctest.Wait()
		assert.False(t, seen(next), "that scrape had begun before")
		time.Sleep(15 * time.Second)
		gather()
		assert.True(t, seen(next))
		interval, _ = s.Interval()
		assert.Equal(t, 15*time.Second, interval)
	})
}
