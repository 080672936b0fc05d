package emulator

import "time"

// A service whose calls start slowly has a client that does not begin with many calls at once: at most maxFirstCalls in the first
// second of a flow. A flow begins with the first call, and anew with the first one after flowPause without any.
const (
	maxFirstCalls = 4
	firstSecond   = time.Second
	flowPause     = 10 * time.Minute
)

// pace is how the calls of one service come.
type pace struct {
	underWay int
	began    time.Time // when the flow began; zero: before this server was started
}

// beginPace counts a call that begins. More of them at once than the service takes, or than a flow may begin with, are a violation.
func (s *Server) beginPace(c *call) {
	if c.of == nil || !c.of.startsSlowly && c.of.mostAtOnce == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.paces[c.of]
	if p == nil {
		p = &pace{}
		s.paces[c.of] = p
	}
	if p.underWay == 0 && s.isQuiet(c) {
		p.began = c.arrived
	}
	p.underWay++
	if most := c.of.mostAtOnce; most > 0 && p.underWay > most {
		s.recordViolationLocked(c, "%d calls at once, where %d are allowed", p.underWay, most)
	}
	if !c.of.startsSlowly {
		return
	}
	if age := c.arrived.Sub(p.began); p.underWay > maxFirstCalls && age >= 0 && age <= firstSecond {
		s.recordViolationLocked(c, "%d calls at once in the first second", p.underWay)
	}
}

// isQuiet reports whether no call of the service ended within flowPause. The caller holds mu.
func (s *Server) isQuiet(c *call) bool {
	for _, o := range s.operations {
		if last, called := s.state.lastCalls[o.op]; o.of == c.of && called && c.arrived.Sub(last) < flowPause {
			return false
		}
	}
	return true
}

func (s *Server) endPace(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.paces[c.of]; p != nil {
		p.underWay--
	}
}
