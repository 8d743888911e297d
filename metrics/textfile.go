package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TextfileInterval is the interval at which a Textfile is written. node_exporter is rarely scraped
// more often.
const TextfileInterval = 15 * time.Second

// Textfile writes metrics to a file for the textfile collector of node_exporter. It is meant for
// machines on which a run cannot be scraped, and keeps the last values of a run that has ended.
// Metrics of the Go runtime and the process are left out, because node_exporter uses the same names
// for its own.
type Textfile struct {
	file   string
	from   prometheus.Gatherer
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	close  sync.Once
	err    error // of Close
}

// NewTextfile writes the metrics of g to file now, at every TextfileInterval, and at Close. The
// name must end in .prom, which node_exporter requires. If the file cannot be written now,
// NewTextfile returns an error; later failures are logged as warnings.
func NewTextfile(file string, g prometheus.Gatherer, log *slog.Logger) (*Textfile, error) {
	if filepath.Ext(file) != ".prom" {
		return nil, fmt.Errorf("metrics: textfile %q: want a name that ends in .prom, or node_exporter passes over it", file)
	}
	t := &Textfile{file: file, from: own{g}, log: log, done: make(chan struct{})}
	if err := t.write(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go t.keep(ctx)
	return t, nil
}

// keep writes the file at intervals until ctx ends. It continues after a failure, since the disk
// may have space again.
func (t *Textfile) keep(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(TextfileInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := t.write(); err != nil {
				t.log.Warn(err.Error())
			}
		}
	}
}

// write replaces the file atomically.
func (t *Textfile) write() error {
	if err := prometheus.WriteToTextfile(t.file, t.from); err != nil {
		return fmt.Errorf("metrics: write textfile %q: %w; its directory must exist and be writable", t.file, err)
	}
	return nil
}

// Close writes the file for the last time and returns the error of that. Further calls return the
// same error.
func (t *Textfile) Close() error {
	t.close.Do(func() {
		t.cancel()
		<-t.done
		t.err = t.write()
	})
	return t.err
}

// own gathers only the metrics of this project.
type own struct{ all prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (o own) Gather() ([]*dto.MetricFamily, error) {
	families, err := o.all.Gather()
	var ours []*dto.MetricFamily
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "primus_") {
			ours = append(ours, f)
		}
	}
	return ours, err
}
