package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fault is a rule by which answers are damaged.
type fault struct {
	op   string
	code int  // an error answer with this status; 0: the connection is reset
	done bool // after the work, not before it
	rate float64
}

// parseFaults reads "op:kind:rate,…". Ops are register, store, status and list; kinds are an HTTP status, reset, and
// reset-done, which comes after the work. "batch:expired:rate" lets the addresses of a whole batch end at once.
func parseFaults(text string) (all []fault, err error) {
	for _, rule := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		parts := strings.Split(rule, ":")
		bad := fmt.Errorf("fault %q is not op:kind:rate", rule)
		if len(parts) != 3 {
			return nil, bad
		}
		f := fault{op: parts[0], done: parts[1] == "reset-done"}
		f.rate, err = strconv.ParseFloat(parts[2], 64)
		if err != nil || !slices.Contains([]string{"register", "store", "status", "list", "batch"}, f.op) {
			return nil, bad
		}
		if (f.op == "batch") != (parts[1] == "expired") {
			return nil, bad
		}
		if !slices.Contains([]string{"reset", "reset-done", "expired"}, parts[1]) {
			if f.code, err = strconv.Atoi(parts[1]); err != nil || f.code < 400 || f.code > 599 {
				return nil, bad
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// drawFault draws whether a fault befalls this call, and which.
func (s *fakeServer) drawFault(op string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.op == op && rand.New(s.rng).Float64() < f.rate {
			s.stats.Faulted++
			return &s.faults[i]
		}
	}
	return nil
}

// withFaults is what all calls have in common: they come late where that is asked for, and some of them fail.
func (s *fakeServer) withFaults(name string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Delay > 0 {
			late := time.NewTimer(s.o.Delay)
			defer late.Stop()
			select {
			case <-late.C:
			case <-r.Context().Done():
				return
			}
		}
		f := s.drawFault(name)
		switch {
		case f == nil:
			h(w, r)
		case f.code != 0:
			http.Error(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>", f.code)
		default:
			if f.done {
				h(unheard{http.Header{}}, r)
			}
			resetConnection(w)
		}
	}
}

// unheard is the answer of a call that is carried out and then cut off.
type unheard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unheard) Header() http.Header { return u.header }

// Write implements http.ResponseWriter.
func (u unheard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (u unheard) WriteHeader(int) {}

// resetConnection ends the connection without an answer, and lets the client know it at once.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	plain := conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		plain = secure.NetConn()
	}
	if tcp, ok := plain.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the end is an orderly one, which is a fault as well
	}
	_ = plain.Close()
}
