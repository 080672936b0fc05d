package apicall

import (
	"errors"
	"net"
	"sync"
)

// errUnasked says that what looks like an answer was there before anything was asked. net/http closes a connection on
// which it finds such bytes while nothing is asked; between its looks the next request may get the connection.
var errUnasked = errors.New("the peer had spoken before it was asked, so this is no answer to this call")

// line is a connection that knows, of each request that it carries, whether anything was heard after that began to leave.
type line struct {
	net.Conn
	mu  sync.Mutex
	now *turn // of the present request; nil: there was none yet; guarded by mu
}

// turn is one request's time on a line. The next one's may begin before anybody has looked at the answer.
type turn struct {
	line   *line
	asked  bool // its first bytes have left, or nearly; guarded by line.mu
	heard  bool // something came after that; guarded by line.mu
	spoilt bool // the turn before had no answer of its own, so what comes now may be its; guarded by line.mu
}

// turnOn begins a request's turn on a connection, below its TLS; nil: the connection is none of ours.
func turnOn(c net.Conn) *turn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	l, ok := c.(*line)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = &turn{line: l, spoilt: l.now != nil && !l.now.heard}
	return l.now
}

// answered reports whether what came may answer the request. If not, the connection is closed: nobody knows what else
// lies in it.
func (t *turn) answered() bool {
	if t == nil {
		return true
	}
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	if t.asked && t.heard {
		return true
	}
	_ = t.line.Close() // it is given up, whatever its close says
	return false
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.now != nil && l.now.asked {
			l.now.heard = true
		}
	}
	return n, err
}

func (l *line) Write(b []byte) (int, error) {
	if l.spoilt() {
		return 0, errors.Join(errUnasked, l.Close())
	}
	return l.Conn.Write(b)
}

// spoilt notes that the present request begins to leave, unless it must not.
func (l *line) spoilt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return false
	}
	l.now.asked = !l.now.spoilt
	return l.now.spoilt
}
