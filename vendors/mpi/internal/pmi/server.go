package pmi

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
)

// The first words of the lines on a connection.
const (
	lineMessage = "pmi" // a line of the interface follows
	lineLost    = "lost"
	lineBye     = "bye"   // the rank ends in order
	lineStuck   = "stuck" // the rank waits too long: where follows
	lineCame    = "came"  // the numbers of the ranks that are there follow
	lineAll     = "all"   // all ranks are there
	lineAsk     = "ask"   // the rank is asked for its state
	lineState   = "state" // the answer follows
	lineLeave   = "leave" // the rank ends before the job has begun: why follows
)

// Server keeps what the ranks of a job publish.
type Server struct {
	listener net.Listener
	ranks    int
	secret   string
	host     Host
	serving  sync.WaitGroup

	done   chan struct{} // closed when all ranks have ended, or one is lost
	finish func()        // closes it

	mu       sync.Mutex
	links    map[int]*heartbeat.Conn
	complete bool // all ranks have come
	changed  bool // ranks have come since the others were told
	ended    int
	values   map[string]string
	waiting  int // ranks in the barrier
	lost     string
	stuck    map[int]bool   // ranks that wait too long
	states   map[int]string // of those that were asked
}

// collect is how long the server waits for more ranks that say that they wait too long.
const collect = time.Second

// news is how often ranks that wait for others are told who is there.
const news = time.Second

// Host is what a Server needs of its process. Its functions may be nil, and are called at any time.
type Host struct {
	Refused func(error)                        // with the address of whoever is not let in, and why
	Judge   func(states map[int]string) string // says which ranks hang, by the states of those that answer; "" if it cannot
}

// Serve accepts the ranks of a job on a listener, until Close.
func Serve(listener net.Listener, ranks int, secret string, host Host) *Server {
	if host.Refused == nil {
		host.Refused = func(error) {}
	}
	if host.Judge == nil {
		host.Judge = func(map[int]string) string { return "" }
	}
	s := &Server{listener: listener, ranks: ranks, secret: secret, host: host, states: map[int]string{}, links: map[int]*heartbeat.Conn{}, values: map[string]string{}, done: make(chan struct{})}
	s.finish = sync.OnceFunc(func() { close(s.done) })
	s.serving.Go(s.accept)
	s.serving.Go(s.announce)
	return s
}

// announce tells the ranks who has come, until all have.
func (s *Server) announce() {
	tick := time.NewTicker(news)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		complete := s.complete
		if s.changed && !complete {
			text := Numbers(slices.Sorted(maps.Keys(s.links)))
			for _, l := range s.links {
				l.Send(lineCame, text)
			}
		}
		s.changed = false
		s.mu.Unlock()
		if complete {
			return
		}
	}
}

