package pmi

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	beat    = time.Second     // between signs of life
	silence = 6 * time.Second // after which the other side is lost
	maxLine = 16 << 10        // the longest line
)

// The first words of the lines on a connection.
const (
	lineAlive   = "alive"
	lineMessage = "pmi" // a line of the interface follows
	lineLost    = "lost"
	lineBye     = "bye" // the rank ends in order
)

// link is a connection between a rank and the server.
type link struct {
	conn  net.Conn
	lines *bufio.Scanner
	write sync.Mutex
	ended chan struct{}
	end   sync.Once
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, lines: bufio.NewScanner(conn), ended: make(chan struct{})}
	l.lines.Buffer(nil, maxLine)
	return l
}

// keepAlive sends signs of life until the link is closed.
func (l *link) keepAlive() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-tick.C:
			l.send(lineAlive, "")
		}
	}
}

// send writes a line. That it fails is seen by who reads.
func (l *link) send(word, rest string) {
	l.write.Lock()
	defer l.write.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(silence))
	_, _ = l.conn.Write([]byte(strings.TrimSpace(word+" "+rest) + "\n"))
}

// receive returns the next line that is not a sign of life.
func (l *link) receive() (word, rest string, err error) {
	for {
		if err := l.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return "", "", err
		}
		if !l.lines.Scan() {
			if err := l.lines.Err(); err != nil {
				return "", "", err
			}
			return "", "", errClosed
		}
		if word, rest, _ = strings.Cut(l.lines.Text(), " "); word != lineAlive {
			return word, rest, nil
		}
	}
}

func (l *link) close() {
	l.end.Do(func() {
		close(l.ended)
		_ = l.conn.Close()
	})
}

type closedError struct{}

func (closedError) Error() string { return "its connection is closed" }

var errClosed = closedError{}

// reason says why a side is taken for lost.
func reason(err error) string {
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return fmt.Sprintf("nothing was heard of it for %v", silence)
	}
	return err.Error()
}

// proof shows that a rank knows the secret of the job.
func proof(secret, nonce string, rank, ranks int) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s rank %d of %d", nonce, rank, ranks)
	return hex.EncodeToString(h.Sum(nil))
}
