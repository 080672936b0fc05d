package apicall

import (
	"errors"
	"net"
	"sync/atomic"
)

// errUnasked says that what looks like an answer was there before anything was asked. net/http closes a connection on
// which it finds such bytes while nothing is asked; between its looks the next request may get the connection.
var errUnasked = errors.New("the peer had spoken before it was asked, so this is no answer to this call")

// line is a connection that knows whether anything was heard since the present request began to leave.
type line struct {
	net.Conn
	asking atomic.Bool // a request has the connection, and nothing of it has left
	heard  atomic.Bool // something was heard since
}

// lineOf finds the line below TLS; nil: the connection is none of ours.
func lineOf(c net.Conn) *line {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	l, _ := c.(*line)
	return l
}

// ask begins a request: what was heard until its first byte leaves does not answer it.
func (l *line) ask() {
	if l != nil {
		l.asking.Store(true)
	}
}

// answers reports whether what came may answer the request. If not, the connection is closed: nobody knows what else
// lies in it.
func (l *line) answers() bool {
	if l == nil || !l.asking.Load() && l.heard.Load() {
		return true
	}
	_ = l.Close() // it is given up, whatever its close says
	return false
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(true)
	}
	return n, err
}

func (l *line) Write(b []byte) (int, error) {
	if l.asking.Load() {
		l.heard.Store(false)
		l.asking.Store(false)
	}
	return l.Conn.Write(b)
}