// Close waits until all ranks have ended, for a few seconds, and then ends their connections.
func (s *Server) Close() error {
	select {
	case <-s.done:
	case <-time.After(heartbeat.Silence):
	}
	s.finish()
	err := s.listener.Close()
	s.mu.Lock()
	for _, l := range s.links {
		l.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Abandon is Close at once, for a job whose ranks have ended their connections or never made one.
func (s *Server) Abandon() error {
	s.finish()
	return s.Close()
}

// End ends the job for all ranks, which hear why, unless they know that it has ended.
func (s *Server) End(why string) error {
	s.mu.Lock()
	s.giveUp(nobody, why)
	s.mu.Unlock()
	return s.Abandon()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

// serve speaks with one rank as long as it lives.
func (s *Server) serve(conn net.Conn) {
	l, claim, err := heartbeat.Accept(conn, s.secret)
	if err != nil {
		s.host.Refused(fmt.Errorf("%v: %w", conn.RemoteAddr(), err)) // who is there has been told
		return
	}
	defer l.Close()
	rank, err := s.admit(l, claim)
	if err != nil {
		s.host.Refused(fmt.Errorf("%v: %w", conn.RemoteAddr(), err))
		l.Refuse(err)
		return
	}
	s.serving.Go(l.KeepAlive)
	for {
		word, rest, err := l.Receive()
		switch {
		case err != nil:
			s.lose(rank, heartbeat.Reason(err))
			return
		case word == lineBye:
			s.mu.Lock()
			delete(s.links, rank)
			if s.ended++; s.ended == s.ranks {
				s.finish()
			}
			s.mu.Unlock()
			return
		case word == lineMessage:
			s.answer(l, rank, rest)
		case word == lineStuck:
			s.wait(rank, rest)
		case word == lineState:
			s.mu.Lock()
			s.states[rank] = rest
			s.mu.Unlock()
		case word == lineLeave:
			s.mu.Lock()
			s.giveUp(rank, fmt.Sprintf("rank %d has left: %s", rank, rest))
			s.mu.Unlock()
			return
		}
	}
}

// claimFormat is what a rank says of itself.
const claimFormat = "rank %d of %d"

func claimOf(rank, ranks int) string { return fmt.Sprintf(claimFormat, rank, ranks) }

// admit finds out which rank a connection is of.
func (s *Server) admit(l *heartbeat.Conn, claim string) (int, error) {
	var rank, ranks int
	if n, _ := fmt.Sscanf(claim, claimFormat, &rank, &ranks); n != 2 {
		return 0, fmt.Errorf("given %q, want rank and number of ranks", claim)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ranks != s.ranks || rank < 0 || rank >= s.ranks:
		return 0, fmt.Errorf("given rank %d of %d, want one of %d ranks", rank, ranks, s.ranks)
	case s.links[rank] != nil:
		return 0, fmt.Errorf("there is a rank %d already: two processes have the same number", rank)
	case s.lost != "":
		return 0, errors.New(s.lost)
	}
	s.links[rank] = l
	s.changed = true
	l.Welcome()
	if len(s.links) == s.ranks {
		s.complete = true
		for _, each := range s.links {
			each.Send(lineAll, "")
		}
	}
	return rank, nil
}

// wait takes note of a rank that waits too long. When all that do have said so, the others are
// those that hang.
func (s *Server) wait(rank int, where string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck == nil {
		s.stuck = map[int]bool{}
		for _, l := range s.links {
			l.Send(lineAsk, "")
		}
		time.AfterFunc(collect, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.giveUp(nobody, s.blame(where))
		})
	}
	s.stuck[rank] = true
}

// nobody is the rank of which giveUp knows that it is not there.
const nobody = -1

// blame says which ranks hang while the others wait. s.mu is held.
func (s *Server) blame(where string) string {
	if text := s.host.Judge(s.states); text != "" {
		return text + "; seen after " + where
	}
	var hanging []string
	for rank := range s.ranks {
		if !s.stuck[rank] {
			hanging = append(hanging, strconv.Itoa(rank))
		}
	}
	switch len(hanging) {
	case 0:
		return "all ranks wait for each other in " + where
	case 1:
		return fmt.Sprintf("rank %s hangs: it has not come to where the others wait, %s", hanging[0], where)
	}
	return fmt.Sprintf("ranks %s hang: they have not come to where the others wait, %s", strings.Join(hanging, ", "), where)
}

// lose tells all ranks that one is gone.
func (s *Server) lose(rank int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveUp(rank, fmt.Sprintf("rank %d is gone: %s", rank, why))
}

// giveUp ends the job for all ranks but one, if it has not ended yet. s.mu is held.
func (s *Server) giveUp(rank int, why string) {
	delete(s.links, rank)
	if s.lost != "" {
		return
	}
	s.lost = why
	for _, l := range s.links {
		l.Send(lineLost, why)
	}
	s.finish()
}

// answer answers a line of the interface.
func (s *Server) answer(l *heartbeat.Conn, rank int, line string) {
	args := map[string]string{}
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		args[key] = value
	}
	reply := func(format string, values ...any) { l.Send(lineMessage, "cmd="+fmt.Sprintf(format, values...)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	switch args["cmd"] {
	case "init":
		reply("response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	case "get_maxes":
		reply("maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
	case "get_appnum":
		reply("appnum appnum=0")
	case "get_my_kvsname":
		reply("my_kvsname kvsname=primus")
	case "get_universe_size":
		reply("universe_size size=%d", s.ranks)
	case "put":
		s.values[args["key"]] = args["value"]
		reply("put_result rc=0 msg=success")
	case "get":
		if value, ok := s.values[args["key"]]; ok {
			reply("get_result rc=0 msg=success value=%s", value)
		} else {
			reply("get_result rc=-1 msg=key_not_found value=unknown")
		}
	case "barrier_in":
		if s.waiting++; s.waiting == s.ranks {
			s.waiting = 0
			for _, each := range s.links {
				each.Send(lineMessage, "cmd=barrier_out")
			}
		}
	case "finalize":
		reply("finalize_ack rc=0")
	case "abort":
		s.giveUp(rank, fmt.Sprintf("rank %d has ended the job: MPI_Abort with code %s", rank, args["exitcode"]))
	default:
		reply("%s_result rc=-1 msg=unknown_command", args["cmd"])
	}
}
