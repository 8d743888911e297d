package preflight

import (
	"fmt"
	"time"
)

// Status is the outcome of a check.
type Status string

const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Group is what a check is about.
type Group string

const (
	Host    Group = "host"
	GPU     Group = "gpu"
	Network Group = "network"
	Speed   Group = "speed"
	Cluster Group = "cluster" // all ranks together
)

// Check is the result of one check.
type Check struct {
	Group  Group  `json:"group"`
	Name   string `json:"name"`
	Status Status `json:"status"`
	Value  string `json:"value"`
	Advice string `json:"advice,omitempty"` // for what is not ok
}

// Report is what was found on the machine of a rank.
type Report struct {
	Rank    int                `json:"rank"`
	World   int                `json:"world_size"`
	Host    string             `json:"host"`
	Time    time.Time          `json:"time"`
	Checks  []Check            `json:"checks"`
	Facts   map[string]string  `json:"facts"` // that should be the same on all ranks
	Rates   map[string]float64 `json:"rates,omitempty"`
	Devices []Device           `json:"devices,omitempty"`
}

// Worst returns the worst status of checks.
func Worst(checks []Check) Status {
	worst := OK
	for _, c := range checks {
		if c.Status == Fail || c.Status == Warn && worst == OK {
			worst = c.Status
		}
	}
	return worst
}

func (r *Report) add(group Group, name string, status Status, value, advice string) {
	if status == OK {
		advice = ""
	}
	r.Checks = append(r.Checks, Check{group, name, status, value, advice})
}

func (r *Report) ok(group Group, name, format string, args ...any) {
	r.add(group, name, OK, fmt.Sprintf(format, args...), "")
}

// grade returns bad if a condition holds, else ok.
func grade(condition bool, bad Status) Status {
	if condition {
		return bad
	}
	return OK
}

// Limits are the thresholds of checks. A zero turns its check off.
type Limits struct {
	ExpectedGPUs    int
	ExpectedRDMA    int
	RDMAPorts       string // in the syntax of NCCL_IB_HCA
	LockedMemory    float64
	SharedMemory    float64
	FreeDisk        float64
	BusyMemory      float64 // of a GPU, in bytes
	BusyPercent     float64
	AllowForeign    bool
	Strict          bool // too little locked or shared memory is a failure
	AllowedNames    []string
	RequiredTools   []string
	KernelLog       time.Duration
	ToolTimeout     time.Duration
	SlowTool        time.Duration
	ClockSkew       time.Duration
	SlowRank        float64 // a rank is slow below this fraction of the median of the others
	ProductTFLOPS   float64
	CopyGBPerSecond float64
}

// shortage is the status of too little locked or shared memory.
func (l Limits) shortage() Status {
	if l.Strict {
		return Fail
	}
	return Warn
}

// DefaultLimits returns the thresholds of `primus preflight`.
func DefaultLimits() Limits {
	return Limits{
		LockedMemory: 32 * gib, SharedMemory: 8 * gib, FreeDisk: 10e9, BusyMemory: 2 * gib, BusyPercent: 20,
		AllowedNames: []string{"gpuagent", "rocm-smi-daemon", "amd-smi", "dcgm-exporter"},
		ToolTimeout:  15 * time.Second, SlowTool: time.Second, ClockSkew: 30 * time.Second, SlowRank: 0.8,
	}
}

const gib = 1 << 30
