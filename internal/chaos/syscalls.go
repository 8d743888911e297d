//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callKind is a kind of system call that changes files.
type callKind string

const (
	callOpen     callKind = "open" // for writing
	callWrite    callKind = "write"
	callSync     callKind = "fsync"
	callRename   callKind = "rename"
	callExchange callKind = "exchange" // two paths change places
	callRemove   callKind = "remove"
	callMkdir    callKind = "mkdir"
	callTruncate callKind = "truncate"
	callClose    callKind = "close" // of a file that was open for writing
	callReport   callKind = "report"
	callUnknown  callKind = "unknown"
)

// fileCall is a system call that is about to be made.
type fileCall struct {
	kind callKind
	path string // below the directory that is observed
	to   string // the second path of a rename or exchange

	at     int64  // where a write begins
	data   []byte // of a write, and the text of a report, which goes to the standard error output
	size   int64  // after truncate
	exists bool   // the path of an open is there already
	empty  bool   // the open ends the content
}

// verdict is what becomes of a system call. The zero value lets it happen.
type verdict struct {
	fail  syscall.Errno
	short bool // a write takes only half of its bytes
}

// observer decides about the system calls of processes that change files below a directory. The
// kernel holds each call until it is decided (seccomp_unotify(2)), so the process needs no layer
// for it, and no call can go past it.
type observer struct {
	dir   string
	judge func(fileCall) verdict
}

// observe starts primus under an observer.
func (l *lab) observe(ctx context.Context, judge func(fileCall) verdict, args ...string) (*process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	p, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, args...)
		cmd.Env = append(cmd.Env, roleVariable+"="+roleObserved)
		cmd.ExtraFiles = []*os.File{theirs}
	})
	theirs.Close()
	if err != nil {
		return nil, err
	}
	listener, err := receive(ours)
	if err != nil {
		_, _ = p.wait() // it has said why
		return nil, fmt.Errorf("%w: this kernel does not let system calls be observed: %s", errSkip, strings.TrimSpace(p.Log.String()))
	}
	defer unix.Close(listener)
	err = observer{l.dir, judge}.serve(listener)
	if err != nil {
		p.Kill()
	}
	_, waited := p.wait()
	return p, errors.Join(err, waited)
}

// receive returns the descriptor that comes through a socket.
func receive(from *os.File) (int, error) {
	space := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) == 0 {
		return 0, fmt.Errorf("no descriptor came: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// beObserved is the role. It asks the kernel to hold the calls of this process, hands the means of
// deciding them to its parent, and becomes primus.
func beObserved(args []string) int {
	runtime.LockOSThread() // the thread that becomes primus is the one whose calls are held
	listener, err := holdCalls()
	if err == nil {
		err = unix.Sendmsg(3, []byte{0}, unix.UnixRights(listener), nil, 0)
	}
	if err == nil {
		err = os.Setenv(roleVariable, rolePrimus)
	}
	if err == nil {
		unix.CloseOnExec(3)
		err = syscall.Exec(self(), append([]string{os.Args[0]}, args...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// heldCalls are the calls that the kernel holds: all that change files in ways that primus uses.
var heldCalls = []uint32{
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_CLOSE, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT,
	unix.SYS_COPY_FILE_RANGE, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FALLOCATE,
}

// holdCalls makes the kernel hold the calls of this thread and of what it executes.
func holdCalls() (listener int, err error) {
	const (
		load, equal, anyBit, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
			unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		number, thirdArgument = 0, 16 + 2*8 // offsets in struct seccomp_data
	)
	program := []unix.SockFilter{{Code: load, K: number}}
	for i, nr := range heldCalls {
		program = append(program, unix.SockFilter{Code: equal, Jt: uint8(len(heldCalls) - i + 3), K: nr})
	}
	program = append(program,
		unix.SockFilter{Code: equal, Jf: 2, K: unix.SYS_OPENAT},
		unix.SockFilter{Code: load, K: thirdArgument},
		unix.SockFilter{Code: anyBit, Jt: 1, K: unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC},
		unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// Without WAIT_KILLABLE_RECV a signal, such as those by which the Go runtime stops a thread, would
	// repeat a call that was decided.
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// heldCall is struct seccomp_notif.
type heldCall struct {
	id        uint64
	pid       uint32
	flags     uint32
	number    int32
	arch      uint32
	pointer   uint64
	arguments [6]uint64
}

// decision is struct seccomp_notif_resp.
type decision struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve decides the calls until no process is left.
func (o observer) serve(listener int) error {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for a system call: %w", err)
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if ready[0].Revents != 0 {
				return nil
			}
			continue
		}
		var held heldCall
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&held))); errno != 0 {
			if errno == unix.ENOENT || errno == unix.EINTR {
				continue // the process was killed, or this one got a signal
			}
			return fmt.Errorf("receive a system call: %w", errno)
		}
		d, err := o.decide(&held)
		if err != nil {
			return err
		}
		d.id = held.id
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&d))); errno != 0 && errno != unix.ENOENT {
			return fmt.Errorf("decide a system call: %w", errno)
		}
	}
}

