package kit

import (
	"bytes"
	"sync"
)

// Text is what a program has written so far, for a test that reads it
// meanwhile.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String implements fmt.Stringer.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Reset forgets what was written.
func (t *Text) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Reset()
}
