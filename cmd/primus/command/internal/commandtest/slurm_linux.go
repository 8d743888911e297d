package commandtest

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/procgroup"
)

// StartSlurm starts a Slurm of one node, this machine, for the length of a test, and points the
// commands of Slurm at it. Without Slurm or the rights to run it the test skips.
func StartSlurm(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a Slurm")
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd runs jobs of root only when it is root")
	}
	Tools(t, "munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo")
	dir, err := os.MkdirTemp("", "slurm") // sockets have short names
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	key := make([]byte, 1024)
	_, err = rand.Read(key)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	host, _, _ = strings.Cut(host, ".")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("key", string(key))
	write("slurm.conf", strings.NewReplacer("DIR", dir, "HOST", host, "CTLD", strconv.Itoa(primustest.FreePort(t)), "SLURMD", strconv.Itoa(primustest.FreePort(t))).Replace(`ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=CTLD
SlurmdPort=SLURMD
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock
CredType=cred/munge
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
SlurmctldLogFile=DIR/slurmctld.log
SlurmdLogFile=DIR/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=5
NodeName=HOST NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000
PartitionName=main Nodes=HOST Default=YES State=UP
`))
	for _, name := range []string{"state", "spool"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	daemon := func(name string, args ...string) {
		log, err := os.Create(filepath.Join(dir, name+".out"))
		require.NoError(t, err)
		cmd := exec.Command(name, args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = procgroup.Attr(0, 0)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			procgroup.Signal(cmd.Process.Pid, nil, syscall.SIGTERM)
			timer := time.AfterFunc(10*time.Second, func() { procgroup.Signal(cmd.Process.Pid, nil, syscall.SIGKILL) })
			_ = cmd.Wait()
			timer.Stop()
			_ = log.Close()
		})
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	daemon("munged", "--force", "--foreground", "--socket="+filepath.Join(dir, "munge.sock"), "--key-file="+filepath.Join(dir, "key"),
		"--log-file="+filepath.Join(dir, "munge.log"), "--pid-file="+filepath.Join(dir, "munge.pid"), "--seed-file="+filepath.Join(dir, "munge.seed"))
	logs := func() string {
		var all strings.Builder
		for _, name := range []string{"munged.out", "slurmctld.log", "slurmd.log"} {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			fmt.Fprintf(&all, "%s:\n%s\n", name, text)
		}
		return all.String()
	}
	primustest.Wait{What: "the socket of munged", Report: logs, Until: func() bool {
		_, err := os.Stat(filepath.Join(dir, "munge.sock"))
		return err == nil
	}}.Do(t)
	daemon("slurmctld", "-D", "-c", "-f", filepath.Join(dir, "slurm.conf"))
	daemon("slurmd", "-D", "-c", "-f", filepath.Join(dir, "slurm.conf"))
	primustest.Wait{What: "an idle node of Slurm", Report: logs, Until: func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	}}.Do(t)
}
