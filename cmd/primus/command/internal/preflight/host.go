package preflight

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
)

// disk is the space of a file system.
type disk struct{ free, total float64 }

// limit is a limit of the process; infinite stands for none.
type limit struct {
	name  string
	value uint64
}

const infinite = math.MaxUint64

func (r *Report) host(ctx context.Context, m Machine, l Limits) {
	kernel := m.read("proc/sys/kernel/osrelease")
	r.ok(Host, "system", "%s/%s %s %s", runtime.GOOS, runtime.GOARCH, kernel, field(m.read("etc/os-release"), "PRETTY_NAME="))
	r.Facts["kernel"] = kernel
	model := field(m.read("proc/cpuinfo"), "model name")
	r.Facts["cpu"] = fmt.Sprintf("%d × %s", runtime.NumCPU(), model)
	r.ok(Host, "CPU", "%s", r.Facts["cpu"])
	r.load(m)
	r.memory(m)
	r.disks(l)
	r.limits(l)
	r.tunables(m)
	r.clock()
	for _, tool := range l.RequiredTools {
		r.add(Host, "tool "+tool, grade(!m.has(tool), Fail), map[bool]string{true: "found", false: "not found"}[m.has(tool)], "install it, or put it on PATH")
	}
	if l.KernelLog > 0 {
		r.kernelLog(ctx, m, l)
	}
}

// field returns the value of a line that begins with a key, as in os-release and cpuinfo.
func field(text, key string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Trim(strings.TrimSpace(rest), `": `)
		}
	}
	return ""
}

func (r *Report) load(m Machine) {
	average, _, _ := strings.Cut(m.read("proc/loadavg"), " ")
	value, err := strconv.ParseFloat(average, 64)
	if err != nil {
		return
	}
	busy := value > 1.5*float64(runtime.NumCPU())
	r.add(Host, "load", grade(busy, Warn), fmt.Sprintf("%s on %d CPUs", average, runtime.NumCPU()), "end what else runs here: ps -eo pid,pcpu,args --sort=-pcpu | head")
}

func (r *Report) memory(m Machine) {
	sizes := map[string]float64{}
	for line := range strings.Lines(m.read("proc/meminfo")) {
		if f := strings.Fields(line); len(f) == 3 {
			if n, err := strconv.ParseFloat(f[1], 64); err == nil {
				sizes[strings.TrimSuffix(f[0], ":")] = 1024 * n
			}
		}
	}
	total, available := sizes["MemTotal"], sizes["MemAvailable"]
	if total == 0 {
		return
	}
	r.Facts["memory"] = fmt.Sprintf("%.0f GiB", total/gib)
	r.add(Host, "memory", grade(available < total/10, Warn), fmt.Sprintf("%s available of %s", sysmem.Text(available), sysmem.Text(total)), "less than a tenth is available: end what else runs here")
	if limit, err := sysmem.Read(); err == nil && float64(limit.Bytes) < 0.99*total {
		r.add(Host, "memory limit", Warn, fmt.Sprintf("%s by %s", sysmem.Text(float64(limit.Bytes)), limit.Source), "the container may use only a part of the memory: raise its limit, or plan with it")
	}
	if dirty := sizes["SwapTotal"] - sizes["SwapFree"]; dirty > total/20 {
		r.add(Host, "swap", Warn, sysmem.Text(dirty)+" in use", "memory was short: end what else runs here, then swapoff -a and swapon -a")
	}
}

func (r *Report) disks(l Limits) {
	dirs := []string{".", os.TempDir()}
	for i, dir := range dirs {
		d, err := diskOf(dir)
		if err != nil || l.FreeDisk == 0 {
			continue
		}
		name := map[int]string{0: "disk of the working directory", 1: "disk of " + os.TempDir()}[i]
		status := grade(d.free < l.FreeDisk, Warn)
		if d.free < l.FreeDisk/10 {
			status = Fail
		}
		r.add(Host, name, status, fmt.Sprintf("%s free of %s", sysmem.Text(d.free), sysmem.Text(d.total)), fmt.Sprintf("less than %s is free: checkpoints and logs may not fit", sysmem.Text(l.FreeDisk)))
	}
	if d, err := diskOf("/dev/shm"); err == nil && l.SharedMemory > 0 {
		r.add(Host, "/dev/shm", grade(d.total < l.SharedMemory, l.shortage()), sysmem.Text(d.total), fmt.Sprintf("less than %s: data loaders and NCCL share memory there; docker run --shm-size, or mount -o remount,size=", sysmem.Text(l.SharedMemory)))
	}
}