func (o observer) decide(held *heldCall) (decision, error) {
	goOn := decision{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if held.number == unix.SYS_COPY_FILE_RANGE {
		return decision{errno: -int32(unix.ENOSYS)}, nil // what copies will write instead
	}
	call, err := o.read(held)
	if err != nil {
		return goOn, fmt.Errorf("look at system call %d: %w", held.number, err)
	}
	if call.kind == "" {
		return goOn, nil
	}
	v := o.judge(call)
	switch {
	case v.fail != 0:
		return decision{errno: -int32(v.fail)}, nil
	case v.short && len(call.data) > 1:
		n, err := held.writeHalf(call)
		return decision{value: int64(n)}, err
	}
	return goOn, nil
}

// read returns what a call is about to do, no kind if it changes nothing below the directory.
func (o observer) read(held *heldCall) (c fileCall, err error) {
	a := &held.arguments
	switch held.number {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if c, err = o.ofDescriptor(held, callWrite); err != nil {
			return c, err
		}
		if a[0] == 2 {
			c = fileCall{kind: callReport}
		}
		if c.kind == "" {
			return c, nil
		}
		c.data, err = held.memory(a[1], int(a[2]))
		if held.number == unix.SYS_PWRITE64 {
			c.at = int64(a[3])
		} else if c.kind == callWrite && err == nil {
			c.at, err = held.position()
		}
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return o.ofDescriptor(held, callSync)
	case unix.SYS_CLOSE:
		if c, err = o.ofDescriptor(held, callClose); c.kind != "" && err == nil {
			var flags int
			if flags, err = held.openFlags(); flags&(unix.O_WRONLY|unix.O_RDWR) == 0 {
				c.kind = ""
			}
		}
	case unix.SYS_FTRUNCATE:
		c, err = o.ofDescriptor(held, callTruncate)
		c.size = int64(a[1])
	case unix.SYS_TRUNCATE:
		c, err = o.ofPath(held, callTruncate, workingDir, a[0])
		c.size = int64(a[1])
	case unix.SYS_OPENAT:
		if c, err = o.ofPath(held, callOpen, a[0], a[1]); c.kind == "" || err != nil {
			return c, err
		}
		_, missing := os.Lstat(c.path)
		c.exists, c.empty = missing == nil, a[2]&unix.O_TRUNC != 0
		if !c.exists && a[2]&unix.O_CREAT == 0 || c.exists && a[2]&unix.O_EXCL != 0 {
			c.kind = "" // it fails by itself
		}
	case unix.SYS_MKDIRAT:
		if c, err = o.ofPath(held, callMkdir, a[0], a[1]); c.kind != "" && err == nil {
			if _, err := os.Lstat(c.path); err == nil {
				c.kind = "" // it fails by itself
			}
		}
	case unix.SYS_UNLINKAT:
		if c, err = o.ofPath(held, callRemove, a[0], a[1]); c.kind != "" && err == nil && !removable(c.path, a[2]&unix.AT_REMOVEDIR != 0) {
			c.kind = "" // it fails by itself
		}
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		kind := callRename
		if held.number == unix.SYS_RENAMEAT2 && a[4]&unix.RENAME_EXCHANGE != 0 {
			kind = callExchange
		}
		if c, err = o.ofPath(held, kind, a[0], a[1]); c.kind == "" || err != nil {
			return c, err
		}
		var to fileCall
		to, err = o.ofPath(held, kind, a[2], a[3])
		if c.to = to.path; to.kind == "" && err == nil {
			err = fmt.Errorf("%s is moved out of %s", c.path, o.dir)
		}
	case unix.SYS_SYMLINKAT:
		c, err = o.ofPath(held, callUnknown, a[1], a[2])
	case unix.SYS_LINKAT:
		c, err = o.ofPath(held, callUnknown, a[2], a[3])
	default:
		c, err = o.ofDescriptor(held, callUnknown)
	}
	if c.kind == callUnknown && err == nil {
		err = fmt.Errorf("%s is changed in a way that the drills do not know", c.path)
	}
	return c, err
}

// removable reports whether a path can be removed as a directory or as something else.
func removable(path string, asDir bool) bool {
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() != asDir {
		return false
	}
	if !asDir {
		return true
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// ofDescriptor returns a call whose first argument is an open file.
func (o observer) ofDescriptor(held *heldCall, kind callKind) (fileCall, error) {
	path, err := os.Readlink(held.proc("fd", strconv.Itoa(int(int32(held.arguments[0])))))
	if err != nil { // no descriptor: the call fails by itself
		return fileCall{}, nil
	}
	return o.below(kind, path), nil
}

// workingDir is AT_FDCWD as an argument of a call.
const workingDir = uint64(1<<32 + unix.AT_FDCWD)

// ofPath returns a call that names a path.
func (o observer) ofPath(held *heldCall, kind callKind, dir, name uint64) (fileCall, error) {
	path, err := held.text(name)
	if err != nil {
		return fileCall{}, err
	}
	if !filepath.IsAbs(path) {
		link := held.proc("cwd")
		if int32(dir) != unix.AT_FDCWD {
			link = held.proc("fd", strconv.Itoa(int(int32(dir))))
		}
		base, err := os.Readlink(link)
		if err != nil {
			return fileCall{}, err
		}
		path = filepath.Join(base, path)
	}
	return o.below(kind, filepath.Clean(path)), nil
}

func (o observer) below(kind callKind, path string) fileCall {
	if path != o.dir && !strings.HasPrefix(path, o.dir+"/") || strings.HasSuffix(path, " (deleted)") {
		return fileCall{}
	}
	return fileCall{kind: kind, path: path}
}

// proc returns a path below the directory of the process in /proc.
func (h *heldCall) proc(elem ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(int(h.pid))}, elem...)...)
}

