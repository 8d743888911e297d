package preflight

import "golang.org/x/sys/unix"

func diskOf(dir string) (disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return disk{}, err
	}
	return disk{float64(s.Bavail) * float64(s.Bsize), float64(s.Blocks) * float64(s.Bsize)}, nil
}

func processLimits() []limit {
	var list []limit
	for name, which := range map[string]int{"open files": unix.RLIMIT_NOFILE, "locked memory": unix.RLIMIT_MEMLOCK, "processes": unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		if err := unix.Getrlimit(which, &l); err == nil {
			list = append(list, limit{name, l.Cur})
		}
	}
	return list
}

// clockSynchronised reports what the kernel knows about its clock.
func clockSynchronised() (synchronised, known bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unix.STA_UNSYNC == 0, true
}
