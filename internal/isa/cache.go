package isa

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/durable"
)

// hardware is what a measurement holds for.
type hardware struct {
	CPU       string `json:"cpu"`
	Microcode string `json:"microcode"`
	Class     string `json:"cpu_class"`
	Primus    string `json:"primus"`
}

// measured is the content of the cache.
type measured struct {
	hardware
	BF16 float64 `json:"bf16_rate"`
}

// machine returns this machine.
func machine() hardware {
	m := hardware{Class: cpufeat.Class(true), Primus: buildinfo.Version()}
	text, _ := os.ReadFile("/proc/cpuinfo") // absent on other systems
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "vendor_id", "cpu family", "model", "model name", "stepping":
			m.CPU = strings.TrimSpace(m.CPU + " " + value)
		case "microcode":
			m.Microcode = value
		case "":
			return m // the other processors
		}
	}
	return m
}

// sane reports whether a rate can be one that was measured.
func sane(rate float64) bool { return rate > 0.01 && rate < 100 }

// maxCache bounds the cache that is read.
const maxCache = 1 << 14

// read returns the rate in a cache, if it is for this machine. Whatever else is there is measured
// again.
func read(file string, here hardware) (rate float64, ok bool) {
	if file == "" {
		return 0, false
	}
	f, err := durable.OpenRegular(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var m measured
	text, err := io.ReadAll(io.LimitReader(f, maxCache))
	if err != nil || json.Unmarshal(text, &m) != nil || m.hardware != here {
		return 0, false
	}
	return m.BF16, sane(m.BF16)
}

// write keeps a rate.
func write(file string, here hardware, rate float64) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(file, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(measured{hardware: here, BF16: rate})
	})
}
