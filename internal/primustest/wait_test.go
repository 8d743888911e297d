package primustest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const envRole = "PRIMUSTEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "ends":
		fmt.Println("no such port")
		os.Exit(3)
	case "hangs":
		fmt.Println("begun")
		time.Sleep(time.Hour)
	case "parent":
		beParent()
	}
	os.Exit(m.Run())
}

func TestWait(t *testing.T) {
	never := func() bool { return false }
	steps := int64(0)
	goesOn := func() int64 { steps++; return steps }
	ended := make(chan struct{})
	close(ended)
	for _, tt := range []struct {
		name  string
		wait  Wait
		quiet time.Duration
		want  string
	}{
		{"it has come", Wait{Until: func() bool { return true }, Ended: ended}, 0, ""},
		{"nothing happens", Wait{Until: never}, time.Millisecond, "given nothing new for 1ms, want it by then"},
		{"the process has ended", Wait{Until: never, Ended: ended}, time.Hour, "given the end of the process after 0s, want this before"},
		{"it goes on for too long", Wait{Until: never, Progress: goesOn}, time.Hour, "given 100ms, want it by then"},
	} {
		assert.Equal(t, tt.want, tt.wait.wait(tt.quiet, 100*time.Millisecond, 0), tt.name)
	}
	slow := 0 // it comes after more than the quiet time, and something happens all the while
	assert.Empty(t, Wait{Until: func() bool { slow++; return slow > 50 }, Progress: goesOn}.wait(100*time.Millisecond, time.Hour, 0))
}

// program starts this program in a role.
func program(t *testing.T, role string) *Program {
	t.Helper()
	p := NewProgram(t, exec.CommandContext(t.Context(), os.Args[0]))
	p.Env = append(os.Environ(), envRole+"="+role)
	require.NoError(t, p.Start())
	return p
}

// A wait that fails says what the program has printed, and how it has ended or where it is.
func TestReport(t *testing.T) {
	p := program(t, "ends")
	require.Error(t, p.Wait())
	p.WaitFor("no such port")
	assert.Contains(t, p.report(), "has written:\nno such port\n\nand has ended: exit status 3")

	p = program(t, "hangs")
	p.WaitFor("begun")
	report := p.report()
	assert.Contains(t, report, "has written:\nbegun\n\nIt goes on, here:\n")
	assert.Contains(t, report, "primustest.TestMain", "its goroutines")
}
