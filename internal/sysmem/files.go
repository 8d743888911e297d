package sysmem

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// The files of the kernel, below the root of the file system.
const (
	meminfo  = "proc/meminfo"
	ownGroup = "proc/self/cgroup"
	groups   = "sys/fs/cgroup"
)

// read returns the limit according to the files of a Linux system.
func read(root fs.FS) (Limit, error) {
	machine, err := readMeminfo(root)
	if err != nil {
		return Limit{}, err
	}
	least := Limit{Bytes: machine["MemTotal"] + machine["SwapTotal"], Source: "/" + meminfo}
	for _, l := range groupLimits(root, machine["SwapTotal"]) {
		if l.Bytes < least.Bytes {
			least = l
		}
	}
	return least, nil
}

// readMeminfo returns the sizes of /proc/meminfo in bytes.
func readMeminfo(root fs.FS) (map[string]uint64, error) {
	text, err := fs.ReadFile(root, meminfo)
	if err != nil {
		return nil, fmt.Errorf("read the size of memory: %w", err)
	}
	sizes := map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		if n, err := strconv.ParseUint(fields[1], 10, 50); err == nil {
			sizes[strings.TrimSuffix(fields[0], ":")] = n << 10
		}
	}
	if sizes["MemTotal"] == 0 {
		return nil, fmt.Errorf("read the size of memory: /%s has no line MemTotal", meminfo)
	}
	return sizes, nil
}

// groupLimits returns the limits of the control groups that this process is in. In a container the
// files are those of its own group although the path is that on the host, so each suffix of the
// path is tried, down to the empty one.
func groupLimits(root fs.FS, swap uint64) []Limit {
	text, err := fs.ReadFile(root, ownGroup)
	if err != nil {
		return nil
	}
	var found []Limit
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			found = append(found, limitsAbove(root, groups, parts[2], "memory.max", func(dir string, max uint64) uint64 {
				extra, ok := readNumber(root, path.Join(dir, "memory.swap.max"))
				if !ok {
					extra = swap
				}
				return max + min(extra, swap)
			})...)
		case strings.Contains(","+parts[1]+",", ",memory,"):
			found = append(found, limitsAbove(root, groups+"/memory", parts[2], "memory.limit_in_bytes", func(_ string, max uint64) uint64 {
				return max + swap
			})...)
		}
	}
	return found
}

// limitsAbove returns the limits in a file of a group and of all groups above it.
func limitsAbove(root fs.FS, hierarchy, group, file string, withSwap func(dir string, max uint64) uint64) []Limit {
	var found []Limit
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		dir := path.Join(hierarchy, at)
		if max, ok := readNumber(root, path.Join(dir, file)); ok && max < math.MaxInt64/2 { // version 1 has a huge number for no limit
			found = append(found, Limit{withSwap(dir, max), "/" + path.Join(dir, file)})
		}
		if at == "/" {
			return found
		}
	}
}

// readNumber returns the number in a file, and false for "max" and for a file that does not exist.
func readNumber(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
