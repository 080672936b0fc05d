package apicall

import (
	"errors"
	"net"
	"sync"
)

// errUnasked says that what looks like an answer was there before anything was asked. net/http closes a connection on
// which it finds such bytes while nothing is asked; between its looks the next request may get the connection.
var errUnasked = errors.New("the peer had spoken before it was asked, so this is no answer to this call")

// trackedConn is a connection that knows, of each request that it carries, whether anything was heard after that began to leave.
type trackedConn struct {
	net.Conn
	mu      sync.Mutex
	current *connUse // of the present request; nil: there was none yet; guarded by mu
}

// connUse is one request's time on a line. The next one's may begin before anybody has looked at the answer.
type connUse struct {
	conn       *trackedConn
	content    *content // what it sends; nil: no upload
	asked      bool     // its first bytes have left, or nearly; guarded by line.mu
	heard      bool     // something came after that; guarded by line.mu
	replied    bool     // something came after all of content had been handed out; guarded by line.mu
	mayBeStale bool     // the turn before had no answer of its own, so what comes now may be its; guarded by line.mu
}

// beginUse begins a request's turn on a connection, below its TLS; nil: the connection is none of ours.
func beginUse(c net.Conn, content *content) *connUse {
	for secured, ok := c.(interface{ NetConn() net.Conn }); ok; secured, ok = c.(interface{ NetConn() net.Conn }) {
		c = secured.NetConn() // two: TLS to the store within TLS to a proxy
	}
	l, ok := c.(*trackedConn)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = &connUse{conn: l, content: content, mayBeStale: l.current != nil && !l.current.heard}
	return l.current
}

// closeUnlessAnswered reports whether what came may answer the request. If not, the connection is closed: nobody knows what else
// lies in it.
func (t *connUse) closeUnlessAnswered() bool {
	if t == nil {
		return true
	}
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	if t.asked && t.heard {
		return true
	}
	_ = t.conn.Close() // it is given up, whatever its close says
	return false
}

// answersContent reports whether what came may answer the whole content. That net/http has written the request says less:
// it reports so, without an error, where an answer in place of "100 Continue" kept the content back, and the answer may
// have come before the content and be handed out after it. So what counts is when bytes came. A transport that tells no
// connection has at least handed the content out when it returns.
func (t *connUse) answersContent(c *content) bool {
	if t == nil {
		return c.isHandedOut()
	}
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	return t.replied && c.isHandedOut()
}

// closeIfCurrent closes the connection if no other request has got it: what the peer says next may be about this one still, and
// must not answer the next.
func (t *connUse) closeIfCurrent() {
	if t == nil {
		return
	}
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	if t.conn.current == t {
		_ = t.conn.Close() // whatever its close says
	}
}

func (l *trackedConn) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.current != nil && l.current.asked {
			l.current.heard = true
			l.current.replied = l.current.content.isHandedOut()
		}
	}
	return n, err
}

func (l *trackedConn) Write(b []byte) (int, error) {
	if l.beginWrite() {
		return 0, errors.Join(errUnasked, l.Close())
	}
	return l.Conn.Write(b)
}

// beginWrite notes that the present request begins to leave, unless it must not.
func (l *trackedConn) beginWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return false
	}
	l.current.asked = !l.current.mayBeStale
	return l.current.mayBeStale
}
