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

// TextfileInterval is how often a Textfile is written; node_exporter is scraped no more often as a rule.
const TextfileInterval = 15 * time.Second

// Textfile keeps a file with metrics for the textfile collector of node_exporter, for machines on which a run cannot be
// scraped, and for what is left of a run when it has ended. Metrics of the Go runtime and of the process are left out:
// node_exporter has its own of these names.
type Textfile struct {
	file   string
	from   prometheus.Gatherer
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	close  sync.Once
	err    error // of Close
}

// NewTextfile writes what g gathers to file now, every TextfileInterval and at Close. The name must end in .prom, as
// node_exporter wants it; a file that cannot be written is an error at once, and a warning to log later on.
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

// keep writes the file until ctx ends. A failure does not end it: the disk may have room again.
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

// write replaces the file as a whole, so that nobody reads half of one.
func (t *Textfile) write() error {
	if err := prometheus.WriteToTextfile(t.file, t.from); err != nil {
		return fmt.Errorf("metrics: write textfile %q: %w; its directory must exist and be writable", t.file, err)
	}
	return nil
}

// Close writes the file a last time, and leaves it. The error is that of this writing. Further calls do nothing and return
// the same.
func (t *Textfile) Close() error {
	t.close.Do(func() {
		t.cancel()
		<-t.done
		t.err = t.write()
	})
	return t.err
}

// own gathers the metrics of this project only.
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
