package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Bounds of the open connections, so that clients cannot use up the descriptors
// that the work needs.
const (
	maxConnections    = 128
	maxFromOneAddress = 16 // and of one network of IPv6
	maxFromThisHost   = 64 // over loopback, where a proxy keeps many
)

// connections is a listener that bounds the open connections, in all and of one
// address. A new one is always taken: it gets the place of the connection that
// has waited longest without a request in work, of its own address where that
// has too many, else of the address with the most. Silent connections of one
// machine therefore keep nobody from the health pages. A new connection is
// closed where all that it might replace are at work.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open []*connection // the oldest first; guarded by mu
}

// connection is one open connection.
type connection struct {
	net.Conn
	list   *connections
	source string
	inWork int // requests; guarded by list.mu
}

// Accept waits for the next connection that gets a place.
func (l *connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if placed := l.place(c); placed != nil {
			return placed, nil
		}
		c.Close() // nothing was sent or read
	}
}

// place gives a connection its place; nil: there is none.
func (l *connections) place(c net.Conn) *connection {
	n := &connection{Conn: c, list: l, source: sourceOf(c.RemoteAddr().String())}
	l.mu.Lock()
	replaced, ok := l.makeRoom(n.source)
	if ok {
		l.open = append(l.open, n)
	}
	l.mu.Unlock()
	if replaced != nil {
		replaced.Conn.Close() // it loses its place, whatever it says
	}
	if !ok {
		return nil
	}
	return n
}

// makeRoom takes away the place of another connection where a new one from
// source needs it; false: there is no room. mu is held.
func (l *connections) makeRoom(source string) (replaced *connection, ok bool) {
	counts := map[string]int{}
	for _, c := range l.open {
		counts[c.source]++
	}
	limit := maxFromOneAddress
	switch source {
	case "loopback":
		limit = maxFromThisHost
	case "socket":
		limit = maxConnections
	}
	from := source
	switch {
	case counts[source] >= limit:
	case len(l.open) < maxConnections:
		return nil, true
	default:
		for other, n := range counts {
			if n > counts[from] {
				from = other
			}
		}
	}
	for i, c := range l.open {
		if c.source == from && c.inWork == 0 {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			return c, true
		}
	}
	return nil, false
}

// Close closes the connection and frees its place.
func (c *connection) Close() error {
	c.list.mu.Lock()
	for i, other := range c.list.open {
		if other == c {
			c.list.open = append(c.list.open[:i:i], c.list.open[i+1:]...)
			break
		}
	}
	c.list.mu.Unlock()
	return c.Conn.Close()
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

// rememberConnection gives the requests of a connection that connection.
func rememberConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// markWork keeps the place of a connection while it has a request in work.
func markWork(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			c.addWork(1)
			defer c.addWork(-1)
		}
		next.ServeHTTP(w, r)
	})
}

func (c *connection) addWork(n int) {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	c.inWork += n
}