// memory returns bytes of the process.
func (h *heldCall) memory(at uint64, n int) ([]byte, error) {
	data := make([]byte, n)
	f, err := os.Open(h.proc("mem"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = f.ReadAt(data, int64(at))
	return data, err
}

// text returns the text that ends with a zero.
func (h *heldCall) text(at uint64) (string, error) {
	f, err := os.Open(h.proc("mem"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	data := make([]byte, unix.PathMax)
	n, err := f.ReadAt(data, int64(at)) // the end of the mapping may come first
	text, _, found := strings.Cut(string(data[:n]), "\x00")
	if !found {
		return "", err
	}
	return text, nil
}

// fdinfo returns a field of an open file, in octal or decimal.
func (h *heldCall) fdinfo(name string, base int) (int64, error) {
	info, err := os.ReadFile(h.proc("fdinfo", strconv.Itoa(int(int32(h.arguments[0])))))
	for line := range strings.Lines(string(info)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strconv.ParseInt(strings.TrimSpace(value), base, 64)
		}
	}
	return 0, fmt.Errorf("no field %s: %w", name, err)
}

func (h *heldCall) openFlags() (int, error) {
	flags, err := h.fdinfo("flags", 8)
	return int(flags), err
}

// position returns where a write begins.
func (h *heldCall) position() (int64, error) {
	flags, err := h.openFlags()
	if err != nil {
		return 0, err
	}
	if flags&unix.O_APPEND != 0 {
		info, err := os.Stat(h.proc("fd", strconv.Itoa(int(int32(h.arguments[0])))))
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return h.fdinfo("pos", 10)
}

// writeHalf writes the first half of the bytes in the place of the process.
func (h *heldCall) writeHalf(c fileCall) (int, error) {
	pidfd, err := unix.PidfdOpen(int(h.pid), unix.O_EXCL) // PIDFD_THREAD
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, int(int32(h.arguments[0])), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	part := c.data[:len(c.data)/2]
	if h.number == unix.SYS_PWRITE64 {
		return unix.Pwrite(fd, part, c.at)
	}
	return unix.Write(fd, part)
}
