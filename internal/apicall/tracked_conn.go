package apicall

import (
	"errors"
	"net"
	"sync"
)

// errUnasked says that an answer was there before the request left. net/http closes an idle connection on which it finds such
// bytes. Between two of its checks the next request may already have got the connection.
var errUnasked = errors.New("the peer had spoken before it was asked, so this is no answer to this call")

// trackedConn is a connection that knows, for each request that it carries, whether bytes came after the request began to leave.
type trackedConn struct {
	net.Conn
	mu      sync.Mutex
	current *connUse // of the present request; nil: there was none yet; guarded by mu
}

// connUse is the use of a connection by one request. The next use may begin before anybody has read the answer.
type connUse struct {
	conn       *trackedConn
	content    *content // what it sends; nil: no upload
	asked      bool     // its first bytes have left, or nearly; guarded by conn.mu
	heard      bool     // bytes came after that; guarded by conn.mu
	replied    bool     // bytes came after all of content had been handed out; guarded by conn.mu
	mayBeStale bool     // the request before got no answer, so what comes now may be its answer; guarded by conn.mu
}

// beginUse begins the use of a connection, below its TLS, by a request. Nil: the connection is not a trackedConn.
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

// closeUnlessAnswered reports whether what came may be the answer to the request. If not, it closes the connection, which may
// hold more such bytes.
func (u *connUse) closeUnlessAnswered() bool {
	if u == nil {
		return true
	}
	u.conn.mu.Lock()
	defer u.conn.mu.Unlock()
	if u.asked && u.heard {
		return true
	}
	_ = u.conn.Close() // it is given up, whatever its close says
	return false
}

// answersContent reports whether what came may be an answer to the whole
// content. The moment counts at which its bytes came. The word of net/http that
// the request was written proves less: it also says so where an answer in place
// of "100 Continue" kept the content back, and the answer may have come before
// the content and be returned after it. If the transport tells no connection, it
// only counts that the content was handed out.
func (u *connUse) answersContent(c *content) bool {
	if u == nil {
		return c.isHandedOut()
	}
	u.conn.mu.Lock()
	defer u.conn.mu.Unlock()
	return u.replied && c.isHandedOut()
}

// closeIfCurrent closes the connection unless another request uses it already. What the peer sends next may still be about this
// request, and must not become the answer to the next one.
func (u *connUse) closeIfCurrent() {
	if u == nil {
		return
	}
	u.conn.mu.Lock()
	defer u.conn.mu.Unlock()
	if u.conn.current == u {
		_ = u.conn.Close() // whatever its close says
	}
}

func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.current != nil && c.current.asked {
			c.current.heard = true
			c.current.replied = c.current.content.isHandedOut()
		}
	}
	return n, err
}

func (c *trackedConn) Write(b []byte) (int, error) {
	if !c.beginWrite() {
		return 0, errors.Join(errUnasked, c.Close())
	}
	return c.Conn.Write(b)
}

// beginWrite notes that the present request begins to leave. It reports false where it must not leave on this connection, because
// an answer to the request before may still come.
func (c *trackedConn) beginWrite() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return true
	}
	c.current.asked = !c.current.mayBeStale
	return c.current.asked
}
