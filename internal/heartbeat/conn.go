package heartbeat

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	beat    = time.Second      // between signs of life
	maxLine = 64 << 10         // the longest line
	wordHi  = "primus"         // the greeting of the side that accepts
	wordOwn = "claim"          // the answer of the other side
	wordOn  = "welcome"        // the claim is accepted
	wordNo  = "refused"        // it is not
	wordUp  = "alive"          // a sign of life
	retry   = time.Second / 10 // between attempts to connect
)

// Silence is the time without a word of the other side after which it is lost. A process that has
// ended is seen at once, by its connection: this is for one that hangs or is cut off, and longer
// than a busy machine keeps a process waiting for a processor.
const Silence = 15 * time.Second

// Conn is a connection between two processes of a job.
type Conn struct {
	conn  *patient
	lines *bufio.Scanner
	write sync.Mutex
	ended chan struct{}
	end   sync.Once
}

func newConn(conn net.Conn) *Conn {
	p := &patient{Conn: conn}
	c := &Conn{conn: p, lines: bufio.NewScanner(p), ended: make(chan struct{})}
	c.lines.Buffer(nil, maxLine)
	c.lines.Split(wholeLines)
	return c
}

// Dial connects with the process that accepts at an address, which may start later than this one.
// It tries until ctx ends.
func Dial(ctx context.Context, address, secret, claim string) (*Conn, error) {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			return Join(conn, secret, claim)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retry):
		}
	}
}

// Join makes a claim on a connection, which it closes if the claim is refused.
func Join(conn net.Conn, secret, claim string) (*Conn, error) {
	c := newConn(conn)
	word, rest, err := c.Receive()
	if err == nil && word != wordHi {
		err = fmt.Errorf("given %q, want the greeting of primus", word)
	}
	if err == nil {
		c.Send(wordOwn, Proof(secret, rest, claim)+" "+claim)
		if word, rest, err = c.Receive(); err == nil && word != wordOn {
			err = errors.New(rest)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Accept receives the claim of a process. The caller answers it with Welcome or Refuse. After an
// error the process has been refused.
func Accept(conn net.Conn, secret string) (*Conn, string, error) {
	c := newConn(conn)
	nonce := rand.Text()
	c.Send(wordHi, nonce)
	word, rest, err := c.Receive()
	proof, claim, _ := strings.Cut(rest, " ")
	switch {
	case err != nil:
	case word != wordOwn:
		err = fmt.Errorf("given the line %q, want a claim", word+" "+rest)
	case !hmac.Equal([]byte(proof), []byte(Proof(secret, nonce, claim))):
		err = fmt.Errorf("%s does not know the secret of the job", claim)
	}
	if err != nil {
		c.Refuse(err)
		return nil, "", err
	}
	return c, claim, nil
}

// Welcome accepts a claim.
func (c *Conn) Welcome() { c.Send(wordOn, "") }

// Refuse tells the other side why it cannot take part, and closes the connection.
func (c *Conn) Refuse(why error) {
	c.Send(wordNo, why.Error())
	c.Close()
}

// Proof shows that a process knows the secret of the job.
func Proof(secret, nonce, claim string) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s %s", nonce, claim)
	return hex.EncodeToString(h.Sum(nil))
}

// KeepAlive sends signs of life until the connection is closed.
func (c *Conn) KeepAlive() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-tick.C:
			c.Send(wordUp, "")
		}
	}
}

// Send writes a line: a word, and a rest without line breaks. Whoever reads sees that it fails.
func (c *Conn) Send(word, rest string) {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(Silence))
	_, _ = c.conn.Write([]byte(strings.TrimSpace(word+" "+strings.ReplaceAll(rest, "\n", " ")) + "\n"))
}

// wholeLines is bufio.ScanLines without what stands behind the last line break: a line that was cut
// off by the end of the connection, or by its time, says nothing.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if atEOF && !bytes.ContainsRune(data, '\n') {
		return 0, nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// Receive returns the next line that is not a sign of life.
func (c *Conn) Receive() (word, rest string, err error) {
	for {
		c.conn.waited = 0
		if !c.lines.Scan() {
			if err := c.lines.Err(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
				return "", "", err
			}
			return "", "", errClosed
		}
		if word, rest, _ = strings.Cut(c.lines.Text(), " "); word != wordUp {
			return word, rest, nil
		}
	}
}

// patient reads from a connection until a line takes longer than Silence. It waits beat by beat and
// counts each as one at most, because this process may have been stopped in the meantime, and then
// the other side has not been silent.
type patient struct {
	net.Conn
	waited time.Duration // for the line
}

func (p *patient) Read(b []byte) (int, error) {
	for {
		begun := time.Now()
		if err := p.SetReadDeadline(begun.Add(beat)); err != nil {
			return 0, err
		}
		n, err := p.Conn.Read(b)
		p.waited += min(time.Since(begun), beat)
		switch {
		case p.waited >= Silence:
			return n, os.ErrDeadlineExceeded
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		}
	}
}

// Close closes the connection.
func (c *Conn) Close() {
	c.end.Do(func() {
		close(c.ended)
		_ = c.conn.Close()
	})
}

var errClosed = errors.New("its connection is closed")

// Reason says why the other side is taken for lost after an error of Receive.
func Reason(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Sprintf("nothing was heard of it for %v", Silence)
	}
	if errors.Is(err, syscall.ECONNRESET) { // it has closed the connection before it read all
		err = errClosed
	}
	return err.Error()
}