func (r *Report) limits(l Limits) {
	for _, x := range processLimits() {
		text := strconv.FormatUint(x.value, 10)
		if x.value == infinite {
			text = "unlimited"
		}
		switch x.name {
		case "open files":
			r.add(Host, x.name, grade(x.value < 65536, Warn), text, "less than 65536: ulimit -n 1048576, or LimitNOFILE of the service")
			r.Facts[x.name] = text
		case "locked memory":
			if x.value != infinite {
				text = sysmem.Text(float64(x.value))
			}
			if l.LockedMemory > 0 {
				r.add(Host, x.name, grade(float64(x.value) < l.LockedMemory, l.shortage()), text, fmt.Sprintf("less than %s: RDMA pins memory; ulimit -l unlimited, or LimitMEMLOCK of the service", sysmem.Text(l.LockedMemory)))
			}
			r.Facts[x.name] = text
		default:
			r.add(Host, x.name, grade(x.value < 4096, Warn), text, "less than 4096: ulimit -u")
		}
	}
}

// tunables checks settings of the kernel that slow down training.
func (r *Report) tunables(m Machine) {
	if governor := m.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); governor != "" {
		r.add(Host, "CPU governor", grade(governor == "powersave", Warn), governor, "cpupower frequency-set -g performance")
		r.Facts["CPU governor"] = governor
	}
	if text := m.read("sys/kernel/mm/transparent_hugepage/enabled"); text != "" {
		_, after, _ := strings.Cut(text, "[")
		chosen, _, _ := strings.Cut(after, "]")
		r.ok(Host, "transparent huge pages", "%s", chosen)
		r.Facts["transparent huge pages"] = chosen
	}
	if balancing := m.read("proc/sys/kernel/numa_balancing"); balancing != "" && len(m.list("sys/devices/system/node")) > 0 {
		nodes := 0
		for _, name := range m.list("sys/devices/system/node") {
			if _, err := strconv.Atoi(strings.TrimPrefix(name, "node")); err == nil {
				nodes++
			}
		}
		r.add(Host, "NUMA", grade(balancing != "0" && nodes > 1, Warn), plaintext.Quantity(nodes, "node", "nodes")+", balancing "+balancing, "balancing moves pages under a run: sysctl kernel.numa_balancing=0")
	}
}

func (r *Report) clock() {
	synchronised, known := clockSynchronised()
	if !known {
		return
	}
	value := "synchronised"
	if !synchronised {
		value = "not synchronised"
	}
	r.add(Host, "clock", grade(!synchronised, Warn), value, "start chronyd or systemd-timesyncd: logs of ranks cannot be put in order")
}

// alarming lists texts of the kernel log that indicate broken hardware.
var alarming = []string{"xid", "gpu reset", "hung_task", "blocked for more than", "mce:", "machine check", "hardware error", "uncorrectable", "out of memory", "oom-kill", "i/o error", "link is down"}

// kernelLog looks for alarming lines of the last minutes.
func (r *Report) kernelLog(ctx context.Context, m Machine, l Limits) {
	text, _, err := m.run(ctx, l.ToolTimeout, "dmesg", "--time-format", "iso", "--level", "emerg,alert,crit,err,warn")
	if err != nil {
		r.ok(Host, "kernel log", "not readable: %v", err)
		return
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse("2006-01-02T15:04:05,000000-07:00", stamp)
		if err != nil || time.Since(at) > l.KernelLog {
			continue
		}
		lower := strings.ToLower(line)
		for _, word := range alarming {
			if strings.Contains(lower, word) {
				found = append(found, strings.TrimSpace(line))
				break
			}
		}
	}
	if len(found) == 0 {
		r.ok(Host, "kernel log", "nothing alarming in the last %v", l.KernelLog)
		return
	}
	r.add(Host, "kernel log", Warn, fmt.Sprintf("%d alarming lines, the last: %s", len(found), found[len(found)-1]), "read dmesg: the hardware may be failing")
}
