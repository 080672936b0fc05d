package simulation

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// tail keeps the end of the log, and puts it into words only when somebody asks.
type tail struct {
	mu    sync.Mutex
	lines []logged // a ring; guarded by mu
	next  int      // guarded by mu
}

type logged struct {
	record slog.Record
	text   *slog.TextHandler
	into   *bytes.Buffer
}

const tailLines = 400

// newLogger returns a log that ends in t.
func (t *tail) newLogger() *slog.Logger {
	var b bytes.Buffer
	return slog.New(tailHandler{t, slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}), &b})
}

// String implements fmt.Stringer.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all bytes.Buffer
	for i := range t.lines {
		l := t.lines[(t.next+i)%len(t.lines)]
		l.into.Reset()
		if err := l.text.Handle(context.Background(), l.record); err != nil {
			fmt.Fprintln(&all, err)
		}
		all.Write(l.into.Bytes())
	}
	return all.String()
}

// tailHandler is a slog.Handler that keeps records as they are.
type tailHandler struct {
	tail *tail
	text *slog.TextHandler
	into *bytes.Buffer
}

// Enabled implements slog.Handler.
func (h tailHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h tailHandler) Handle(_ context.Context, r slog.Record) error {
	h.tail.mu.Lock()
	defer h.tail.mu.Unlock()
	l := logged{r, h.text, h.into}
	if len(h.tail.lines) < tailLines {
		h.tail.lines = append(h.tail.lines, l)
		return nil
	}
	h.tail.lines[h.tail.next] = l
	h.tail.next = (h.tail.next + 1) % tailLines
	return nil
}

// WithAttrs implements slog.Handler.
func (h tailHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return tailHandler{h.tail, h.text.WithAttrs(as).(*slog.TextHandler), h.into}
}

// WithGroup implements slog.Handler.
func (h tailHandler) WithGroup(name string) slog.Handler {
	return tailHandler{h.tail, h.text.WithGroup(name).(*slog.TextHandler), h.into}
}
