package simulation

import (
	"fmt"
	"sync"
	"time"

	"vaultd/internal/durable"
)

// mounts are the folders on which something is mounted, as far as the daemon sees. Nothing really is: a simulation needs no rights.
type mounts struct {
	mu     sync.Mutex
	until  map[string]time.Time // by the folder's name; guarded by mu
	seen   map[string]bool      // the daemon's last look at it saw the mount; guarded by mu
	looks  int                  // that saw one; guarded by mu
	broken []string             // what was moved or removed all the same; guarded by mu
}

func newMounts() *mounts { return &mounts{until: map[string]time.Time{}, seen: map[string]bool{}} }

// MountOn has something lie on a folder of that name for a while, wherever the folder is.
func (w *World) MountOn(folder string, d time.Duration) {
	w.mounts.mu.Lock()
	defer w.mounts.mu.Unlock()
	w.mounts.until[folder] = time.Now().Add(d)
}

// UnmountAll ends all mounts.
func (w *World) UnmountAll() {
	w.mounts.mu.Lock()
	defer w.mounts.mu.Unlock()
	clear(w.mounts.until)
}

// checkMount is the daemon's look whether a name is a mount.
func (m *mounts) checkMount(name string, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[name] = time.Now().Before(m.until[name])
	if !m.seen[name] {
		return do()
	}
	m.looks++
	return &durable.MountError{Path: name}
}

// countMet counts the looks that saw a mount.
func (m *mounts) countMet() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looks
}

// noteChange notes what the daemon moves or removes though it saw the mount. A mount that comes between a look and a move is seen by
// nobody, neither here nor on a real machine.
func (m *mounts) noteChange(op, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if (op == "rename" || op == "rmdir") && m.seen[name] {
		m.broken = append(m.broken, fmt.Sprintf("I18: %s of %q, on which something is mounted", op, name))
	}
}

// violations tells what was moved or removed with a mount on it.
func (m *mounts) violations() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}
