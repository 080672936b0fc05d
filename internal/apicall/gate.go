package apicall

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// errKeptBack ends the content of an upload of which no byte left before the answer came.
var errKeptBack = errors.New("nothing of the content was sent, because an answer came first")

// gate stands before the first byte of an upload's content. Once an answer has begun to come, it lets nothing through: net/http sends
// the content also after an error in place of "100 Continue", so that it may go on using the connection. So whether a store can
// have anything of the content is decided by what was read from the content, and not by which of the two was faster.
//
// An answer of the kind 1xx decides nothing. A store that says nothing gets the content after a while, as net/http does it. All
// methods may be called on nil, which keeps nothing back.
type gate struct {
	mu       sync.Mutex
	changed  *sync.Cond
	ended    func() bool // the call is over: nobody waits for an answer any more
	answered bool        // the first byte of an answer has come, or of one of the kind 1xx that is not read yet; guarded by mu
	passed   bool        // bytes of the content may have left; guarded by mu
	kept     bool        // none has left, and none will; guarded by mu
	released bool        // whoever waits at the gate may go; guarded by mu
}

// newGate returns a gate at which nothing waits longer than ctx.
func newGate(ctx context.Context) *gate {
	g := &gate{ended: func() bool { return ctx.Err() != nil }}
	g.changed = sync.NewCond(&g.mu)
	context.AfterFunc(ctx, func() { g.set(func() {}) })
	return g
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.changed.Broadcast()
}

// watchAnswer lets the gate hear of the answer.
func (g *gate) watchAnswer(trace *httptrace.ClientTrace) {
	if g == nil {
		return
	}
	trace.GotFirstResponseByte = func() { g.set(func() { g.answered = true }) }
	trace.Got1xxResponse = func(int, textproto.MIMEHeader) error { g.set(func() { g.answered = false }); return nil }
}

// pass is called before each read of the content. After an answer it waits: a read that failed at once would close the connection
// before the answer is read.
func (g *gate) pass() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.passed && (g.answered || g.kept) && !g.released && !g.ended() {
		g.changed.Wait()
	}
	if g.passed || !g.answered && !g.kept && !g.released {
		g.passed = true
		return nil
	}
	g.kept = true
	return errKeptBack
}

// keepBack makes sure that no byte leaves any more where none has left yet, and reports that.
func (g *gate) keepBack() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = !g.passed
	return g.kept
}

// release ends the wait at the gate.
func (g *gate) release() { g.set(func() { g.released = true }) }

// releaseWith returns the body of the answer, whose Close ends the wait at the gate.
func (g *gate) releaseWith(body io.ReadCloser) io.ReadCloser { return &releasingBody{body, g} }

type releasingBody struct {
	io.ReadCloser
	gate *gate
}

// Close implements io.Closer.
func (b *releasingBody) Close() error {
	b.gate.release()
	return b.ReadCloser.Close()
}
